"""A machine of any events in any order: no slot is overfilled, no utterance is lost or spoken twice."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from core.speech import Priors, Reference, Task, Utterance
from scheduler.job import JobSpec
from scheduler.messages import (
    Cancel,
    Consumed,
    Died,
    Fail,
    Finished,
    FirstAudio,
    Left,
    Ready,
    Restart,
    Spawn,
    Start,
    Stopped,
    Submitted,
    Tick,
)
from scheduler.scheduler import Scheduler


class World(RuleBasedStateMachine):
    """Workers and clients that do anything; the scheduler's commands are carried out to the letter."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.scheduler = Scheduler(lead_s=5.0)
        self.starting: set[int] = set()
        self.slots: dict[int, dict[int, Task]] = {}
        self.sizes: dict[int, int] = {}
        self.cancelled: set[int] = set()
        self.done: dict[int, set[int]] = {}
        self.open: dict[int, JobSpec] = {}
        self.jobs = 0
        self.obey(self.scheduler.start())

    def tell(self, event):
        self.now += 0.25
        self.obey(self.scheduler.handle(event, self.now))

    def obey(self, commands):
        for command in commands:
            match command:
                case Spawn(worker, _):
                    self.starting.add(worker)
                case Start(worker, task):
                    assert task.job in self.open
                    assert task.utterance.index not in self.done[task.job], "spoken twice"
                    running = [t for tasks in self.slots.values() for t in tasks.values() if t.id not in self.cancelled]
                    assert (task.job, task.utterance.index) not in {(t.job, t.utterance.index) for t in running}
                    self.slots[worker][task.id] = task
                case Cancel(worker, task_id):
                    assert task_id in self.slots[worker]
                    self.cancelled.add(task_id)
                case Fail(job, _):
                    del self.open[job]
                case Restart(job, index):
                    assert job in self.open
                    assert index not in self.done[job]

    def pick(self, data) -> tuple[int, Task]:
        return data.draw(st.sampled_from([(w, t) for w, tasks in self.slots.items() for t in tasks.values()]))

    @rule(utterances=st.integers(1, 6), paced=st.booleans())
    def submit(self, utterances, paced):
        self.jobs += 1
        parts = tuple(Utterance(i, "some words to speak", "en") for i in range(utterances))
        self.open[self.jobs] = JobSpec(parts, Reference("alloy"), id=self.jobs, paced=paced)
        self.done[self.jobs] = set()
        self.tell(Submitted(self.open[self.jobs]))

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

    @precondition(lambda self: self.starting)
    @rule(data=st.data(), slots=st.integers(1, 3))
    def load(self, data, slots):
        worker = data.draw(st.sampled_from(sorted(self.starting)))
        self.starting.discard(worker)
        self.slots[worker], self.sizes[worker] = {}, slots
        self.tell(Ready(worker, slots, Priors()))

    @precondition(lambda self: any(self.slots.values()))
    @rule(data=st.data())
    def sound(self, data):
        _, task = self.pick(data)
        if task.id not in self.cancelled:
            self.tell(FirstAudio(task.job, task.utterance.index))

    @precondition(lambda self: any(self.slots.values()))
    @rule(data=st.data(), works=st.sampled_from([True, True, True, False]))
    def finish(self, data, works):
        worker, task = self.pick(data)
        del self.slots[worker][task.id]
        if task.id in self.cancelled:
            self.tell(Stopped(worker, task.id))
            return
        if works:
            self.done[task.job].add(task.utterance.index)
            if len(self.done[task.job]) == len(self.open[task.job].utterances):
                del self.open[task.job]
        self.tell(Finished(worker, task.id, 1.0 if works else None))

    @precondition(lambda self: self.slots or self.starting)
    @rule(data=st.data())
    def die(self, data):
        worker = data.draw(st.sampled_from(sorted({*self.slots, *self.starting})))
        self.starting.discard(worker)
        self.slots.pop(worker, None)
        self.tell(Died(worker, "killed"))

    @rule(seconds=st.floats(0, 40))
    def wait(self, seconds):
        self.now += seconds
        self.tell(Tick())

    @invariant()
    def no_slot_is_overfilled_and_the_view_is_true(self):
        assert all(len(tasks) <= self.sizes[worker] for worker, tasks in self.slots.items())
        view = self.scheduler.view(self.now)
        assert view.jobs == len(self.open)
        assert view.busy == sum(len(tasks) for tasks in self.slots.values())

    def teardown(self):
        """Whatever happened before: with one good worker and clients that listen, every open job comes to its end."""
        for _ in range(400):
            if not self.open:
                return
            self.now += 31.0
            self.tell(Tick())
            for worker in list(self.starting):
                self.starting.discard(worker)
                self.slots[worker], self.sizes[worker] = {}, 2
                self.tell(Ready(worker, 2, Priors()))
            for job in list(self.open):
                self.tell(Consumed(job, 100.0, 1.0))
            for worker, tasks in list(self.slots.items()):
                for task in list(tasks.values()):
                    del tasks[task.id]
                    if task.id in self.cancelled:
                        self.tell(Stopped(worker, task.id))
                    elif task.job in self.open:
                        self.done[task.job].add(task.utterance.index)
                        if len(self.done[task.job]) == len(self.open[task.job].utterances):
                            del self.open[task.job]
                        self.tell(Finished(worker, task.id, 1.0))
        raise AssertionError(f"jobs never ended: {sorted(self.open)}")


World.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnyOrder = World.TestCase
