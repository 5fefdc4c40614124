"""Which workers hang. A process is killed for that alone: for no progress of a task or of its start within a bound that
is learned, or for no sign of life at all. Many utterances that are slow, or one that stops slowly, are no reason.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler.fleet import Fleet
from scheduler.worker import Run, Worker, WorkerState


@dataclass(frozen=True, slots=True)
class Patience:
    """How long nothing may happen, in seconds.

    task_s: at least, to a task; three times as long in a worker that has finished none, for it may still warm up.
    factor: times what was learned. silence_s: without a sign of life of a loaded worker, which gives one every second.
    phase_s: at least, to a phase of the start. first_phase_s: to one that was never seen: it may download weights.
    """

    task_s: float = 20.0
    factor: float = 10.0
    silence_s: float = 30.0
    phase_s: float = 60.0
    first_phase_s: float = 1800.0


@dataclass(frozen=True, slots=True)
class _Bound:
    """When something hangs, if nothing is heard of it until then."""

    at: float
    reason: str
    is_cancelled: bool = False


class Watchdog:
    """Bounds on the silence of each worker and each task."""

    def __init__(self, fleet: Fleet, patience: Patience) -> None:
        self._fleet = fleet
        self._patience = patience

    def hung(self, now: float) -> Iterator[tuple[Worker, str]]:
        """Workers that hang, and in what; each worker until it is marked as such.

        A cancelled task that does not stop has lost its slot, but is no reason to end what others listen to: its worker
        takes nothing more, and is told of when those are through.
        """
        for worker in self._fleet:
            reasons = [bound for bound in self._bounds(worker) if bound.at <= now]
            is_heard = any(not run.is_cancelled for run in worker.running.values())
            if is_heard and all(bound.is_cancelled for bound in reasons):
                worker.is_closed = bool(reasons)
            elif reasons:
                yield worker, reasons[0].reason

    def next_at(self) -> float | None:
        """When somebody may hang, if nothing is heard until then."""
        return min((bound.at for worker in self._fleet for bound in self._bounds(worker)), default=None)

    def forgive(self, seconds: float) -> None:
        """The server itself stood still for so long: nobody could be heard."""
        for worker in self._fleet:
            worker.heard_at += seconds
            for run in worker.running.values():
                run.heard_at += seconds

    def _bounds(self, worker: Worker) -> Iterator[_Bound]:
        if worker.is_hung or worker.state is WorkerState.DRAINING:
            return
        if worker.state is WorkerState.STARTING:
            yield _Bound(worker.heard_at + self._phase_s(worker), f"it hung while it was starting ({worker.phase})")
            return
        yield _Bound(worker.heard_at + self._patience.silence_s, "it gave no sign of life")
        for run in worker.running.values():
            yield _Bound(run.heard_at + self._task_s(worker, run), "it hung in an utterance", run.is_cancelled)

    def _task_s(self, worker: Worker, run: Run) -> float:
        least_s = self._patience.task_s * (1 if worker.finished else 3)
        return max(least_s, self._patience.factor * self._fleet.slot_s(worker, run.task))

    def _phase_s(self, worker: Worker) -> float:
        longest_s = self._fleet.phases.get(worker.phase)
        if longest_s is None:
            return self._patience.first_phase_s
        return max(self._patience.phase_s, self._patience.factor * longest_s)
