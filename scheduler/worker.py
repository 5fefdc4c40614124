"""One worker process as the scheduler sees it: its state, its slots, and the tasks in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from core.speech import Task

BACK_OFF_S = 0.5
"""Pause before the second restart in a row; doubles up to MAX_BACK_OFF_S."""

MAX_BACK_OFF_S = 30.0
"""Longest pause between restarts: a repaired machine speaks again within half a minute."""


def pause_s(deaths: int, longest_s: float = MAX_BACK_OFF_S) -> float:
    """Seconds before the next start, where there were so many deaths in a row before the last one."""
    doublings = min(deaths - 1, 16)  # a power of thousands is no float
    return min(longest_s, BACK_OFF_S * 2.0**doublings) if deaths else 0.0


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


@dataclass(slots=True)
class Run:
    """A task in a slot. since: when it got it. area: of the device's `BusyMeter` at that moment.

    slot_s: how long it was to take then. heard_at: when something last came of it, or it was cancelled.
    has_sounded: some audio came. is_cancelled: nobody wants it any more; is_stuck: and it does not stop.
    is_suspect: a worker died with it aboard.
    """

    task: Task
    since: float
    area: float
    slot_s: float
    is_suspect: bool = False
    heard_at: float = 0.0
    has_sounded: bool = False
    is_cancelled: bool = False
    is_stuck: bool = False

    def __post_init__(self) -> None:
        self.heard_at = self.since


@dataclass(slots=True)
class Worker:
    """A child process and what runs in its slots, by task id. A cancelled task keeps its slot until it has stopped.

    place: of a cold worker among its like, from 0; later places retire later. idle_since: None while it works or loads.
    phase: of its start. heard_at: when it last gave a sign of life. finished: tasks that it made.
    batches: its slots are one engine. is_hung: it is being killed. is_doomed: it is to be, for its GPU has failed.
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
    phase: str = "interpreter"
    heard_at: float = 0.0
    finished: int = 0
    batches: bool = False
    is_hung: bool = False
    is_doomed: bool = False

    def __post_init__(self) -> None:
        self.heard_at = self.spawned_at

    def move(self, state: WorkerState) -> None:
        """Change state. Raises ValueError for a move that is not in the table."""
        if state not in MOVES[self.state]:
            raise ValueError(f"a worker cannot go from {self.state.value} to {state.value}")
        self.state = state

    @property
    def takes_work(self) -> bool:
        """Whether it takes utterances, now or when a slot is free: none while a cancelled one does not stop."""
        is_closed = self.is_hung or self.is_doomed or any(run.is_stuck for run in self.running.values())
        return self.state in (WorkerState.IDLE, WorkerState.BUSY) and not is_closed

    @property
    def free_slots(self) -> int:
        """How many more utterances it takes now."""
        return self.slots - len(self.running) if self.takes_work else 0

    @property
    def has_listeners(self) -> bool:
        """Whether somebody waits for what runs in it."""
        return any(not run.is_cancelled for run in self.running.values())

    @property
    def is_of_use(self) -> bool:
        """Whether it takes work, now or later."""
        return self.state is not WorkerState.DRAINING and not self.is_hung

    @property
    def is_quarantined(self) -> bool:
        """Whether a suspect runs in it that has not sounded yet: it runs alone."""
        return any(run.is_suspect and not run.has_sounded for run in self.running.values())

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
