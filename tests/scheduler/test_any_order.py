"""A machine of any events in any order: no slot is overfilled, no utterance is lost or spoken twice, no memory promised
twice, and a suspect never has company."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.errors import DeadlineExceeded, Overloaded
from core.speech import Priors, Reference, Task, Utterance
from scheduler.admission import Limits
from scheduler.autoscaler import ColdPool
from scheduler.job import JobSpec
from scheduler.messages import (
    Cancel,
    Consumed,
    DeviceMemory,
    Died,
    Fail,
    Finished,
    FirstAudio,
    Joined,
    Kill,
    Left,
    Memory,
    Phase,
    Progress,
    Ready,
    Rerun,
    Retire,
    Spawn,
    Start,
    Stopped,
    Submitted,
    Tick,
)
from scheduler.scheduler import Scheduler

EACH = 2
"""Units of memory that a worker takes."""

DEADLINE_S = 300.0


class World(RuleBasedStateMachine):
    """Workers and clients that do anything; the scheduler's commands are carried out to the letter."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.starting: set[int] = set()
        self.ending: set[int] = set()
        self.slots: dict[int, dict[int, Task]] = {}
        self.sizes: dict[int, int] = {}
        self.cancelled: set[int] = set()
        self.accused: set[tuple[int, int]] = set()
        self.on_trial: dict[int, int] = {}
        self.done: dict[int, set[int]] = {}
        self.open: dict[int, JobSpec] = {}
        self.came: dict[int, float] = {}
        self.free = 0
        self.jobs = 0

    @initialize(cold=st.integers(0, 3), streams=st.booleans(), gains=st.booleans())
    def open_up(self, cold, streams, gains):
        self.streams, self.gains, self.cap = streams, gains, cold
        pool = ColdPool(size=cold, idle_s=3.0, stagger_s=1.0, interval_s=0.25, safety=0.0, streams=streams)
        limits = Limits(jobs=30, deadline_s=DEADLINE_S)
        self.scheduler = Scheduler(lead_s=5.0, cold=pool, limits=limits)
        (spawn,) = self.scheduler.start()
        self.starting.add(spawn.worker)
        self.hot = {spawn.worker}

    def tell(self, event):
        self.now += 0.25
        self.obey(self.scheduler.handle(event, self.now))

    def obey(self, commands):
        for command in commands:
            match command:
                case Spawn(worker, _):
                    self.spawn(worker)
                case Start(worker, task):
                    self.start(worker, task)
                case Cancel(worker, task_id):
                    assert task_id in self.slots[worker]
                    self.cancelled.add(task_id)
                case Retire(worker):
                    assert not self.slots.pop(worker), "retired at work"
                    self.ending.add(worker)
                case Kill(worker, _):
                    self.ending.add(worker)
                case Fail(job, error):
                    waited_s = self.now - self.came[job]
                    assert not isinstance(error, DeadlineExceeded) or waited_s >= DEADLINE_S
                    assert not isinstance(error, Overloaded) or waited_s == 0, "refused when it was in"
                    del self.open[job]
                case Rerun(job, index):
                    assert job in self.open
                    assert index not in self.done[job]

    def spawn(self, worker):
        if self.hot & {*self.slots, *self.starting, *self.ending}:
            self.free -= EACH
            assert self.free >= 0, "more memory was promised than there is"
            assert len({*self.slots, *self.starting} - self.hot) < self.cap
        else:
            self.hot = {worker}
        self.starting.add(worker)

    def start(self, worker, task):
        name = task.job, task.utterance.index
        assert task.job in self.open
        assert worker not in self.ending
        assert task.utterance.index not in self.done[task.job], "spoken twice"
        assert name not in {(t.job, t.utterance.index) for t in self.wanted()}, "runs twice"
        assert worker in self.hot or self.streams or not self.open[task.job].paced
        assert worker not in self.on_trial, "a suspect has company"
        if name in self.accused:
            assert not self.slots[worker], "a suspect joins others"
            self.on_trial[worker] = task.id
        self.slots[worker][task.id] = task

    def wanted(self) -> list[Task]:
        return [t for tasks in self.slots.values() for t in tasks.values() if t.id not in self.cancelled]

    def pick(self, data) -> tuple[int, Task]:
        return data.draw(st.sampled_from([(w, t) for w, tasks in self.slots.items() for t in tasks.values()]))

    @rule(utterances=st.integers(1, 6), paced=st.booleans(), client=st.sampled_from("ab"))
    def submit(self, utterances, paced, client):
        self.jobs += 1
        parts = tuple(Utterance(i, f"words {i} of {self.jobs} to speak", "en") for i in range(utterances))
        self.open[self.jobs] = JobSpec(parts, Reference("alloy"), id=self.jobs, paced=paced, client=client)
        self.done[self.jobs] = set()
        self.came[self.jobs] = self.now + 0.25
        self.tell(Submitted(self.open[self.jobs]))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), client=st.sampled_from("abc"))
    def join(self, data, client):
        self.tell(Joined(data.draw(st.sampled_from(sorted(self.open))), client))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def leave(self, data):
        job = data.draw(st.sampled_from(sorted(self.open)))
        del self.open[job]
        self.tell(Left(job))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), seconds=st.floats(0, 20))
    def consume(self, data, seconds):
        self.tell(Consumed(data.draw(st.sampled_from(sorted(self.open))), seconds, seconds))

    @rule(free=st.integers(0, 8))
    def read_memory(self, free):
        self.free = max(0, free - EACH * len(self.starting - self.hot))
        workers = dict.fromkeys(self.slots, EACH)
        self.tell(Memory((DeviceMemory("cpu", self.free + EACH * len(self.starting - self.hot)),), workers))

    @precondition(lambda self: self.starting)
    @rule(data=st.data(), slots=st.integers(1, 3))
    def load(self, data, slots):
        worker = data.draw(st.sampled_from(sorted(self.starting)))
        self.tell(Phase(worker, data.draw(st.sampled_from(["imports", "weights"]))))
        if worker in self.starting - self.ending:
            self.come(worker, slots)

    def come(self, worker, slots):
        self.starting.discard(worker)
        self.slots[worker], self.sizes[worker] = {}, slots
        self.tell(Ready(worker, slots, Priors(memory_bytes=EACH, start_s=1.0), gains_from_processes=self.gains))

    @precondition(lambda self: any(self.slots.values()))
    @rule(data=st.data(), is_released=st.booleans())
    def sound(self, data, is_released):
        worker, task = self.pick(data)
        self.accused.discard((task.job, task.utterance.index))
        if self.on_trial.get(worker) == task.id:
            del self.on_trial[worker]
        if is_released and task.id not in self.cancelled:
            self.tell(FirstAudio(task.job, task.utterance.index))
        self.tell(Progress(worker, task.id))

    @rule()
    def live(self):
        for worker in list(self.slots):
            self.tell(Progress(worker))

    @precondition(lambda self: any(self.slots.values()))
    @rule(data=st.data(), works=st.sampled_from([True, True, True, False]))
    def finish(self, data, works):
        worker, task = self.pick(data)
        self.end(worker, task, works)

    def end(self, worker, task, works):
        del self.slots[worker][task.id]
        if self.on_trial.get(worker) == task.id:
            del self.on_trial[worker]
        if task.id in self.cancelled:
            self.tell(Stopped(worker, task.id))
            return
        self.accused.discard((task.job, task.utterance.index))
        if works:
            self.done[task.job].add(task.utterance.index)
            if len(self.done[task.job]) == len(self.open[task.job].utterances):
                del self.open[task.job]
        self.tell(Finished(worker, task.id, 1.0 if works else None))

    @precondition(lambda self: self.slots or self.starting or self.ending)
    @rule(data=st.data(), is_out_of_memory=st.booleans())
    def die(self, data, is_out_of_memory):
        worker = data.draw(st.sampled_from(sorted({*self.slots, *self.starting, *self.ending})))
        self.bury(worker, is_out_of_memory)

    def bury(self, worker, is_out_of_memory=False):
        for where in (self.starting, self.ending):
            where.discard(worker)
        if worker not in self.hot:
            self.free += EACH
        aboard = [task for task in self.slots.pop(worker, {}).values() if task.id not in self.cancelled]
        convict = self.on_trial.pop(worker, None)
        self.accused |= {(task.job, task.utterance.index) for task in aboard}
        self.tell(Died(worker, "killed", is_out_of_memory))
        for task in aboard:
            is_guilty = task.id == convict and not is_out_of_memory
            assert not (is_guilty and task.job in self.open), "a suspect that died alone is tried again"

    @rule(seconds=st.floats(0, 40), late_s=st.sampled_from([0.0, 0.0, 5.0]))
    def wait(self, seconds, late_s):
        self.now += seconds
        self.tell(Tick(late_s))

    @invariant()
    def no_slot_is_overfilled_and_the_view_is_true(self):
        assert all(len(tasks) <= self.sizes[worker] for worker, tasks in self.slots.items())
        if hasattr(self, "scheduler"):
            view = self.scheduler.view(self.now)
            assert view.jobs == len(self.open)
            assert view.busy == sum(len(tasks) for tasks in self.slots.values())

    def teardown(self):
        """Whatever happened before: with good workers and clients that listen, every open job comes to its end."""
        for _ in range(400):
            if not hasattr(self, "scheduler") or not self.open:
                return
            for worker in [*self.ending]:
                self.bury(worker)
            self.live()
            self.now += 15.0
            self.tell(Tick())
            for worker in list(self.starting - self.ending):
                self.come(worker, 2)
            for job in list(self.open):
                self.tell(Consumed(job, 100.0, 1.0))
            for worker, tasks in list(self.slots.items()):
                for task in list(tasks.values()):
                    if worker not in self.ending and (task.id in self.cancelled or task.job in self.open):
                        self.end(worker, task, works=True)
        raise AssertionError(f"jobs never ended: {sorted(self.open)}")


World.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnyOrder = World.TestCase
