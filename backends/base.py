"""What an author of a backend writes: load, prepare, speak. Everything else is the server's.

A backend whose library advances many utterances together has an `Engine` instead of `speak`: see `backends.batching`.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from core.speech import Reference, Samples, Task, Traits

Prepared: TypeAlias = Mapping[str, npt.NDArray[np.generic]]
"""What a backend makes of a voice, once: arrays by name, empty where the voice's key says it all."""


class Stop:
    """One task's stop sign: set by the control thread, seen by the thread that speaks.

    A backend polls `is_set` between chunks, or registers `on_stop` to break into a call that it cannot poll from.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._hook: Callable[[], None] | None = None

    @property
    def is_set(self) -> bool:
        """True once the task is no longer wanted."""
        return self._is_set

    def set(self) -> None:
        """Ask the task to end soon. May be called from any thread, and more than once."""
        with self._lock:
            self._is_set = True
            hook, self._hook = self._hook, None
        if hook is not None:
            hook()

    def on_stop(self, hook: Callable[[], None] | None) -> None:
        """Call `hook` when the stop is set; at once if it already is. None takes the hook back."""
        with self._lock:
            if not self._is_set:
                self._hook = hook
                return
        if hook is not None:
            hook()


class BackendError(Exception):
    """The backend cannot go on; the message is for the operator and holds no text of a user."""


class Backend(Protocol):
    """One speech engine, alone in its process.

    `speak` may be called from as many threads at once as `Traits.slots` says; `load` and `prepare` from one at a time.
    """

    def load(self, device: str) -> Traits:
        """Read weights and warm up. device: "cpu" or "cuda:0". Raises BackendError with what the operator should do."""

    def prepare(self, reference: Reference) -> Prepared:
        """What `speak` needs of a voice; called once a voice. Raises KeyError for a built-in voice that is unknown.

        A voice that is made from a recording has its `sample`; it comes only where `Traits.can_clone`. The result may
        come back from a file, in another process that has loaded the same `Traits.revision`.
        """

    def speak(self, task: Task, voice: Prepared, stop: Stop) -> Iterator[Samples]:
        """Yield mono float32 at `Traits.sample_rate`; nothing at all where the text has no sound.

        Ends early, without error, when `stop` is set. No acoustic state crosses utterances.
        """


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
    """Speaks many tasks at once; it is what a worker drives. All but `step` may be called while `step` runs."""

    def add(self, task: Task) -> None:
        """Take a task; there are never more than the backend's slots."""

    def step(self, timeout_s: float) -> Sequence[Outcome]:
        """What happened since the last step; waits up to `timeout_s` for something.

        Every task ends in exactly one Done, Failed or Stopped. What it raises is the end of the process.
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
