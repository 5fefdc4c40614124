"""A machine and its clients in virtual time: stands for processes and listeners, which no test can wait for.

The machine is noisy and concave: its slots share a rate that grows less with each busy one, and no two utterances of
one length take the same time. An answer is heard as it is made, and the silences that its listener suffers are counted.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from core.speech import Params, Priors, Reference, Utterance
from scheduler.job import JobSpec
from scheduler.messages import (
    Cancel,
    Consumed,
    DeviceMemory,
    Died,
    Fail,
    Finished,
    FirstAudio,
    Kill,
    Memory,
    Progress,
    Ready,
    Retire,
    Spawn,
    Start,
    Submitted,
    Tick,
)
from scheduler.scheduler import Scheduler

CHARS_PER_S = 12.0
"""Of this machine's voice: slower than the scheduler believes, which it has to learn."""


def concave(busy: int) -> float:
    """Seconds of audio a second: 2.0, 3.6, 4.9, 5.9 for 1 to 4 busy slots."""
    return 2.0 * sum(0.8**slot for slot in range(busy))


@dataclass
class Story:
    """What one client lived through. Times are seconds since the start. dry_s: silences behind the first sound."""

    spec: JobSpec
    came: float
    forecast_s: float
    first: float | None = None
    ended: float | None = None
    error: Exception | None = None
    dry_s: float = 0.0
    made: dict[int, float] = field(default_factory=dict)
    heard: int = 0
    plays_until: float = 0.0

    @property
    def waited_s(self) -> float:
        assert self.first is not None
        return self.first - self.came


@dataclass
class Room:
    """Memory of the machine. free: units that no worker holds; a worker takes `each` while it loads."""

    free: float = 100.0
    each: float = 2.0
    loads_that_fail: int = 0


@dataclass
class _Running:
    worker: int
    job: int
    index: int
    audio_s: float
    left: float


class Machine:
    """Run it once; the stories tell the rest."""

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        slots: int,
        rate: Callable[[int], float] = concave,
        seed: int = 1,
        start_s: float = 5.0,
        room: Room | None = None,
    ):
        self.scheduler = scheduler
        self.start_s = start_s
        self.room = room or Room()
        self.loading: dict[int, float] = {}
        self.loaded = {1}
        self.most_workers = 1
        self.told_memory = -1.0
        self.slots = slots
        self.rate = rate
        self.chance = random.Random(seed)
        self.now = 0.0
        self.stories: dict[int, Story] = {}
        self.running: dict[int, _Running] = {}
        self.order: list[tuple[int, int]] = []
        scheduler.start(-start_s)
        rates = tuple(rate(busy) for busy in range(1, 4 * slots + 1))
        self.prior = Priors(rates=rates, start_s=start_s, memory_bytes=2)
        self.tell(Ready(1, slots, self.prior))

    def run(self, arrivals: Iterable[tuple[float, JobSpec]], until: float = 1e6) -> dict[int, Story]:
        coming = sorted(arrivals, key=lambda arrival: arrival[0])
        while (coming or self.running or self.loading) and self.now < until:
            if self.now - self.told_memory >= 0.5:
                self.told_memory = self.now
                devices = (DeviceMemory("cpu", int(self.room.free)),)
                self.tell(Memory(devices, dict.fromkeys(self.loaded, 2)))
            each = self.rate(len(self.running)) / len(self.running) if self.running else 0.0
            ends = {task: self.now + run.left / each for task, run in self.running.items()}
            wake = self.scheduler.next_wake(self.now)
            moments = [*ends.values(), *self.loading.values()]
            moments += [moment for moment in (coming[0][0] if coming else None, wake) if moment is not None]
            then = max(self.now, min(moments))
            for run in self.running.values():
                run.left -= (then - self.now) * each
            self.now = then
            if coming and coming[0][0] <= then:
                self.arrive(coming.pop(0)[1])
            elif self.loading and min(self.loading.values()) <= then:
                self.load(min(self.loading, key=lambda worker: self.loading[worker]))
            elif ends and min(ends.values()) <= then:
                self.finish(min(ends, key=lambda task: ends[task]))
            else:
                for worker in self.loaded:
                    self.tell(Progress(worker))
                self.tell(Tick())
        return self.stories

    def arrive(self, spec: JobSpec) -> None:
        self.stories[spec.id] = Story(spec, self.now, self.scheduler.forecast_s(spec, self.now))
        self.tell(Submitted(spec))

    def load(self, worker: int) -> None:
        del self.loading[worker]
        if self.room.loads_that_fail or self.room.free < 0:
            self.room.loads_that_fail = max(0, self.room.loads_that_fail - 1)
            out = self.room.free < 0
            self.room.free += self.room.each
            self.tell(Died(worker, "it broke", is_out_of_memory=out))
            return
        self.loaded.add(worker)
        self.most_workers = max(self.most_workers, len(self.loaded))
        self.tell(Ready(worker, self.slots, self.prior))

    def finish(self, task: int) -> None:
        run = self.running.pop(task)
        story = self.stories[run.job]
        assert run.index not in story.made, "made twice"
        story.made[run.index] = run.audio_s
        while story.heard in story.made:
            self.hear(story)
        self.tell(Finished(run.worker, task, run.audio_s))
        if len(story.made) == len(story.spec.utterances):
            story.ended = self.now

    def hear(self, story: Story) -> None:
        audio_s = story.made[story.heard]
        if story.first is None:
            story.first = self.now
            story.plays_until = self.now
        story.dry_s += max(0.0, self.now - story.plays_until)
        story.plays_until = max(story.plays_until, self.now) + audio_s
        self.tell(FirstAudio(story.spec.id, story.heard))
        self.tell(Consumed(story.spec.id, audio_s, audio_s))
        story.heard += 1

    def tell(self, event) -> None:
        for command in self.scheduler.handle(event, self.now):
            match command:
                case Spawn(worker, _):
                    assert self.room.free >= self.room.each, "more memory was promised than there is"
                    self.room.free -= self.room.each
                    self.loading[worker] = self.now + self.start_s
                case Retire(worker):
                    assert worker not in {run.worker for run in self.running.values()}, "retired at work"
                    self.loaded.discard(worker)
                    self.room.free += self.room.each
                    self.tell(Died(worker))
                case Start(worker, task):
                    audio_s = len(task.utterance.text) / CHARS_PER_S / task.params.speed
                    noise = self.chance.lognormvariate(0, 0.15)
                    run = _Running(worker, task.job, task.utterance.index, audio_s, audio_s * noise)
                    self.running[task.id] = run
                    self.order.append((task.job, task.utterance.index))
                    assert worker in self.loaded
                    assert sum(run.worker == worker for run in self.running.values()) <= self.slots, "overfilled"
                case Fail(job, error):
                    assert self.stories[job].first is None, "refused after it was admitted"
                    self.stories[job].error = error
                case Cancel() | Kill():
                    raise AssertionError("nobody left, and nobody hangs")


def job(
    number: int,
    *chars: int,
    client: str = "one",
    streamed: bool = True,
    paced: bool = False,
    max_wait_s: float | None = None,
) -> JobSpec:
    """A job of utterances of so many characters."""
    parts = tuple(Utterance(index, "x" * count, "en") for index, count in enumerate(chars))
    return JobSpec(
        parts,
        Reference("alloy"),
        id=number,
        params=Params(),
        client=client,
        streamed=streamed,
        paced=paced,
        max_wait_s=max_wait_s,
    )
