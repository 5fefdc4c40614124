"""An Engine of a plain Backend: `ThreadedEngine`, a thread a slot."""

import queue
import threading
from collections.abc import Sequence

from backends.base import Audio, Backend, Done, Failed, Lost, Outcome, Stop, Stopped, is_device_fault
from backends.voices import Voices
from core.errors import place_of
from core.speech import Samples, Task


class ThreadedEngine:
    """An Engine of a loaded Backend and one thread a slot."""

    def __init__(self, backend: Backend, slots: int, voices: Voices) -> None:
        """slots: as many threads call `speak` at once. voices: what the backend makes of them."""
        self._backend = backend
        self._voices = voices
        self._tasks: queue.SimpleQueue[tuple[Task, Stop]] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._stops: dict[int, Stop] = {}
        for slot in range(slots):
            threading.Thread(target=self._serve, name=f"slot-{slot}", daemon=True).start()

    def add(self, task: Task) -> None:
        """Queue a task for the next free thread."""
        stop = self._stops[task.id] = Stop()
        self._tasks.put((self._voices.with_recording(task), stop))

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
        """See `Voices.hold`."""
        self._voices.hold(key, samples)

    def forget(self, key: str) -> None:
        """See `Voices.forget`."""
        self._voices.forget(key)

    def _serve(self) -> None:
        while True:
            task, stop = self._tasks.get()
            outcome = self._speak(task, stop)
            del self._stops[task.id]
            self._outcomes.put(outcome)

    def _speak(self, task: Task, stop: Stop) -> Outcome:
        try:
            voice = self._voices.of(task.voice)
            for samples in self._backend.speak(task, voice, stop):
                if stop.is_set:
                    break
                self._outcomes.put(Audio(task.id, samples))
        except Exception as error:  # the edge of the child: one task's failure must not end the others
            if is_device_fault(error):
                return Lost(place_of(error))
            return Stopped(task.id) if stop.is_set else Failed(task.id, place_of(error))
        return Stopped(task.id) if stop.is_set else Done(task.id)
