"""What a worker drives: tasks in, audio out. `ThreadedEngine` makes one of a plain Backend, a thread a slot."""

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from audio.quality import fault_of, longest_s
from backends.base import Backend, Prepared, Stop
from backends.latents import Latents
from core.errors import place_of
from core.speech import Reference, Samples, Task
from scheduler.estimator import estimated_s


@dataclass(frozen=True, slots=True)
class Audio:
    """Some samples of one task."""

    task: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class Done:
    """A task is spoken to its end."""

    task: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A task cannot be spoken. reason: for the log; names the exception, never the text."""

    task: int
    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """A task ended because it was told to."""

    task: int


@dataclass(frozen=True, slots=True)
class Lost:
    """The device has failed, and with it everything in this process. reason: for the log."""

    reason: str


Outcome: TypeAlias = Audio | Done | Failed | Stopped | Lost


class Engine(Protocol):
    """Speaks many tasks at once. `add` and `cancel` may be called while `step` runs."""

    def add(self, task: Task) -> None:
        """Take a task; there are never more than the backend's slots."""

    def step(self, timeout_s: float) -> Sequence[Outcome]:
        """What happened since the last step; waits up to `timeout_s` for something.

        Every task ends in exactly one Done, Failed or Stopped.
        """

    def cancel(self, task_id: int) -> None:
        """Stop one task soon; unknown ids are ignored, for it may just have ended."""

    def hold(self, key: str, samples: Samples) -> None:
        """Some more of the recording that a voice is made from; all of it comes before the first task in that voice."""

    def forget(self, key: str) -> None:
        """No task in this voice will come any more; those that are there keep it."""


def is_device_fault(error: BaseException) -> bool:
    """Whether a GPU has failed, after which no call on it succeeds: torch is not imported to ask, the name tells."""
    return type(error).__name__ == "AcceleratorError"


class Guard:
    """Hears one utterance, and says what is wrong with it."""

    def __init__(self, task: Task, rate: int) -> None:
        """rate: Hz of what will be heard."""
        self._expected_s = estimated_s(task.utterance) / task.params.speed
        self._rate = rate
        self._heard: list[Samples] = []
        self._count = 0

    def hears(self, samples: Samples) -> bool:
        """Take some more; True where it will not end by itself."""
        self._heard.append(samples)
        self._count += len(samples)
        return self._count / self._rate > longest_s(self._expected_s)

    @property
    def fault(self) -> str:
        """See `audio.quality.fault_of`; of all that was heard."""
        return fault_of(np.concatenate([*self._heard, np.zeros(0, np.float32)]), self._rate, self._expected_s)


class ThreadedEngine:
    """An Engine of a loaded Backend and one thread a slot."""

    def __init__(
        self, backend: Backend, slots: int, *, latents: Latents | None = None, guard_rate: int | None = None
    ) -> None:
        """slots: as many threads call `speak` at once. latents: on disk, shared with others; None: only here.

        guard_rate: Hz of what the backend makes, where its quality is looked at.
        """
        self._backend = backend
        self._latents = latents
        self._guard_rate = guard_rate
        self._tasks: queue.SimpleQueue[tuple[Task, Stop]] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._stops: dict[int, Stop] = {}
        self._recordings: dict[str, list[Samples]] = {}
        self._voices: dict[Reference, Prepared] = {}
        self._preparing = threading.Lock()
        for slot in range(slots):
            threading.Thread(target=self._serve, name=f"slot-{slot}", daemon=True).start()

    def add(self, task: Task) -> None:
        """Queue a task for the next free thread."""
        stop = self._stops[task.id] = Stop()
        if task.voice.key in self._recordings:
            sample = np.concatenate(self._recordings[task.voice.key])
            task = replace(task, voice=replace(task.voice, sample=sample))
        self._tasks.put((task, stop))

    def step(self, timeout_s: float) -> Sequence[Outcome]:
        """All outcomes that are there, after waiting up to `timeout_s` for the first."""
        outcomes: list[Outcome] = []
        try:
            outcomes.append(self._outcomes.get(timeout=timeout_s))
            while True:
                outcomes.append(self._outcomes.get_nowait())
        except queue.Empty:
            return outcomes

    def cancel(self, task_id: int) -> None:
        """Set the task's stop sign."""
        stop = self._stops.get(task_id)
        if stop is not None:
            stop.set()

    def hold(self, key: str, samples: Samples) -> None:
        """Keep it until it is to be forgotten."""
        self._recordings.setdefault(key, []).append(samples)

    def forget(self, key: str) -> None:
        """Drop the recording, and what the backend made of it. Waits for nobody: this is the control thread."""
        self._recordings.pop(key, None)
        for voice in [voice for voice in list(self._voices) if voice.key == key]:
            self._voices.pop(voice, None)

    def _serve(self) -> None:
        while True:
            task, stop = self._tasks.get()
            outcome = self._speak(task, stop)
            del self._stops[task.id]
            self._outcomes.put(outcome)

    def _speak(self, task: Task, stop: Stop) -> Outcome:
        try:
            voice = self._voice(task.voice)
            guard = Guard(task, self._guard_rate) if self._guard_rate else None
            for samples in self._backend.speak(task, voice, stop):
                if stop.is_set or (guard and guard.hears(samples)):
                    break
                self._outcomes.put(Audio(task.id, samples))
            if guard and not stop.is_set and (fault := guard.fault):
                return Failed(task.id, f"quality: {fault}")
        except Exception as error:  # the edge of the child: one task's failure must not end the others
            if is_device_fault(error):
                return Lost(place_of(error))
            return Stopped(task.id) if stop.is_set else Failed(task.id, place_of(error))
        return Stopped(task.id) if stop.is_set else Done(task.id)

    def _voice(self, voice: Reference) -> Prepared:
        with self._preparing:
            prepared = self._voices.get(voice)
            if prepared is None:
                prepared = self._voices[voice] = self._prepared(voice)
                if voice.sample is not None and voice.key not in self._recordings:  # it was forgotten meanwhile
                    self._voices.pop(voice, None)
            return prepared

    def _prepared(self, voice: Reference) -> Prepared:
        """From the disk where another worker has left it there, else from the backend."""
        latents = self._latents if voice.is_kept else None
        if latents and (found := latents.read(voice)) is not None:
            return found
        made = self._backend.prepare(voice)
        if latents:
            latents.write(voice, made)
        return made
