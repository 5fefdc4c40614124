"""Which workers hang. A process is killed for that alone: for no progress of a task or of its start within a bound that
is learned, or for no sign of life at all. Many utterances that are slow, or one that stops slowly, are no reason.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler.fleet import Fleet
from scheduler.worker import Run, Worker, WorkerState

DOWNLOADS = "weights"
"""The phase of a start that may fetch gigabytes when it runs for the first time."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long nothing may happen, in seconds.

    task_s: at least, to a task; three times as long in a worker that has finished none, for it may still warm up; and
    as long to a cancelled one, to stop. factor: times what was learned. silence_s: without a sign of life of a loaded
    worker, which gives one every second. phase_s: at least, to a phase of the start, and so many times `factor` to one
    that was never seen. first_phase_s: to the first one that may download weights, and the longest of all.
    """

    task_s: float = 20.0
    factor: float = 10.0
    silence_s: float = 30.0
    phase_s: float = 60.0
    first_phase_s: float = 1800.0


@dataclass(frozen=True, slots=True)
class Bound:
    """When something hangs, if nothing is heard of it until then. run: which task, None for the worker as a whole."""

    at: float
    reason: str
    run: Run | None = None

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for what hangs."""
        return self.run is not None and self.run.is_cancelled


class Watchdog:
    """Bounds on the silence of each worker and each task. Looks only; what follows is the supervisor's business."""

    def __init__(self, fleet: Fleet, patience: Patience) -> None:
        self._fleet = fleet
        self._patience = patience

    def overdue(self, now: float) -> Iterator[tuple[Worker, Bound]]:
        """Workers that something has to be done about, and the first bound of each that was not kept.

        A cancelled task that does not stop is told last, and once: what others listen to is not ended for it.
        """
        for worker in self._fleet:
            late = [bound for bound in self._bounds(worker) if bound.at <= now]
            if late:
                yield worker, min(late, key=lambda bound: bound.is_cancelled)

    def wakes(self) -> Iterator[float]:
        """When somebody may hang, if nothing is heard until then."""
        for worker in self._fleet:
            for bound in self._bounds(worker):
                yield bound.at

    def give_longer(self, worker: Worker, now: float) -> None:
        """It hung in a phase of its start: the next one has twice as long for it."""
        allowed_s = 2 * (now - worker.heard_at) / self._patience.factor
        self._fleet.phases[worker.phase] = max(self._fleet.phases.get(worker.phase, 0.0), allowed_s)

    def _bounds(self, worker: Worker) -> Iterator[Bound]:
        if worker.is_hung or worker.state is WorkerState.DRAINING:
            return
        if worker.state is WorkerState.STARTING:
            yield Bound(worker.heard_at + self._phase_s(worker), f"it hung while it was starting ({worker.phase})")
            return
        yield Bound(worker.heard_at + self._patience.silence_s, "it gave no sign of life")
        for run in worker.running.values():
            if run.is_stuck and worker.has_listeners:
                continue  # known, and nothing to be done before the others are through
            yield Bound(run.heard_at + self._task_s(worker, run), "it hung in an utterance", run)

    def _task_s(self, worker: Worker, run: Run) -> float:
        factor = 1.0 if run.is_cancelled else self._patience.factor
        return max(self._patience.task_s * (1 if worker.finished else 3), factor * run.slot_s)

    def _phase_s(self, worker: Worker) -> float:
        patience = self._patience
        longest_s = self._fleet.phases.get(worker.phase)
        if longest_s is not None:
            bound_s = max(patience.phase_s, patience.factor * longest_s)
        else:
            bound_s = patience.first_phase_s if worker.phase == DOWNLOADS else patience.factor * patience.phase_s
        return min(patience.first_phase_s, bound_s)
