"""Who speaks next. Pure: events and time in, commands out; no I/O, no clock, no asyncio.

A free slot goes to the job with the fewest running utterances, the oldest first. Until a job's first utterance has
sound, the others of that job wait. An utterance runs again when its worker died or failed, as long as none of its audio
has left. A worker that died is started again: at once after a good life, else after a growing pause.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import assert_never

from core.errors import SpeechError, SynthesisFailed, Unavailable
from core.speech import Task
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
from scheduler.worker import Worker, WorkerState

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

    def __init__(self, *, lead_s: float) -> None:
        """lead_s: seconds of audio that may be made ahead of a job's client."""
        self._lead_s = lead_s
        self._jobs: dict[int, Job] = {}
        self._workers: dict[int, Worker] = {}
        self._task_ids = count(1)
        self._worker_ids = count(1)
        self._spawn_at: float | None = None
        self._deaths_in_a_row = 0
        self._failed_starts = 0
        self._restarts = 0
        self._reason = ""

    def start(self) -> list[Command]:
        """The first command: spawn the hot worker."""
        return [self._spawn()]

    def handle(self, event: Event, now: float) -> list[Command]:  # noqa: C901  (one case an event)
        """Take in what happened and say what to do. now: monotonic seconds. Events about what is gone are ignored."""
        match event:
            case Submitted():
                commands = self._admit(event.job)
            case Left():
                commands = self._leave(event.job)
            case Consumed():
                commands = self._update(event.job, lambda job: self._consume(job, event))
            case FirstAudio():
                commands = self._update(event.job, lambda job: self._release(job, event.index, now))
            case Ready():
                commands = self._ready(event)
            case Finished():
                commands = self._settle(event)
            case Stopped():
                commands = self._free(event.worker, event.task)
            case Died():
                commands = self._bury(event, now)
            case Tick():
                commands = []
            case _:
                assert_never(event)
        if self._spawn_at is not None and now >= self._spawn_at:
            commands.append(self._spawn())
        commands += self._dispatch(now)
        return commands

    def next_wake(self, now: float) -> float | None:
        """When a `Tick` is due, in monotonic seconds; None while only events can change anything."""
        times = [job.free_at(self._lead_s, now) for job in self._jobs.values() if job.waiting]
        return min((time for time in [*times, self._spawn_at] if time is not None and time > now), default=None)

    def task(self, worker: int, task_id: int) -> Task | None:
        """The task that runs in a worker under this id and is still wanted."""
        task = self._workers[worker].running.get(task_id) if worker in self._workers else None
        job = self._jobs.get(task.job) if task else None
        return task if task and job and job.running.get(task.utterance.index) == task else None

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

    def _admit(self, spec: JobSpec) -> list[Command]:
        self._jobs[spec.id] = Job(spec)
        return self._fail_queued() if self._is_hopeless else []

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
        return []

    def _free(self, worker_id: int, task_id: int) -> list[Command]:
        if worker_id in self._workers:
            self._workers[worker_id].give_back(task_id)
        return []

    def _settle(self, event: Finished) -> list[Command]:
        task = self.task(event.worker, event.task)
        self._free(event.worker, event.task)
        if event.audio_s is not None:
            self._deaths_in_a_row = 0
        if task is None:
            return []
        job = self._jobs[task.job]
        if event.audio_s is None:
            return self._again(job, task.utterance.index, SynthesisFailed("The engine could not speak this text."))
        del job.running[task.utterance.index]
        job.made_s += event.audio_s
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
        for task in worker.running.values():
            job = self._jobs.get(task.job)
            if job and job.running.get(task.utterance.index) == task:
                error = SynthesisFailed("The speech engine stopped while it was speaking.")
                commands += self._again(job, task.utterance.index, error)
        return commands + (self._fail_queued() if self._is_hopeless else [])

    # --- steps

    def _spawn(self) -> Spawn:
        self._restarts += self._spawn_at is not None
        self._spawn_at = None
        worker = Worker(next(self._worker_ids))
        self._workers[worker.id] = worker
        return Spawn(worker.id)

    def _again(self, job: Job, index: int, error: SpeechError) -> list[Command]:
        """Run an utterance once more, or fail its job with `error` where that is not possible."""
        del job.running[index]
        if index in job.released or job.runs[index] >= MAX_RUNS:
            return [*self._end(job, JobState.FAILED), Fail(job.spec.id, error)]
        job.waiting.append(index)
        job.waiting.sort()
        return [Restart(job.spec.id, index)]

    def _end(self, job: Job, state: JobState) -> list[Command]:
        """Take a job off the list; tasks of it that still run are told to stop."""
        job.move(state)
        del self._jobs[job.spec.id]
        return [
            Cancel(worker.id, task.id)
            for worker in self._workers.values()
            for task in worker.running.values()
            if job.running.get(task.utterance.index) == task
        ]

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
            while worker.free_slots and (job := self._next_job(now)):
                yield self._start(job, worker)

    def _next_job(self, now: float) -> Job | None:
        ready = (job for job in self._jobs.values() if job.waiting and not job.opening and self._is_due(job, now))
        return min(ready, key=lambda job: (len(job.running), job.spec.id), default=None)

    def _is_due(self, job: Job, now: float) -> bool:
        time = job.free_at(self._lead_s, now)
        return time is not None and time <= now

    def _start(self, job: Job, worker: Worker) -> Start:
        index = job.waiting.pop(0)
        spec = job.spec
        seed = None if spec.seed is None else (spec.seed * 1_000_003 + index) % 2**31
        task = Task(next(self._task_ids), spec.id, spec.utterances[index], spec.voice, spec.params, seed)
        job.runs[index] = job.runs.get(index, 0) + 1
        job.running[index] = task
        worker.take(task)
        if job.state is JobState.QUEUED:
            job.move(JobState.RUNNING)
        return Start(worker.id, task)
