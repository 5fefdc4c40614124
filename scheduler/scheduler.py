"""Who speaks next. Pure: events and time in, commands out; no I/O, no clock, no asyncio.

A job joins the queue, or is refused at once (`admission`). A free slot goes to whom the queue names (`queue`); while
one of a job's opening utterances runs, its others wait. An utterance runs again when its worker died or failed, as long
as none of its audio has left. A worker that died is started again: at once after a good life, else after a growing
pause.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import assert_never

from core.errors import Overloaded, SpeechError, SynthesisFailed, Unavailable
from core.speech import Priors, Task
from scheduler.admission import AHEAD_S, NO_LIMITS, Limits, Load, check, forecast_s
from scheduler.estimator import BusyMeter, Estimator
from scheduler.job import MAX_RUNS, Job, JobSpec, JobState
from scheduler.messages import (
    Cancel,
    Command,
    Consumed,
    Died,
    Event,
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
from scheduler.queue import FairQueue
from scheduler.worker import Run, Worker, WorkerState

BACK_OFF_S = 0.5
"""Pause before the second restart in a row; doubles up to MAX_BACK_OFF_S."""

MAX_BACK_OFF_S = 30.0
"""Longest pause between restarts: a repaired machine speaks again within half a minute."""

HOPELESS_STARTS = 3
"""Starts that failed in a row before waiting jobs are told so; later starts go on in the background."""


@dataclass(frozen=True, slots=True)
class View:
    """The scheduler at one moment. queued: utterances without a slot. busy: slots with a task in them."""

    jobs: int
    queued: int
    busy: int
    slots: int
    is_ready: bool
    is_hopeless: bool
    restarts: int
    reason: str


class Scheduler:
    """Owner of jobs, tasks and slots. Others get a `View`, or a command."""

    def __init__(self, *, lead_s: float, limits: Limits = NO_LIMITS) -> None:
        """lead_s: seconds of audio that may be made ahead of a job's client. limits: of the queue."""
        self._lead_s = lead_s
        self._limits = limits
        self._estimator = Estimator(Priors())
        self._priors: Priors | None = None
        self._meter = BusyMeter()
        self._jobs: dict[int, Job] = {}
        self._queue = FairQueue(self._cost_s)
        self._workers: dict[int, Worker] = {}
        self._task_ids = count(1)
        self._worker_ids = count(1)
        self._spawn_at: float | None = None
        self._deaths_in_a_row = 0
        self._failed_starts = 0
        self._restarts = 0
        self._reason = ""

    def start(self, now: float = 0.0) -> list[Command]:
        """The first command: spawn the hot worker."""
        return [self._spawn(now)]

    def handle(self, event: Event, now: float) -> list[Command]:  # noqa: C901  (one case an event)
        """Take in what happened and say what to do. now: monotonic seconds. Events about what is gone are ignored."""
        match event:
            case Submitted():
                commands = self._admit(event.job, now)
            case Left():
                commands = self._leave(event.job)
            case Consumed():
                commands = self._update(event.job, lambda job: self._consume(job, event))
            case FirstAudio():
                commands = self._update(event.job, lambda job: self._release(job, event.index, now))
            case Ready():
                commands = self._ready(event)
            case Finished():
                commands = self._settle(event, now)
            case Stopped():
                commands = self._stopped(event, now)
            case Died():
                commands = self._bury(event, now)
            case Tick():
                commands = []
            case _:
                assert_never(event)
        if self._spawn_at is not None and now >= self._spawn_at:
            commands.append(self._spawn(now))
        commands += self._dispatch(now)
        return commands

    def next_wake(self, now: float) -> float | None:
        """When a `Tick` is due, in monotonic seconds; None while only events can change anything."""
        times = [job.free_at(self._lead_s, now) for job in self._jobs.values() if job.waiting]
        return min((time for time in [*times, self._spawn_at] if time is not None and time > now), default=None)

    def task(self, worker: int, task_id: int) -> Task | None:
        """The task that runs in a worker under this id and is still wanted."""
        run = self._workers[worker].running.get(task_id) if worker in self._workers else None
        return run.task if run and self._is_wanted(run.task) else None

    def forecast_s(self, spec: JobSpec, now: float) -> float:
        """Seconds until a job that came now would have its first sound."""
        return self._forecast_s(spec, self._load(now))

    def backoff_s(self, now: float) -> float:
        """Seconds until the next spawn; 0 where none is planned."""
        return max(0.0, self._spawn_at - now) if self._spawn_at is not None else 0.0

    def view(self) -> View:
        """A frozen look at the whole."""
        workers = self._workers.values()
        return View(
            jobs=len(self._jobs),
            queued=sum(len(job.waiting) for job in self._jobs.values()),
            busy=sum(len(worker.running) for worker in workers),
            slots=sum(worker.slots for worker in workers),
            is_ready=any(worker.state in (WorkerState.IDLE, WorkerState.BUSY) for worker in workers),
            is_hopeless=self._is_hopeless,
            restarts=self._restarts,
            reason=self._reason,
        )

    # --- events

    def _admit(self, spec: JobSpec, now: float) -> list[Command]:
        if not self._is_hopeless and (refusal := self._refusal(spec, now)):
            return [Fail(spec.id, refusal)]
        job = self._jobs[spec.id] = Job(spec, now)
        job.estimate_s = min(AHEAD_S, self._remaining_s(job))
        self._queue.add(job)
        return self._fail_queued() if self._is_hopeless else []

    def _refusal(self, spec: JobSpec, now: float) -> Overloaded | None:
        load = self._load(now)
        return check(self._limits, load, self._forecast_s(spec, load), spec.max_wait_s)

    def _forecast_s(self, spec: JobSpec, load: Load) -> float:
        busy = min(self._meter.busy + 1, max(1, self._slots))
        first_s = self._estimator.audio_s(spec.utterances[0], spec.params.speed) * busy / self._estimator.rate(busy)
        return forecast_s(load, spec.client, first_s)

    def _load(self, now: float) -> Load:
        backlog_s: defaultdict[str, float] = defaultdict(float)
        begun_s = []
        for job in self._jobs.values():
            seconds = job.estimate_s if job.state is JobState.QUEUED else min(AHEAD_S, self._remaining_s(job))
            backlog_s[job.spec.client] += seconds
            if job.state is not JobState.QUEUED:
                begun_s.append(seconds)
        starts_in_s = 0.0
        if not self._slots:
            start_s = self._estimator.start_s
            began = max((worker.spawned_at for worker in self._workers.values()), default=self._spawn_at or now)
            starts_in_s = max(0.0, began + start_s - now)
        return Load(
            backlog_s=backlog_s,
            begun_s=tuple(begun_s),
            waiting=len(self._jobs) - len(begun_s),
            rate=self._estimator.rate(max(1, self._slots)),
            slots=self._slots,
            free_slots=sum(worker.free_slots for worker in self._workers.values()),
            starts_in_s=starts_in_s,
        )

    def _remaining_s(self, job: Job) -> float:
        """Seconds of audio that are still to be made for a job, roughly where it is a long one."""
        seconds = sum(job.expected.values()) / 2  # what runs is half done, on average
        for index in job.waiting:
            if seconds > AHEAD_S:
                break
            seconds += self._estimator.audio_s(job.spec.utterances[index], job.spec.params.speed)
        return seconds

    def _leave(self, job_id: int) -> list[Command]:
        job = self._jobs.get(job_id)
        return self._end(job, JobState.CANCELLED) if job else []

    def _update(self, job_id: int, change: Callable[[Job], None]) -> list[Command]:
        job = self._jobs.get(job_id)
        if job is not None:
            change(job)
        return []

    @staticmethod
    def _consume(job: Job, event: Consumed) -> None:
        job.consumed_s += event.made_s
        job.played_s += event.played_s

    @staticmethod
    def _release(job: Job, index: int, now: float) -> None:
        job.released.add(index)
        if job.sounding_since is None:
            job.sounding_since = now
        if job.state is JobState.RUNNING:
            job.move(JobState.STREAMING)

    def _ready(self, event: Ready) -> list[Command]:
        worker = self._workers.get(event.worker)
        if worker is not None:
            worker.slots = event.slots
            worker.move(WorkerState.IDLE)
            self._failed_starts = 0
            self._reason = ""
            if self._priors != event.priors:  # another backend than before: what was learned is of no use
                self._priors = event.priors
                self._estimator = Estimator(event.priors)
        return []

    def _stopped(self, event: Stopped, now: float) -> list[Command]:
        self._free(event.worker, event.task, now)
        return []

    def _free(self, worker_id: int, task_id: int, now: float) -> Run | None:
        worker = self._workers.get(worker_id)
        run = worker.give_back(task_id) if worker else None
        self._meter.add(-(run is not None), now)
        return run

    def _learn(self, run: Run, audio_s: float, now: float) -> None:
        wall_s = now - run.since
        if wall_s > 0:
            busy = (self._meter.area(now) - run.area) / wall_s
            task = run.task
            self._estimator.learn(task.utterance, task.params.speed, audio_s=audio_s, wall_s=wall_s, busy=busy)

    def _settle(self, event: Finished, now: float) -> list[Command]:
        task = self.task(event.worker, event.task)
        run = self._free(event.worker, event.task, now)
        if event.audio_s is not None:
            self._deaths_in_a_row = 0
        if task is None:
            return []
        job = self._jobs[task.job]
        if event.audio_s is None:
            return self._again(job, task.utterance.index, SynthesisFailed("The engine could not speak this text."))
        if run is not None:
            self._learn(run, event.audio_s, now)
        job.finish(task.utterance.index, event.audio_s, now)
        return [] if job.waiting or job.running else self._end(job, JobState.DONE)

    def _bury(self, event: Died, now: float) -> list[Command]:
        worker = self._workers.pop(event.worker, None)
        if worker is None:
            return []
        self._failed_starts += worker.state is WorkerState.STARTING
        worker.move(WorkerState.DEAD)
        self._reason = event.reason or "the speech engine stopped; it is being started again"
        pause = min(MAX_BACK_OFF_S, BACK_OFF_S * 2.0 ** (self._deaths_in_a_row - 1)) if self._deaths_in_a_row else 0.0
        self._spawn_at = now + pause
        self._deaths_in_a_row += 1
        commands: list[Command] = []
        self._meter.add(-len(worker.running), now)
        for run in worker.running.values():
            if self._is_wanted(run.task):
                error = SynthesisFailed("The speech engine stopped while it was speaking.")
                commands += self._again(self._jobs[run.task.job], run.task.utterance.index, error)
        return commands + (self._fail_queued() if self._is_hopeless else [])

    # --- steps

    def _spawn(self, now: float) -> Spawn:
        self._restarts += self._spawn_at is not None
        self._spawn_at = None
        worker = Worker(next(self._worker_ids), now)
        self._workers[worker.id] = worker
        return Spawn(worker.id)

    def _again(self, job: Job, index: int, error: SpeechError) -> list[Command]:
        """Run an utterance once more, or fail its job with `error` where that is not possible."""
        job.stop(index)
        if index in job.released or job.runs[index] >= MAX_RUNS:
            return [*self._end(job, JobState.FAILED), Fail(job.spec.id, error)]
        job.waiting.append(index)
        job.waiting.sort()
        return [Restart(job.spec.id, index)]

    def _end(self, job: Job, state: JobState) -> list[Command]:
        """Take a job off the list; tasks of it that still run are told to stop."""
        commands: list[Command] = [
            Cancel(worker.id, run.task.id)
            for worker in self._workers.values()
            for run in worker.running.values()
            if run.task.job == job.spec.id and self._is_wanted(run.task)
        ]
        job.move(state)
        del self._jobs[job.spec.id]
        self._queue.remove(job)
        return commands

    def _is_wanted(self, task: Task) -> bool:
        job = self._jobs.get(task.job)
        return job is not None and job.running.get(task.utterance.index) == task

    @property
    def _slots(self) -> int:
        return sum(worker.slots for worker in self._workers.values())

    @property
    def _is_hopeless(self) -> bool:
        return self._failed_starts >= HOPELESS_STARTS

    def _fail_queued(self) -> list[Command]:
        commands: list[Command] = []
        for job in list(self._jobs.values()):
            commands += self._end(job, JobState.FAILED)
            commands.append(Fail(job.spec.id, Unavailable(f"The speech engine does not start: {self._reason}")))
        return commands

    def _dispatch(self, now: float) -> Iterator[Command]:
        for worker in self._workers.values():
            while worker.free_slots and (job := self._queue.take(now, lambda job: self._is_due(job, now))):
                yield self._start(job, worker, now)

    def _cost_s(self, job: Job) -> float:
        return self._estimator.audio_s(job.next, job.spec.params.speed)

    def _is_due(self, job: Job, now: float) -> bool:
        if not job.waiting or job.opening:
            return False
        time = job.free_at(self._lead_s, now)
        return time is not None and time <= now

    def _start(self, job: Job, worker: Worker, now: float) -> Start:
        utterance, spec = job.next, job.spec
        seed = None if spec.seed is None else (spec.seed * 1_000_003 + utterance.index) % 2**31
        task = Task(next(self._task_ids), spec.id, utterance, spec.voice, spec.params, seed)
        job.start(task, self._cost_s(job))
        worker.take(Run(task, now, self._meter.area(now)))
        self._meter.add(1, now)
        return Start(worker.id, task)
