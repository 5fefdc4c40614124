"""An engine that is listened to: what it says wrong is Failed, and so spoken once more.

    worker ──add, cancel──▶ Guarded ──▶ engine
       ▲                       │ hears every Audio as it passes
       └── Done or Failed ◀── judge (a thread) ◀── Done

Whether speech is whole is known at its end alone, and to tell takes a few milliseconds of a core: a thread does it, so
that no other utterance waits for the verdict.
"""

import queue
import threading
from collections.abc import Sequence

import numpy as np

from audio.quality import fault_of, longest_s
from backends.base import Audio, Done, Engine, Failed, Lost, Outcome
from core.errors import place_of
from core.speech import Samples, Task
from scheduler.estimator import estimated_s

RATE = 24_000
"""Hz that a verdict needs: what is higher is thinned out to it, for twice the samples take twice the time."""

MOST_CASES = 16
"""Utterances that may wait for a verdict; the next passes without one, rather than to keep its slot."""

VERDICT_S = 0.005
"""Between two looks for a verdict that is all there is to wait for."""


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
        heard = np.concatenate([*self._heard, np.zeros(0, np.float32)])
        share = max(1, self._rate // RATE)
        thin = heard[: len(heard) // share * share].reshape(-1, share).mean(axis=1)
        return fault_of(thin, self._rate // share, self._expected_s)


class Guarded:
    """An Engine around another one. Its `step` is called by one thread, as that of every engine is."""

    def __init__(self, engine: Engine, rate: int) -> None:
        """rate: Hz of what the engine makes."""
        self._engine = engine
        self._rate = rate
        self._guards: dict[int, Guard] = {}
        self._endless: set[int] = set()
        self._cases: queue.SimpleQueue[tuple[int, Guard]] = queue.SimpleQueue()
        self._verdicts: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._awaited = 0
        threading.Thread(target=self._judge, name="judge", daemon=True).start()

    def add(self, task: Task) -> None:
        """Listen to it from its first sample."""
        if task.utterance.text:
            self._guards[task.id] = Guard(task, self._rate)
        self._engine.add(task)

    def cancel(self, task_id: int) -> None:
        """It need not be good any more."""
        self._engine.cancel(task_id)

    def hold(self, key: str, samples: Samples) -> None:
        """Nothing of a recording is judged."""
        self._engine.hold(key, samples)

    def forget(self, key: str) -> None:
        """Nor of what was made of it."""
        self._engine.forget(key)

    def step(self, timeout_s: float) -> Sequence[Outcome]:
        """Those of the engine, and of the verdicts that are there by now."""
        heard = self._engine.step(min(timeout_s, VERDICT_S) if self._awaited else timeout_s)
        outcomes = [passed for outcome in heard if (passed := self._hear(outcome)) is not None]
        while self._awaited and not self._verdicts.empty():
            self._awaited -= 1
            outcomes.append(self._verdicts.get())
        return outcomes

    def _hear(self, outcome: Outcome) -> Outcome | None:
        if isinstance(outcome, Lost):
            return outcome
        guard = self._guards.get(outcome.task)
        if guard is None:
            return outcome
        if isinstance(outcome, Audio):
            return self._listen(outcome, guard)
        del self._guards[outcome.task]
        is_endless = outcome.task in self._endless
        self._endless.discard(outcome.task)
        if not is_endless and (not isinstance(outcome, Done) or self._awaited >= MOST_CASES):
            return outcome
        self._awaited += 1
        self._cases.put((outcome.task, guard))
        return None

    def _listen(self, outcome: Audio, guard: Guard) -> Outcome | None:
        if outcome.task in self._endless:
            return None
        if guard.hears(outcome.samples):
            self._endless.add(outcome.task)
            self._engine.cancel(outcome.task)
            return None
        return outcome

    def _judge(self) -> None:
        while True:
            task, guard = self._cases.get()
            try:
                fault = guard.fault
            except Exception as error:  # the edge of a thread: a slot must not stay taken for it
                fault = place_of(error)
            self._verdicts.put(Failed(task, f"quality: {fault}") if fault else Done(task))
