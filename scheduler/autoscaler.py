"""When cold workers come and go. Decides; the scheduler acts.

One more comes where the extra rate that the device's curve promises shortens the drain of the queue by more than the
start takes, and where memory is free: two processes on one GPU that make 4.6 instead of 4.2 do not look like double. It
goes when it has been idle, later places later, so that they do not all go at once.

Where workers batch, one fills a GPU: each other GPU gets one as soon as the first has loaded, and keeps it; none comes
to a GPU that has one.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from scheduler.fleet import Fleet
from scheduler.ledger import Ledger
from scheduler.worker import Worker, WorkerKind, WorkerState

DEFAULT_SIZE = 6
"""Cold workers at most, where the backend gains from processes and the operator says nothing."""


@dataclass(frozen=True, slots=True)
class ColdPool:
    """What the operator allows.

    size: workers at most; None: DEFAULT_SIZE where the backend gains from processes, else none.
    idle_s, stagger_s: a worker goes after idle_s + place x stagger_s without work. interval_s: between two decisions.
    safety: how many times its own start a worker must save. streams: whether cold workers take streams.
    hot_idle_s: after which the hot worker goes too; 0: never. least_bytes: free memory without which none is started.
    shares_fate: whether a fault of one worker on a GPU is one of all that are there.
    """

    size: int | None = None
    idle_s: float = 60.0
    stagger_s: float = 10.0
    interval_s: float = 0.5
    safety: float = 0.8
    streams: bool = False
    hot_idle_s: float = 0.0
    least_bytes: int = 0
    shares_fate: bool = False


NO_COLD_POOL = ColdPool(size=0)


@dataclass(frozen=True, slots=True)
class Demand:
    """What could run on cold workers. backlog_s: seconds of audio. parts: in so many utterances."""

    backlog_s: float
    parts: int


@dataclass(slots=True)
class Autoscaler:
    """The cold pool's rules. gains: whether the backend makes more audio with more processes. next_at: not before.

    batches: whether one worker is all that a GPU is for.
    """

    cold: ColdPool
    fleet: Fleet
    ledger: Ledger
    gains: bool = False
    batches: bool = False
    next_at: float = 0.0

    @property
    def size(self) -> int:
        """Cold workers at most."""
        if self.batches:
            others = max(0, self.ledger.count - 1)
            return others if self.cold.size is None else min(others, self.cold.size)
        if self.cold.size is None:
            return DEFAULT_SIZE if self.gains else 0
        return self.cold.size

    @property
    def room(self) -> int:
        """How many more may come, whatever they are worth."""
        return max(0, self.size - len(self.fleet.of(WorkerKind.COLD)))

    def where(self, demand: Callable[[], Demand], now: float) -> str | None:
        """The device on which a worker should be started now; one load at a time on each, to see what each takes."""
        if now < self.next_at or not self.room:
            return None
        device = self.ledger.best(self.need_bytes, besides=self._taken)
        if device is None or self.ledger.is_unsure(device):
            return None
        self.next_at = now + self.cold.interval_s
        return device if self.batches or self.wanted(demand(), device) else None

    def promise(self, worker: Worker) -> None:
        """It starts to load."""
        self.ledger.promise(worker.id, worker.device, self.need_bytes)

    def wanted(self, demand: Demand, device: str | None = None) -> int:
        """How many more workers are worth their start, if memory were no question. device: where, the hot one's."""
        hot = self.fleet.hot
        if hot is None or not hot.slots or not self.room:
            return 0
        device = device or self.fleet.home
        start_s = self.fleet.start_s(device)
        loading = self._loading(hot.slots)
        slots = self.fleet.slots + loading.total()

        def rate(more: int) -> float:
            return self.fleet.rate(loading + Counter({device: more * hot.slots}))

        count = 0
        while count < self.room and demand.parts > slots + count * hot.slots:
            now, then = rate(count), rate(count + 1)
            left_s = demand.backlog_s - now * start_s  # what is not made yet when it is there
            if left_s <= 0 or left_s / now - left_s / then <= self.cold.safety * start_s:
                break
            count += 1
        return count

    def soon(self, demand: Demand) -> tuple[float, float]:
        """The rate of all workers once those are there that load or that this queue will bring, and when that is."""
        hot = self.fleet.hot
        if hot is None or not hot.slots:
            return 0.0, 0.0
        more = self._loading(hot.slots)
        if device := self.ledger.best(self.need_bytes, besides=self._taken):
            fit = self.ledger.room_bytes(device) // max(1, self.need_bytes)
            more[device] += hot.slots * min(fit, self.wanted(demand, device))
        return self.fleet.rate(more), max((self.fleet.start_s(where) for where in more), default=0.0)

    @property
    def _taken(self) -> frozenset[str]:
        """Devices on which no worker may come, whatever is free there."""
        return frozenset(worker.device for worker in self.fleet) if self.batches else frozenset()

    @property
    def need_bytes(self) -> int:
        """Memory that one more worker needs."""
        prior = self.fleet.priors.memory_bytes
        return prior if self.batches else self.ledger.need_bytes(prior)  # such a one takes what there is

    def _loading(self, each: int) -> Counter[str]:
        """Slots that loading cold workers will bring, by device. each: that one brings."""
        starting = (worker for worker in self.fleet.of(WorkerKind.COLD) if worker.state is WorkerState.STARTING)
        devices = Counter(worker.device for worker in starting)
        return Counter({device: count * each for device, count in devices.items()})

    def idle(self, *, has_jobs: bool) -> list[tuple[Worker, float]]:
        """Idle workers that may go, and when. has_jobs: then the hot one stays, for the next utterance may be near."""
        return [
            (worker, worker.idle_since + patience_s)
            for worker in self.fleet
            if worker.state is WorkerState.IDLE
            and worker.idle_since is not None
            and not (has_jobs and worker.kind is WorkerKind.HOT)
            and not (self.batches and worker.kind is WorkerKind.COLD)
            and (patience_s := self._patience_s(worker))
        ]

    def _patience_s(self, worker: Worker) -> float:
        if worker.kind is WorkerKind.HOT:
            return self.cold.hot_idle_s
        return self.cold.idle_s + worker.place * self.cold.stagger_s
