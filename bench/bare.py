"""The model without the server: what it is measured against."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime

from backends.base import Stop
from backends.kokoro import model, phonemes
from backends.kokoro.backend import KokoroBackend
from backends.kokoro.packs import style_of
from core.environment import PROJECT
from core.settings import load_settings
from core.speech import Reference, Task, Utterance
from text.plan import plan

VOICE = "nova"


class Bare:
    """The backend, and a session of its own, loaded in this process."""

    def __init__(self) -> None:
        kokoro = load_settings().kokoro
        folder = PROJECT / kokoro.kokoro_model_dir
        self._backend = KokoroBackend(slots=kokoro.kokoro_slots, model_dir=folder)
        self.traits = self._backend.load("cpu")
        self._phonemizer = phonemes.Phonemizer(folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(model.weights(folder, print)), options)

    def utterances(self, text: str) -> tuple[Utterance, ...]:
        """What the server makes of an English text."""
        return plan(text, language="en", limit=self.traits.languages["en"], first=self.traits.first_chars)

    def speak(self, utterance: Utterance) -> float:
        """Seconds that the backend takes for an utterance."""
        began = time.perf_counter()
        task = Task(id=0, job=0, utterance=utterance, voice=Reference(VOICE))
        for _ in self._backend.speak(task, self._backend.prepare(task.voice), Stop()):
            pass
        return time.perf_counter() - began

    def calls(self, text: str) -> list[Callable[[], object]]:
        """Every call of the session that a text needs, ready to be made."""
        styles = style_of(VOICE, "en")

        def call(tokens: list[int]) -> Callable[[], object]:
            style = phonemes.style_row(styles, len(tokens))
            feed = {"tokens": np.array([[0, *tokens, 0]]), "style": style, "speed": np.ones(1, np.float32)}
            return lambda: self._session.run(["audio"], feed)

        spelled = (self._phonemizer.spell(each.text, "en") for each in self.utterances(text))
        return [call(phonemes.ids(each)) for each in spelled]


def side_by_side(lists: Sequence[Sequence[Callable[[], object]]]) -> float:
    """Seconds until all lists are called through, a thread a list."""

    def go(calls: Sequence[Callable[[], object]]) -> None:
        for call in calls:
            call()

    began = time.perf_counter()
    with ThreadPoolExecutor(len(lists)) as threads:
        list(threads.map(go, lists))
    return time.perf_counter() - began
