"""The lives of worker processes: who is started, started again, retired, or killed because it hangs.

The hot worker is started again when it died: at once after a good life, else after a growing pause. Cold workers come
when they are worth their start (`autoscaler`) and memory is free (`ledger`), and go when they are idle.
"""

from collections.abc import Callable, Iterator
from itertools import count

from scheduler.autoscaler import Autoscaler, ColdPool, Demand
from scheduler.fleet import Fleet
from scheduler.ledger import Ledger
from scheduler.messages import (
    ColdView,
    Command,
    DeviceMemory,
    Died,
    Kill,
    Memory,
    Ready,
    Retire,
    Spawn,
    WorkerView,
)
from scheduler.watchdog import Patience, Watchdog
from scheduler.worker import MAX_BACK_OFF_S, Worker, WorkerKind, WorkerState, pause_s

HOPELESS_STARTS = 3
"""Starts that failed in a row before waiting jobs are told so; later starts go on in the background."""

HOPE_S = 60.0
"""How long an engine that has spoken is thought to come back after it died."""

HOPEFUL_PAUSE_S = 2.0
"""Longest pause before a restart until then: listeners wait for it."""


class Supervisor:
    """Starts and ends workers, by commands for their processes; what they speak is not its business."""

    def __init__(self, fleet: Fleet, cold: ColdPool, patience: Patience) -> None:
        """fleet: shared with who fills its slots."""
        self.fleet = fleet
        self.restarts = 0
        self.reason = ""
        self.is_unloaded = False
        self.is_hopeless = False
        """Whether the hot worker does not start, however often it is tried."""
        self._watchdog = Watchdog(fleet, patience)
        self._ledger = Ledger(least_bytes=cold.least_bytes)
        self._scaler = Autoscaler(cold, fleet, self._ledger)
        self._spawn_at: float | None = None
        self._deaths_in_a_row = 0
        self._cold_deaths = 0
        self._failed_starts = 0
        self._hoped_until = 0.0
        self._is_asked_for = False
        self._shares_fate = cold.shares_fate
        self._worker_ids = count(1)

    def start(self, now: float) -> list[Command]:
        """The first command: spawn the hot worker."""
        return [self._spawn(WorkerKind.HOT, self.fleet.home, now)]

    def load(self) -> None:
        """Let the hot worker come back with the next step, if it is unloaded."""
        self._is_asked_for = self.is_unloaded

    # --- what is heard

    def ready(self, event: Ready, now: float) -> None:
        """A worker has loaded."""
        worker = self.fleet.ready(event, now)
        if worker is not None:
            self._ledger.settle(event.worker)
            self._scaler.gains, self._scaler.batches = event.gains_from_processes, event.batches
            if worker.kind is WorkerKind.HOT:
                self._failed_starts = 0
                self.is_hopeless = False
                self.reason = ""

    def works(self, worker_id: int) -> None:
        """A worker has made something of use: if it is the hot one, its next death is the first one again."""
        hot = self.fleet.hot
        if hot is not None and hot.id == worker_id:
            self._deaths_in_a_row = 0

    def bury(self, event: Died, now: float) -> Worker | None:
        """A process is gone; its worker with what was aboard, None where it is not known."""
        worker = self.fleet.bury(event.worker, now)
        if worker is None:
            return None
        was = worker.state
        worker.move(WorkerState.DEAD)
        self._ledger.release(worker.id)
        if event.is_out_of_memory:
            self._ledger.bar(worker.device, worker.id)
        if event.is_device_fault and self._shares_fate:
            for other in self.fleet:
                other.is_doomed = other.is_doomed or other.device == worker.device
        if was is not WorkerState.DRAINING:
            if worker.kind is WorkerKind.HOT:
                self._mourn_hot(worker, was, event.reason, now)
            else:
                self._mourn_cold(was, now)
        return worker

    def _mourn_hot(self, worker: Worker, was: WorkerState, reason: str, now: float) -> None:
        if was is WorkerState.STARTING:
            self._failed_starts += 1
        elif worker.finished:
            self._hoped_until = now + HOPE_S
        self.is_hopeless = self._failed_starts >= HOPELESS_STARTS and now >= self._hoped_until
        self.reason = reason or "the speech engine stopped; it is being started again"
        longest_s = HOPEFUL_PAUSE_S if now < self._hoped_until else MAX_BACK_OFF_S
        self._spawn_at = now + pause_s(self._deaths_in_a_row, longest_s)
        self._deaths_in_a_row += 1

    def _mourn_cold(self, was: WorkerState, now: float) -> None:
        self._cold_deaths = self._cold_deaths + 1 if was is WorkerState.STARTING else 0
        self._scaler.next_at = max(self._scaler.next_at, now + pause_s(self._cold_deaths + 1))

    def read(self, memory: Memory) -> None:
        """What is free on the devices."""
        self._ledger.read(memory)

    # --- what follows

    def steps(self, demand: Callable[[], Demand], *, has_jobs: bool, now: float) -> Iterator[Command]:
        """Processes that come and go now. has_jobs: for which the hot worker stays, or comes back."""
        for worker in self.fleet:
            if worker.is_doomed and not worker.is_hung:
                worker.is_hung = True
                yield Kill(worker.id, "a fault of the GPU that it shares with others")
        if self._spawn_at is not None and now >= self._spawn_at:
            self.restarts += 1
            yield self._respawn(now)
        elif self.is_unloaded and (has_jobs or self._is_asked_for):
            yield self._respawn(now)
        if device := self._scaler.where(demand, now):
            spawn = self._spawn(WorkerKind.COLD, device, now)
            self._scaler.promise(self.fleet.workers[spawn.worker])
            yield spawn
        for worker, retires_at in self._scaler.idle(has_jobs=has_jobs):
            if retires_at <= now:
                worker.move(WorkerState.DRAINING)
                self.is_unloaded = self.is_unloaded or worker.kind is WorkerKind.HOT
                yield Retire(worker.id)

    def kill_hung(self, late_s: float, now: float) -> Iterator[Command]:
        """Workers that make no progress; ask at a tick, when all that they said has been heard.

        late_s: for which the server itself stood still. A worker in which only cancelled tasks do not stop takes
        nothing more, and is ended when nobody listens to it any more.
        """
        self.fleet.forgive(late_s, now)
        for worker, bound in self._watchdog.overdue(now):
            if (run := bound.run) and run.is_cancelled and worker.has_listeners:
                run.is_stuck = True
                continue
            if worker.state is WorkerState.STARTING:
                self._watchdog.give_longer(worker, now)
            worker.is_hung = True
            yield Kill(worker.id, bound.reason)

    def _respawn(self, now: float) -> Spawn:
        self._spawn_at, self.is_unloaded, self._is_asked_for = None, False, False
        return self._spawn(WorkerKind.HOT, self.fleet.home, now)

    def _spawn(self, kind: WorkerKind, device: str, now: float) -> Spawn:
        places = {worker.place for worker in self.fleet if worker.kind is WorkerKind.COLD}
        place = next(place for place in count() if place not in places)
        worker = Worker(next(self._worker_ids), kind, device, place, now)
        self.fleet.add(worker)
        return Spawn(worker.id, device)

    # --- figures

    @property
    def may_grow(self) -> bool:
        """Whether one more worker could come, if memory were free."""
        return self._scaler.room > 0

    @property
    def has_seen_memory(self) -> bool:
        """Whether there was a reading yet."""
        return self._ledger.is_read

    def wakes(self, now: float, *, has_jobs: bool, is_wanted: bool) -> Iterator[float]:
        """When `steps` or `kill_hung` have something to do without any event. is_wanted: utterances wait for a slot."""
        for hangs_at in self._watchdog.wakes():
            yield max(now, hangs_at)  # one that is overdue was not to be acted on before
        if self._spawn_at is not None:
            yield self._spawn_at
        for _, retires_at in self._scaler.idle(has_jobs=has_jobs):
            yield retires_at
        if is_wanted and self.may_grow and self._scaler.next_at > now:
            yield self._scaler.next_at

    def starts_in_s(self, now: float) -> float:
        """Seconds until there is a slot at all."""
        return self.fleet.starts_in_s(now, self._spawn_at)

    def soon(self, demand: Demand) -> tuple[float, float]:
        """See `Autoscaler.soon`; zeros where no worker may come."""
        return self._scaler.soon(demand) if self.may_grow else (0.0, 0.0)

    def cold_view(self, demand: Demand) -> ColdView:
        """A frozen look at the cold pool."""
        cold = self.fleet.of(WorkerKind.COLD)
        loading = sum(worker.state is WorkerState.STARTING for worker in cold)
        return ColdView(
            active=len(cold) - loading,
            loading=loading,
            wanted=self._scaler.wanted(demand),
            cap=self._scaler.size,
            need_bytes=self._scaler.need_bytes,
            room_bytes=self._ledger.most_bytes(),
        )

    @property
    def memory(self) -> DeviceMemory | None:
        """What was last read of the hot worker's device."""
        return self._ledger.reading(self.fleet.home)

    def views(self, now: float) -> tuple[WorkerView, ...]:
        """A frozen look at each worker."""
        return tuple(
            WorkerView(
                id=worker.id,
                kind=worker.kind.value,
                state="hung" if worker.is_hung else worker.state.value,
                device=worker.device,
                uptime_s=now - worker.spawned_at,
                slots=worker.slots,
                busy=len(worker.running),
                finished=worker.finished,
                memory_bytes=self._ledger.held.get(worker.id),
            )
            for worker in self.fleet
        )

    def backoff_s(self, now: float) -> float:
        """Seconds until the next spawn of the hot worker; 0 where none is planned."""
        return max(0.0, self._spawn_at - now) if self._spawn_at is not None else 0.0
