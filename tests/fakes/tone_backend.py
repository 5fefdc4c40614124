"""A backend that speaks in tones: stands for an engine whose speed and faults can be scripted by the text itself.

Every word is 0.1 s of a tone. A text that starts with a word of `_fault` misbehaves; "slow" takes 0.05 s of wall time
a word and yields word by word, so that it can be stopped in the middle.
"""

import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from backends.base import BackendError, Prepared, Stop
from core.speech import REFERENCE_RATE, Priors, Reference, Samples, Task, Traits
from voices.library import openai_voices

RATE = 24_000

PRIORS = Priors(rates=(2.0, 4.0, 6.0), start_s=0.5, memory_bytes=10**8)
"""Of slow texts: each slot makes two seconds of audio a second, in one process or in several."""


class AcceleratorError(RuntimeError):
    """Named as torch's own: stands for a GPU that has failed, where there is none."""


class ToneBackend:
    """See the module's docstring. Options: slots, load_s, broken (a message), bug, rate (Hz), padding_s, clones.

    once: path of a file that the first process to load makes, and then hangs.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._rate = int(options.get("rate", RATE))
        self._padding_s = float(options.get("padding_s", 0))
        count = self._rate // 10
        self._word = (0.3 * np.sin(2 * np.pi * 440 / self._rate * np.arange(count))).astype(np.float32)

    def load(self, device: str) -> Traits:
        if "broken" in self._options:
            raise BackendError(self._options["broken"])
        if "bug" in self._options:
            raise OSError("a secret path")
        if "once" in self._options and not Path(self._options["once"]).exists():
            Path(self._options["once"]).touch()
            time.sleep(3600)
        time.sleep(float(self._options.get("load_s", 0)))
        slots, can_clone = int(self._options.get("slots", 2)), bool(self._options.get("clones"))
        voices = openai_voices() if can_clone else ()
        return Traits("tone", "1", self._rate, slots, {"en": 100}, voices=voices, priors=PRIORS, can_clone=can_clone)

    def prepare(self, reference: Reference) -> Prepared:
        """A word in that voice: where it is made from a recording, a tone of the recording's own pitch."""
        if reference.sample is None:
            return {"word": self._word}
        spectrum = np.abs(np.fft.rfft(reference.sample))
        hz = spectrum.argmax() * REFERENCE_RATE / len(reference.sample)
        word = 0.3 * np.sin(2 * np.pi * hz / self._rate * np.arange(self._rate // 10))
        return {"word": word.astype(np.float32)}

    def speak(self, task: Task, voice: Prepared, stop: Stop) -> Iterator[Samples]:
        words = task.utterance.text.split()
        if (fault := _fault(words)) is not None:
            yield from fault
            return
        padding = np.zeros(round(self._padding_s * self._rate), np.float32)
        if len(padding):
            yield padding
        for _ in words:
            if words[0] == "slow":
                time.sleep(0.05)
            if stop.is_set:
                return
            yield voice["word"]
        if len(padding):
            yield padding


def _fault(words: list[str]) -> list[Samples] | None:
    """What is yielded instead of tones, None where nothing is wrong; or the fault itself."""
    match words[0]:
        case "raise":
            raise RuntimeError(" ".join(words))
        case "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        case "fault":
            raise AcceleratorError("an illegal memory access was encountered")
        case "silence":
            return [np.zeros(RATE, np.float32)]
        case "nan":
            return [np.full(RATE, np.nan, np.float32)]
        case "hang":
            time.sleep(3600)
        case "deaf":  # speaks nothing, and is slow to hear that it need not
            time.sleep(float(words[1]))
    return None


def make(options: Mapping[str, Any]) -> ToneBackend:
    """The factory that a registry calls."""
    return ToneBackend(options)


def make_padded(options: Mapping[str, Any]) -> ToneBackend:
    """An engine that is silent for half a second before and after every utterance."""
    return ToneBackend({**options, "padding_s": 0.5})


def make_at_22050(options: Mapping[str, Any]) -> ToneBackend:
    """An engine with another sample rate than OpenAI's."""
    return ToneBackend({**options, "rate": 22_050})


def make_at_44100(options: Mapping[str, Any]) -> ToneBackend:
    """An engine with another sample rate than OpenAI's."""
    return ToneBackend({**options, "rate": 44_100})


def make_at_48000(options: Mapping[str, Any]) -> ToneBackend:
    """An engine with another sample rate than OpenAI's."""
    return ToneBackend({**options, "rate": 48_000})


def make_cloning(options: Mapping[str, Any]) -> ToneBackend:
    """An engine that speaks in the pitch of a recording."""
    return ToneBackend({**options, "clones": True})


def make_slow_to_load(options: Mapping[str, Any]) -> ToneBackend:
    """An engine that takes two seconds to load."""
    return ToneBackend({**options, "load_s": 2})


def make_broken(options: Mapping[str, Any]) -> ToneBackend:
    """An engine that cannot load."""
    return ToneBackend({**options, "broken": "the weights are missing: run setup"})
