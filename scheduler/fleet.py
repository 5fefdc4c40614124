"""The workers and the devices they share: who has free slots, how fast all of them are, what a start costs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from core.speech import Priors, Task, Utterance
from scheduler.estimator import BusyMeter, Curve, Estimator
from scheduler.messages import Ready
from scheduler.worker import Run, Worker, WorkerKind, WorkerState

STREAM_FACTOR = 1.2
"""How much faster than real time each sequence of a batching worker must be while somebody listens to one of them."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What one life of the server knows for the next. priors: of the backend that it was learned of.

    curves: by device. starts: seconds from spawn to ready, by device.
    """

    priors: Priors
    curves: Mapping[str, Curve]
    starts: Mapping[str, float]


class Fleet:
    """All worker processes that are not dead. A device has one curve, whichever process has its slots."""

    def __init__(self, *, home: str, learned: Learned | None = None) -> None:
        """home: the hot worker's device, by whose curve the length of texts and first sounds are told.

        learned: in an earlier life; forgotten where another backend comes than it was learned of.
        """
        learned = learned or Learned(Priors(), {}, {})
        self.home = home
        self.workers: dict[int, Worker] = {}
        self.priors = learned.priors
        self._estimators = {device: Estimator(self.priors, curve) for device, curve in learned.curves.items()}
        self._meters: dict[str, BusyMeter] = {}
        self._starts = dict(learned.starts)
        self.phases: dict[str, float] = {}
        """Longest seconds that each phase of a start took."""

    def __iter__(self) -> Iterator[Worker]:
        """Hot ones first: they take work before cold ones do."""
        return iter(sorted(self.workers.values(), key=lambda worker: (worker.kind is WorkerKind.COLD, worker.id)))

    def of(self, kind: WorkerKind) -> list[Worker]:
        """The workers of one kind, those that leave not counted."""
        return [each for each in self if each.kind is kind and each.state is not WorkerState.DRAINING]

    @property
    def hot(self) -> Worker | None:
        """The resident worker, loading or loaded."""
        return next(iter(self.of(WorkerKind.HOT)), None)

    @property
    def learned(self) -> Learned:
        """What is worth to be kept."""
        curves = {device: estimator.learned for device, estimator in self._estimators.items()}
        return Learned(self.priors, curves, dict(self._starts))

    # --- lives

    def add(self, worker: Worker) -> None:
        """A process was started."""
        self.workers[worker.id] = worker

    def enter(self, worker_id: int, phase: str, now: float) -> None:
        """A worker that starts has come further."""
        worker = self.workers.get(worker_id)
        if worker is None or worker.state is not WorkerState.STARTING:
            return
        self.phases[worker.phase] = max(self.phases.get(worker.phase, 0.0), now - worker.heard_at)
        worker.phase, worker.heard_at = phase, now

    def ready(self, event: Ready, now: float) -> Worker | None:
        """A worker has loaded."""
        self.enter(event.worker, "ready", now)
        worker = self.workers.get(event.worker)
        if worker is None or worker.state is WorkerState.DRAINING:
            return None
        if self.priors != event.priors:  # another backend than before: what was learned is of no use
            self.priors = event.priors
            self._estimators.clear()
            self._starts.clear()
        worker.slots, worker.batches, worker.idle_since = event.slots, event.batches, now
        worker.move(WorkerState.IDLE)
        known_s = self._starts.get(worker.device)
        took_s = now - worker.spawned_at
        self._starts[worker.device] = took_s if known_s is None else 0.7 * known_s + 0.3 * took_s
        return worker

    def bury(self, worker_id: int, now: float) -> Worker | None:
        """A process is gone, and the slots that it had."""
        worker = self.workers.pop(worker_id, None)
        if worker is not None:
            self._meter(worker.device).add(-len(worker.running), now)
        return worker

    # --- slots

    def take(self, worker: Worker, task: Task, now: float, *, is_suspect: bool = False) -> None:
        """Put a task into a free slot."""
        meter = self._meter(worker.device)
        worker.take(Run(task, now, meter.area(now), self._slot_s(worker, task), is_suspect))
        meter.add(1, now)

    def hear(self, worker_id: int, task_id: int, now: float) -> Run | None:
        """A sign of life; and where it is audio, of which task: None where there is none of that number."""
        worker = self.workers.get(worker_id)
        if worker is None:
            return None
        worker.heard_at = now
        run = worker.running.get(task_id)
        if run is not None:
            run.heard_at = now
        return run

    def free(self, worker_id: int, task_id: int, now: float) -> Run | None:
        """Free the slot of a task; None where there is none."""
        worker = self.workers.get(worker_id)
        run = worker.give_back(task_id, now) if worker else None
        self.hear(worker_id, 0, now)
        if worker and run:
            self._meter(worker.device).add(-1, now)
        return run

    def forgive(self, seconds: float, now: float) -> None:
        """The server itself stood still for so long: nobody could be heard."""
        for worker in self.workers.values():
            worker.heard_at = min(now, worker.heard_at + seconds)
            for run in worker.running.values():
                run.heard_at = min(now, run.heard_at + seconds)

    def learn(self, worker_id: int, run: Run, audio_s: float, now: float) -> None:
        """A task was made in its slot."""
        worker = self.workers[worker_id]
        worker.finished += 1
        device, wall_s = worker.device, now - run.since
        if wall_s > 0:
            busy = (self._meter(device).area(now) - run.area) / wall_s
            speed = run.task.params.speed
            self._estimator(device).learn(run.task.utterance, speed, audio_s=audio_s, wall_s=wall_s, busy=busy)

    @property
    def slots(self) -> int:
        """Of all workers that have loaded."""
        return sum(worker.slots for worker in self.workers.values() if worker.is_of_use)

    @property
    def free_slots(self) -> int:
        """Those of them that take work now."""
        return sum(worker.free_slots for worker in self.workers.values())

    # --- figures

    def audio_s(self, utterance: Utterance, speed: float) -> float:
        """Seconds of speech that an utterance will make."""
        return self._estimator(self.home).audio_s(utterance, speed)

    def rate(self, more: Mapping[str, int] | None = None) -> float:
        """Seconds of audio a second with all slots busy, and with so many `more` of each device."""
        slots = dict(more or {})
        for worker in self.workers.values():
            if worker.slots and worker.is_of_use:
                slots[worker.device] = slots.get(worker.device, 0) + worker.slots
        return sum(self._estimator(device).rate(count) for device, count in slots.items() if count) or (
            self._estimator(self.home).rate(1)
        )

    def first_s(self, utterance: Utterance, speed: float) -> float:
        """Seconds that an utterance takes in a slot of the hot worker, beside what runs now."""
        hot = self.hot
        busy = min(self._meter(self.home).busy + 1, max(1, hot.slots if hot else 1))
        return self.audio_s(utterance, speed) * busy / self._estimator(self.home).rate(busy)

    def sustainable(self, worker: Worker) -> int:
        """How many sequences a batching worker can run that are all faster than real time by STREAM_FACTOR."""
        curve = self._estimator(worker.device)
        counts = (count for count in range(worker.slots, 1, -1) if curve.rate(count) >= count * STREAM_FACTOR)
        return next(counts, 1)

    def start_s(self, device: str) -> float:
        """Seconds from a spawn on a device to a worker that takes work."""
        return self._starts.get(device, self.priors.start_s)

    @property
    def is_start_known(self) -> bool:
        """Whether a start was seen, or is only promised."""
        return self.home in self._starts

    @property
    def word_s(self) -> float:
        """Seconds of a slot of the hot worker that a word takes; 0 as long as none was spoken."""
        return self._estimator(self.home).word_s

    def starts_in_s(self, now: float, spawn_at: float | None) -> float:
        """Seconds until there is a slot at all. spawn_at: when the next worker is started, None where none is."""
        if self.slots:
            return 0.0
        began = max((worker.spawned_at for worker in self.workers.values()), default=now)
        return max(0.0, (began if spawn_at is None else max(now, spawn_at)) + self.start_s(self.home) - now)

    def _slot_s(self, worker: Worker, task: Task) -> float:
        """Seconds that a task takes in a slot of a worker, with all of them busy."""
        rate = self._estimator(worker.device).rate(worker.slots)
        return self.audio_s(task.utterance, task.params.speed) * worker.slots / rate

    def _estimator(self, device: str) -> Estimator:
        return self._estimators.setdefault(device, Estimator(self.priors))

    def _meter(self, device: str) -> BusyMeter:
        return self._meters.setdefault(device, BusyMeter())
