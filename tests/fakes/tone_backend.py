"""A backend that speaks in tones: stands for an engine whose speed and faults can be scripted by the text itself.

Every word is 0.1 s of a tone. A text that starts with a word of `_FAULTS` misbehaves; "slow" takes 0.05 s of wall time
a word and yields word by word, so that it can be stopped in the middle.
"""

import os
import signal
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from backends.base import BackendError, Stop
from core.speech import Reference, Samples, Task, Traits

RATE = 24_000
WORD = (0.3 * np.sin(2 * np.pi * 440 / RATE * np.arange(RATE // 10))).astype(np.float32)


class ToneBackend:
    """See the module's docstring. Options: slots, load_s, broken (a message)."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def load(self, device: str) -> Traits:
        if "broken" in self._options:
            raise BackendError(self._options["broken"])
        time.sleep(float(self._options.get("load_s", 0)))
        return Traits("tone", "1", RATE, int(self._options.get("slots", 2)), {"en": 100})

    def prepare(self, reference: Reference) -> str:
        return reference.key

    def speak(self, task: Task, voice: str, stop: Stop) -> Iterator[Samples]:
        words = task.utterance.text.split()
        match words[0]:
            case "raise":
                raise RuntimeError(task.utterance.text)
            case "crash":
                os.kill(os.getpid(), signal.SIGKILL)
            case "silence":
                yield np.zeros(RATE, np.float32)
                return
            case "nan":
                yield np.full(RATE, np.nan, np.float32)
                return
        for _ in words:
            if words[0] == "slow":
                time.sleep(0.05)
            if stop.is_set:
                return
            yield WORD


def make(options: Mapping[str, Any]) -> ToneBackend:
    """The factory that a registry calls."""
    return ToneBackend(options)
