"""One worker process as the scheduler sees it: its state, its slots, and the tasks in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from core.speech import Task

BACK_OFF_S = 0.5
"""Pause before the second restart in a row; doubles up to MAX_BACK_OFF_S."""

MAX_BACK_OFF_S = 30.0
"""Longest pause between restarts: a repaired machine speaks again within half a minute."""


def pause_s(deaths: int) -> float:
    """Seconds before the next start, where there were so many deaths in a row before the last one."""
    doublings = min(deaths - 1, 16)  # a power of thousands is no float
    return min(MAX_BACK_OFF_S, BACK_OFF_S * 2.0**doublings) if deaths else 0.0


class WorkerKind(Enum):
    """HOT: resident, takes the base load and streams. COLD: comes when it is worth it, and goes when it is idle."""

    HOT = "hot"
    COLD = "cold"


class WorkerState(Enum):
    """Where a worker stands."""

    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    DRAINING = "draining"
    DEAD = "dead"


MOVES: Mapping[WorkerState, frozenset[WorkerState]] = {
    WorkerState.STARTING: frozenset({WorkerState.IDLE, WorkerState.DRAINING, WorkerState.DEAD}),
    WorkerState.IDLE: frozenset({WorkerState.BUSY, WorkerState.DRAINING, WorkerState.DEAD}),
    WorkerState.BUSY: frozenset({WorkerState.IDLE, WorkerState.DRAINING, WorkerState.DEAD}),
    WorkerState.DRAINING: frozenset({WorkerState.DEAD}),
    WorkerState.DEAD: frozenset(),
}
"""The only moves there are."""


@dataclass(frozen=True, slots=True)
class Run:
    """A task in a slot. since: when it got it. area: of the device's `BusyMeter` at that moment."""

    task: Task
    since: float
    area: float


@dataclass(slots=True)
class Worker:
    """A child process and what runs in its slots, by task id. A cancelled task keeps its slot until it has stopped.

    place: of a cold worker among its like, from 0; later places retire later. idle_since: None while it works or loads.
    """

    id: int
    kind: WorkerKind
    device: str
    place: int = 0
    spawned_at: float = 0.0
    idle_since: float | None = None
    state: WorkerState = WorkerState.STARTING
    slots: int = 0
    running: dict[int, Run] = field(default_factory=dict)

    def move(self, state: WorkerState) -> None:
        """Change state. Raises ValueError for a move that is not in the table."""
        if state not in MOVES[self.state]:
            raise ValueError(f"a worker cannot go from {self.state.value} to {state.value}")
        self.state = state

    @property
    def free_slots(self) -> int:
        """How many more utterances it takes now."""
        return self.slots - len(self.running) if self.state in (WorkerState.IDLE, WorkerState.BUSY) else 0

    def take(self, run: Run) -> None:
        """Put a task into a free slot."""
        self.running[run.task.id] = run
        self.idle_since = None
        if self.state is WorkerState.IDLE:
            self.move(WorkerState.BUSY)

    def give_back(self, task_id: int, now: float) -> Run | None:
        """Free the slot of a task; None where it holds no such task."""
        run = self.running.pop(task_id, None)
        if not self.running and self.state is WorkerState.BUSY:
            self.move(WorkerState.IDLE)
            self.idle_since = now
        return run
