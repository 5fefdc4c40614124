"""The lives of worker processes: who is started, started again, retired, or killed because it hangs.

The hot worker is started again when it died: at once after a good life, else after a growing pause. Cold workers come
when they are worth their start (`autoscaler`) and memory is free (`ledger`), and go when they are idle.
"""

from collections.abc import Callable, Iterator
from itertools import count

from scheduler.autoscaler import Autoscaler, ColdPool, Demand
from scheduler.fleet import Fleet
from scheduler.ledger import Ledger
from scheduler.messages import Command, Died, Kill, Memory, Ready, Retire, Spawn, WorkerView
from scheduler.watchdog import Patience, Watchdog
from scheduler.worker import Worker, WorkerKind, WorkerState, pause_s

HOPELESS_STARTS = 3
"""Starts that failed in a row before waiting jobs are told so; later starts go on in the background."""


class Supervisor:
    """Owner of the workers' states. Tells commands for their processes; what they speak is not its business."""

    def __init__(self, fleet: Fleet, cold: ColdPool, patience: Patience) -> None:
        """fleet: shared with who fills its slots."""
        self.fleet = fleet
        self.cold = cold
        self.watchdog = Watchdog(fleet, patience)
        self.ledger = Ledger(least_bytes=cold.least_bytes)
        self.scaler = Autoscaler(cold, fleet, self.ledger)
        self.spawn_at: float | None = None
        self.restarts = 0
        self.reason = ""
        self.is_unloaded = False
        self._deaths_in_a_row = 0
        self._cold_deaths = 0
        self._failed_starts = 0
        self._worker_ids = count(1)

    def start(self, now: float) -> list[Command]:
        """The first command: spawn the hot worker."""
        return [self._spawn(WorkerKind.HOT, self.fleet.home, now)]

    # --- what is heard

    def ready(self, event: Ready, now: float) -> None:
        """A worker has loaded."""
        self.ledger.settle(event.worker)
        worker = self.fleet.ready(event, now)
        if worker is not None:
            self.scaler.gains = event.gains_from_processes
            if worker.kind is WorkerKind.HOT:
                self._failed_starts = 0
                self.reason = ""

    def works(self) -> None:
        """A worker has made something of use: the next death is the first one again."""
        self._deaths_in_a_row = 0

    def bury(self, event: Died, now: float) -> Worker | None:
        """A process is gone; its worker with what was aboard, None where it is not known."""
        worker = self.fleet.bury(event.worker, now)
        if worker is None:
            return None
        self.ledger.release(worker.id)
        was = worker.state
        worker.move(WorkerState.DEAD)
        if event.is_out_of_memory:
            self.ledger.bar(worker.device)
        if was is not WorkerState.DRAINING:
            if worker.kind is WorkerKind.HOT:
                self._mourn_hot(was, event.reason, now)
            else:
                self._mourn_cold(was, now)
        return worker

    def _mourn_hot(self, was: WorkerState, reason: str, now: float) -> None:
        self._failed_starts += was is WorkerState.STARTING
        self.reason = reason or "the speech engine stopped; it is being started again"
        self.spawn_at = now + pause_s(self._deaths_in_a_row)
        self._deaths_in_a_row += 1

    def _mourn_cold(self, was: WorkerState, now: float) -> None:
        self._cold_deaths = self._cold_deaths + 1 if was is WorkerState.STARTING else 0
        self.scaler.next_at = max(self.scaler.next_at, now + pause_s(self._cold_deaths + 1))

    def read(self, memory: Memory) -> None:
        """What is free on the devices."""
        self.ledger.read(memory)

    # --- what follows

    def steps(self, demand: Callable[[], Demand], *, is_wanted: bool, now: float) -> Iterator[Command]:
        """Processes that come and go now. is_wanted: there are jobs, for which an unloaded worker comes back."""
        if self.spawn_at is not None and now >= self.spawn_at:
            self.restarts += 1
            yield self._respawn(now)
        elif self.is_unloaded and is_wanted:
            yield self._respawn(now)
        if device := self.scaler.where(demand, now):
            spawn = self._spawn(WorkerKind.COLD, device, now)
            self.scaler.promise(self.fleet.workers[spawn.worker])
            yield spawn
        for worker, retires_at in self.scaler.idle():
            if retires_at <= now:
                worker.move(WorkerState.DRAINING)
                self.is_unloaded = self.is_unloaded or worker.kind is WorkerKind.HOT
                yield Retire(worker.id)

    def kill_hung(self, now: float) -> Iterator[Command]:
        """Workers that make no progress; ask at a tick, when all that they said has been heard."""
        for worker, reason in self.watchdog.hung(now):
            worker.is_hung = True
            yield Kill(worker.id, reason)

    def _respawn(self, now: float) -> Spawn:
        self.spawn_at, self.is_unloaded = None, False
        return self._spawn(WorkerKind.HOT, self.fleet.home, now)

    def _spawn(self, kind: WorkerKind, device: str, now: float) -> Spawn:
        places = {worker.place for worker in self.fleet if worker.kind is WorkerKind.COLD}
        place = next(place for place in count() if place not in places)
        worker = Worker(next(self._worker_ids), kind, device, place, now)
        self.fleet.add(worker)
        return Spawn(worker.id, device)

    # --- figures

    @property
    def is_hopeless(self) -> bool:
        """Whether the hot worker does not start, however often it is tried."""
        return self._failed_starts >= HOPELESS_STARTS

    @property
    def wants_memory(self) -> bool:
        """Whether one more worker could come, if memory were free."""
        return self.scaler.room > 0

    def wakes(self) -> Iterator[float | None]:
        """When `steps` or `kill_hung` have something to do without any event; jobs' demand aside."""
        yield self.spawn_at
        yield self.watchdog.next_at()
        for _, retires_at in self.scaler.idle():
            yield retires_at

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
                memory_bytes=self.ledger.held.get(worker.id),
            )
            for worker in self.fleet
        )

    def backoff_s(self, now: float) -> float:
        """Seconds until the next spawn of the hot worker; 0 where none is planned."""
        return max(0.0, self.spawn_at - now) if self.spawn_at is not None else 0.0
