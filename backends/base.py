"""What an author of a backend writes: load, prepare, speak. Everything else is the server's."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

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


BackendFactory = Callable[[Mapping[str, Any]], Backend]
"""Makes an unloaded backend from the operator's options. This is what the entry-point group names."""
