"""The engine that a worker steps: utterances come and go between two steps of one batch.

    reader thread ──add, cancel──▶ words ──▶ step: hear the words, let utterances in, advance the batch by a patch
                                                     │ one voice at most is encoded: what runs waits for no more
                                                     ▼
                                                   Batch, the library's

Everything but `add`, `cancel`, `hold` and `forget` runs on the thread that steps.
"""

import queue
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from backends.base import Audio, BackendError, Done, Failed, Outcome, Prepared, Stopped, is_device_fault
from backends.on_voxcpm import AT_LIMIT, DEFAULT_CFG, heard, is_whole, most_patches, spoken
from backends.voices import Voices
from core.errors import place_of
from core.speech import Samples, Task

LATENTS = "latents"
"""A voice's one array: float32, shape (frames, channels), as the library encodes a recording."""

FRAMES = 4
"""Of latents in a patch, which is a token to the language model."""

DEFAULT_TEMPERATURE = 1.0


@dataclass(frozen=True, slots=True)
class Prompt:
    """One utterance as the library takes it.

    reference: latents of the voice. transcript: what is said in them, empty where the voice alone is to be taken.
    most: patches at most. lora: name of an adapter.
    """

    text: str
    reference: bytes
    transcript: str
    most: int
    cfg: float = DEFAULT_CFG
    temperature: float = DEFAULT_TEMPERATURE
    seed: int | None = None
    lora: str | None = None


@dataclass(frozen=True, slots=True)
class Patch:
    """What a sequence has made in one step. samples: 0.16 s; none where it only ended. error: what ended it alone."""

    key: str
    samples: Samples | None
    is_last: bool
    error: str = ""


class Batch(Protocol):
    """The library's sequences. Used by one thread."""

    def add(self, key: str, prompt: Prompt) -> None:
        """Begin a sequence with the next step. Raises what is wrong with this one alone."""

    def step(self) -> Sequence[Patch]:
        """Advance all by one patch; waits no longer than that. What it raises is the end of all of them."""

    def cancel(self, key: str) -> None:
        """End a sequence; its patches may still come."""

    def encode(self, sample: Samples) -> bytes:
        """Latents of a recording at REFERENCE_RATE, as bytes of float32. All sequences wait meanwhile."""

    def tokens(self, text: str) -> int:
        """How many tokens a text has."""


@dataclass(slots=True)
class _Run:
    """A sequence. made: patches that came."""

    task: Task
    most: int
    made: int = 0


class BatchEngine:
    """See the module's docstring. An Engine, whose slots are sequences of one batch."""

    def __init__(self, batch: Batch, voices: Voices, *, room: int) -> None:
        """voices: of which `LATENTS` is the array. room: tokens that one sequence may have."""
        self._batch = batch
        self._voices = voices
        self._room = room
        self._words: queue.SimpleQueue[Task | int] = queue.SimpleQueue()
        self._waiting: dict[int, Task] = {}
        self._running: dict[str, _Run] = {}

    def add(self, task: Task) -> None:
        """Let it in with the next step."""
        self._words.put(self._voices.with_recording(task))

    def cancel(self, task_id: int) -> None:
        """End it before the next step."""
        self._words.put(task_id)

    def hold(self, key: str, samples: Samples) -> None:
        """See `Voices.hold`."""
        self._voices.hold(key, samples)

    def forget(self, key: str) -> None:
        """See `Voices.forget`."""
        self._voices.forget(key)

    def step(self, timeout_s: float) -> Sequence[Outcome]:
        """One patch of everything that runs; where nothing does, wait for work."""
        outcomes = list(self._hear(0.0 if self._running or self._waiting else timeout_s))
        outcomes += self._let_in()
        if self._running:
            outcomes += self._advance()
        return outcomes

    def _hear(self, timeout_s: float) -> Iterator[Outcome]:
        """Take all words that are there; wait for the first one."""
        try:
            word = self._words.get(timeout=timeout_s) if timeout_s else self._words.get_nowait()
            while True:
                if isinstance(word, Task):
                    self._waiting[word.id] = word
                elif self._waiting.pop(word, None):
                    yield Stopped(word)
                elif self._running.pop(str(word), None):
                    self._batch.cancel(str(word))
                    yield Stopped(word)
                word = self._words.get_nowait()
        except queue.Empty:
            return

    def _let_in(self) -> Iterator[Outcome]:
        """Begin what waits; of the voices that nobody has encoded yet, one."""
        may_encode = True
        for task in list(self._waiting.values()):
            try:
                if (voice := self._voices.find(task.voice)) is None:
                    if not may_encode:
                        continue
                    may_encode = False
                    voice = self._voices.of(task.voice)
                outcome = self._begin(task, voice)
            except Exception as error:  # one utterance's failure must not end the others; a GPU's ends all
                if is_device_fault(error):
                    raise
                outcome = Failed(task.id, str(error) if isinstance(error, BackendError) else place_of(error))
            del self._waiting[task.id]
            if outcome is not None:
                yield outcome

    def _begin(self, task: Task, voice: Prepared) -> Outcome | None:
        """Begin a sequence; Done at once where there is nothing to say. Raises BackendError where it has no room."""
        text = spoken(task.utterance.text)
        if not text:
            return Done(task.id)
        transcript = heard(task.voice.transcript) if is_whole(task.voice) else ""
        latents = np.ascontiguousarray(voice[LATENTS], np.float32)
        patches = len(latents) // FRAMES
        told = (2 * patches + self._batch.tokens(transcript)) if transcript else patches
        most = most_patches(self._batch.tokens(text), told=told, room=self._room)
        params = task.params
        prompt = Prompt(
            text,
            latents.tobytes(),
            transcript,
            most,
            cfg=DEFAULT_CFG if params.cfg_value is None else params.cfg_value,
            temperature=DEFAULT_TEMPERATURE if params.temperature is None else params.temperature,
            seed=task.seed,
            lora=params.lora,
        )
        self._batch.add(str(task.id), prompt)
        self._running[str(task.id)] = _Run(task, most)
        return None

    def _advance(self) -> Iterator[Outcome]:
        for patch in self._batch.step():
            run = self._running.get(patch.key)
            if run is None:  # it was cancelled while this was on its way
                continue
            if patch.samples is not None:
                run.made += 1
                yield Audio(run.task.id, patch.samples)
            if patch.error or patch.is_last:
                del self._running[patch.key]
                reason = patch.error or (AT_LIMIT if run.made >= run.most else "")
                yield Failed(run.task.id, reason) if reason else Done(run.task.id)
