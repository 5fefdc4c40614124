"""Speaks with Kokoro-82M: text to phonemes, one call of the model, samples.

The model makes an utterance in one call, so sound comes utterance by utterance. A session with one thread a call, and
as many calls as cores, makes most audio. An utterance that somebody waits for while the machine is idle goes to a
second session that uses all cores for one call.
"""

import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from audio.join import Trimmer, silence
from backends.base import BackendError, Prepared, Stop
from backends.kokoro import phonemes
from backends.kokoro.model import SHA256, weights
from backends.kokoro.packs import style_of, voices
from core.cgroups import usable_cores
from core.environment import PROJECT
from core.speech import Priors, Reference, Samples, Task, Traits

SAMPLE_RATE = 24_000

MAX_PHONEMES = 240
"""In one call. The model takes 510, but its memory grows with the length: 0.5 GB at 7 s of audio, 0.75 GB at 19 s."""

CHARS: Mapping[str, int] = {"en": 200, "zh": 50, "ja": 70, "es": 200, "fr": 200, "hi": 160, "it": 200, "pt": 200}
"""Characters that stay under MAX_PHONEMES as a rule; where they do not, `speak` cuts."""

NATIVE_SPEED = (0.5, 1.5)
"""Where the length is within 7 % of what was asked for; at 2.0 the model is 9 % too slow."""

CORE_RATE = 2.0
"""Seconds of audio a second that one core makes: between 1.5 without AVX512-VNNI and 2.5 with it."""

START_S = 2.5
"""From spawn to ready on such cores."""

MEMORY_BYTES = 800 * 10**6
"""Of a worker at its peak."""

INNER_PAUSE_S = 0.12
"""Between two calls of one utterance, which only text without a pause needs."""


def make(options: Mapping[str, Any]) -> "KokoroBackend":
    """The backend, unloaded. options: `kokoro_slots`, `kokoro_model_dir`."""
    return KokoroBackend(slots=int(options["kokoro_slots"]), model_dir=PROJECT / options["kokoro_model_dir"])


@dataclass(frozen=True, slots=True)
class _Call:
    """One run of the model."""

    tokens: list[int]
    style: Samples
    speed: float


class KokoroBackend:
    """See the module's docstring."""

    def __init__(self, *, slots: int, model_dir: Path) -> None:
        """slots: utterances at once, 0 for one a usable core. model_dir: where the weights lie or are put."""
        self._cores = usable_cores()
        self._slots = slots or self._cores
        self._model_dir = model_dir
        self._busy = 0
        self._counting = threading.Lock()

    def load(self, device: str) -> Traits:
        """Fetch and check the weights, and open both sessions and the English dictionary side by side.

        There is no warm-up: the first call is as fast as the later ones.
        """
        path = weights(self._model_dir, say=_tell_operator)
        self._phonemizer = phonemes.Phonemizer(self._model_dir)
        with ThreadPoolExecutor() as threads:
            narrow = threads.submit(_open, path, threads=1)
            width = min(self._cores, self._slots)  # an operator who wants fewer slots wants fewer cores to be used
            wide = threads.submit(_open, path, threads=width) if width > 1 else narrow
            self._phonemizer.spell("Hello", "en")
            self._narrow, self._wide = narrow.result(), wide.result()
        return Traits(
            backend="kokoro",
            revision=f"kokoro-v1.0-int8-{SHA256[:12]}",
            sample_rate=SAMPLE_RATE,
            slots=self._slots,
            languages={language: CHARS[language] for language in self._phonemizer.languages},
            missing=self._phonemizer.missing,
            voices=voices(),
            native_speed=NATIVE_SPEED,
            priors=Priors(tuple(CORE_RATE * (core + 1) for core in range(self._cores)), START_S, MEMORY_BYTES),
            model="Kokoro-82M",
            precision="int8",
        )

    def prepare(self, reference: Reference) -> Prepared:
        """Nothing: a voice's style follows from its name and the language. Raises KeyError where unknown."""
        style_of(reference.key, "en")
        return {}

    def speak(self, task: Task, voice: Prepared, stop: Stop) -> Iterator[Samples]:
        """One call of the model for all but the longest utterances."""
        utterance = task.utterance
        calls = self._call(utterance.text, utterance.language, task.voice.key, task.params.speed)
        for number, call in enumerate(calls):
            with self._session(wants_sound_soon=utterance.is_opening) as session:
                samples = self._run(session, call, stop)
            if stop.is_set or not len(samples):
                return
            if len(calls) > 1:
                samples = _joined(samples, is_last=number == len(calls) - 1)
            yield samples

    def _call(self, text: str, language: str, voice: str, speed: float) -> list[_Call]:
        spelled = phonemes.cut(self._phonemizer.spell(text, language), MAX_PHONEMES)
        styles = style_of(voice, language)
        tokens = [found for piece in spelled if (found := phonemes.ids(piece))]
        return [_Call(each, phonemes.style_row(styles, len(each)), speed) for each in tokens]

    @contextmanager
    def _session(self, *, wants_sound_soon: bool) -> Iterator[ort.InferenceSession]:
        with self._counting:
            is_idle = not self._busy
            self._busy += 1
        try:
            yield self._wide if wants_sound_soon and is_idle else self._narrow
        finally:
            with self._counting:
                self._busy -= 1

    @staticmethod
    def _run(session: ort.InferenceSession, call: _Call, stop: Stop) -> Samples:
        """Samples of one call; none where it was stopped."""
        options = ort.RunOptions()
        # Memory goes back after each call: kept, it grows to 1.3 GB with two sessions; given back, to 0.5 GB.
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        stop.on_stop(lambda: setattr(options, "terminate", True))
        feed = {
            "tokens": np.array([[0, *call.tokens, 0]], np.int64),
            "style": call.style,
            "speed": np.array([call.speed], np.float32),
        }
        try:
            (audio,) = session.run(["audio"], feed, options)
        except Exception:  # a stopped run raises onnxruntime's most general error; only the sign tells them apart
            if not stop.is_set:
                raise
            return np.zeros(0, np.float32)
        finally:
            stop.on_stop(None)
        return np.asarray(audio, np.float32).reshape(-1)


def _joined(samples: Samples, *, is_last: bool) -> Samples:
    """One of several calls of an utterance: the model's own silence off, a short pause behind it."""
    trimmer = Trimmer(SAMPLE_RATE)
    pause = silence(0.0 if is_last else INNER_PAUSE_S, SAMPLE_RATE)
    return np.concatenate((trimmer.feed(samples), trimmer.finish(), pause))


def _tell_operator(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _open(path: Path, *, threads: int) -> ort.InferenceSession:
    """Raises BackendError."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that spin while they wait take the cores from the other slots.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # shapes that differ from call to call are no reason to warn
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no class
        raise BackendError(f"onnxruntime cannot open the speech model {path} ({type(error).__name__}).") from None
