"""Who speaks next, and on which worker. Pure: events and time in, commands out; no I/O, no clock, no asyncio.

A job joins the queue, or is refused at once (`admission`). A free slot goes to whom the queue names (`queue`), the hot
worker's slots first; while one of a job's opening utterances runs, its others wait. An utterance runs again when its
worker died or failed, as long as none of its audio has left. The hot worker is started again when it died: at once
after a good life, else after a growing pause. Cold workers come when they are worth their start (`autoscaler`) and
memory is free (`ledger`), and go when they are idle.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from typing import assert_never

from core.errors import Overloaded, SpeechError, SynthesisFailed, Unavailable
from core.speech import Task
from scheduler.admission import AHEAD_S, NO_LIMITS, Limits, Load, check, forecast_s
from scheduler.autoscaler import NO_COLD_POOL, Autoscaler, ColdPool, Demand
from scheduler.fleet import Fleet
from scheduler.job import MAX_RUNS, Job, JobSpec, JobState
from scheduler.ledger import Ledger
from scheduler.messages import (
    CPU,
    Cancel,
    Command,
    Consumed,
    Died,
    Event,
    Fail,
    Finished,
    FirstAudio,
    Left,
    Memory,
    Ready,
    Restart,
    Retire,
    Spawn,
    Start,
    Stopped,
    Submitted,
    Tick,
    View,
)
from scheduler.queue import FairQueue
from scheduler.worker import Worker, WorkerKind, WorkerState, pause_s

HOPELESS_STARTS = 3
"""Starts that failed in a row before waiting jobs are told so; later starts go on in the background."""


class Scheduler:
    """Owner of jobs, tasks and slots. Others get a `View`, or a command."""

    def __init__(
        self, *, lead_s: float, limits: Limits = NO_LIMITS, cold: ColdPool = NO_COLD_POOL, device: str = CPU
    ) -> None:
        """lead_s: seconds of audio that may be made ahead of a job's client. limits: of the queue.

        cold: what cold workers may come. device: the hot worker's.
        """
        self._lead_s = lead_s
        self._limits = limits
        self._fleet = Fleet(home=device)
        self._ledger = Ledger(least_bytes=cold.least_bytes)
        self._scaler = Autoscaler(cold, self._fleet, self._ledger)
        self._jobs: dict[int, Job] = {}
        self._queue = FairQueue(self._cost_s)
        self._task_ids = count(1)
        self._worker_ids = count(1)
        self._spawn_at: float | None = None
        self._is_unloaded = False
        self._deaths_in_a_row = 0
        self._cold_deaths = 0
        self._failed_starts = 0
        self._restarts = 0
        self._reason = ""

    def start(self, now: float = 0.0) -> list[Command]:
        """The first command: spawn the hot worker."""
        return [self._spawn(WorkerKind.HOT, self._fleet.home, now)]

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
                commands = self._ready(event, now)
            case Finished():
                commands = self._settle(event, now)
            case Stopped():
                commands = self._stopped(event, now)
            case Died():
                commands = self._bury(event, now)
            case Memory():
                self._ledger.read(event)
                commands = []
            case Tick():
                commands = []
            case _:
                assert_never(event)
        commands += self._respawn(now)
        commands += self._dispatch(now)
        commands += self._scale(now)
        return commands

    def next_wake(self, now: float) -> float | None:
        """When a `Tick` is due, in monotonic seconds; None while only events can change anything."""
        times = [job.free_at(self._lead_s, now) for job in self._jobs.values() if job.waiting]
        times += [self._spawn_at, *(retires_at for _, retires_at in self._scaler.idle())]
        if self._scaler.room and any(job.waiting for job in self._jobs.values()):
            times.append(self._scaler.next_at)
        return min((time for time in times if time is not None and time > now), default=None)

    def task(self, worker: int, task_id: int) -> Task | None:
        """The task that runs in a worker under this id and is still wanted."""
        known = self._fleet.workers.get(worker)
        run = known.running.get(task_id) if known else None
        return run.task if run and self._is_wanted(run.task) else None

    @property
    def wants_memory(self) -> bool:
        """Whether a reading of memory may decide something now."""
        return self._scaler.room > 0 and (bool(self._jobs) or not self._ledger.is_read)

    def forecast_s(self, spec: JobSpec, now: float) -> float:
        """Seconds until a job that came now would have its first sound."""
        return self._forecast_s(spec, self._load(now))

    def backoff_s(self, now: float) -> float:
        """Seconds until the next spawn; 0 where none is planned."""
        return max(0.0, self._spawn_at - now) if self._spawn_at is not None else 0.0

    def view(self, now: float) -> View:
        """A frozen look at the whole."""
        load = self._load(now)
        workers = self._fleet.workers.values()
        cold = self._fleet.of(WorkerKind.COLD)
        loading = sum(worker.state is WorkerState.STARTING for worker in cold)
        return View(
            jobs=len(self._jobs),
            waiting=load.waiting,
            queued=sum(len(job.waiting) for job in self._jobs.values()),
            drain_s=load.starts_in_s + load.made_in_s(sum(load.backlog_s.values())),
            busy=sum(len(worker.running) for worker in workers),
            slots=self._fleet.slots,
            is_ready=self._is_unloaded or any(w.state in (WorkerState.IDLE, WorkerState.BUSY) for w in workers),
            is_hopeless=self._is_hopeless,
            restarts=self._restarts,
            reason=self._reason,
            cold_active=len(cold) - loading,
            cold_loading=loading,
            cold_wanted=self._scaler.wanted(self._demand()),
            cold_cap=self._scaler.size,
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
        return forecast_s(load, spec.client, self._fleet.first_s(spec.utterances[0], spec.params.speed))

    def _load(self, now: float) -> Load:
        backlog_s: defaultdict[str, float] = defaultdict(float)
        begun_s = []
        for job in self._jobs.values():
            seconds = job.estimate_s if job.state is JobState.QUEUED else min(AHEAD_S, self._remaining_s(job))
            backlog_s[job.spec.client] += seconds
            if job.state is not JobState.QUEUED:
                begun_s.append(seconds)
        soon_rate, soon_s = self._scaler.soon(self._demand()) if self._scaler.room else (0.0, 0.0)
        return Load(
            backlog_s=backlog_s,
            begun_s=tuple(begun_s),
            waiting=len(self._jobs) - len(begun_s),
            rate=self._fleet.rate(),
            slots=self._fleet.slots,
            free_slots=self._fleet.free_slots,
            starts_in_s=self._fleet.starts_in_s(now, self._spawn_at),
            soon_rate=soon_rate,
            soon_s=soon_s,
        )

    def _remaining_s(self, job: Job, bound_s: float = AHEAD_S) -> float:
        """Seconds of audio that are still to be made for a job; about `bound_s` where it is more."""
        seconds = sum(job.expected.values()) / 2  # what runs is half done, on average
        for index in job.waiting:
            if seconds > bound_s:
                break
            seconds += self._fleet.audio_s(job.spec.utterances[index], job.spec.params.speed)
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

    def _ready(self, event: Ready, now: float) -> list[Command]:
        self._ledger.settle(event.worker)
        worker = self._fleet.ready(event.worker, event.slots, event.priors, now)
        if worker is not None:
            self._scaler.gains = event.gains_from_processes
            if worker.kind is WorkerKind.HOT:
                self._failed_starts = 0
                self._reason = ""
        return []

    def _stopped(self, event: Stopped, now: float) -> list[Command]:
        self._fleet.free(event.worker, event.task, now)
        return []

    def _settle(self, event: Finished, now: float) -> list[Command]:
        task = self.task(event.worker, event.task)
        run = self._fleet.free(event.worker, event.task, now)
        if event.audio_s is not None:
            self._deaths_in_a_row = 0
        if task is None or run is None:
            return []
        job = self._jobs[task.job]
        if event.audio_s is None:
            return self._again(job, task.utterance.index, SynthesisFailed("The engine could not speak this text."))
        self._fleet.learn(event.worker, run, event.audio_s, now)
        job.finish(task.utterance.index, event.audio_s, now)
        return [] if job.waiting or job.running else self._end(job, JobState.DONE)

    def _bury(self, event: Died, now: float) -> list[Command]:
        worker = self._fleet.bury(event.worker, now)
        if worker is None:
            return []
        self._ledger.settle(worker.id)
        was = worker.state
        worker.move(WorkerState.DEAD)
        if event.is_out_of_memory:
            self._ledger.bar(worker.device)
        if was is not WorkerState.DRAINING:
            if worker.kind is WorkerKind.HOT:
                self._mourn_hot(was, event.reason, now)
            else:
                self._mourn_cold(was, now)
        commands: list[Command] = []
        for run in worker.running.values():
            if self._is_wanted(run.task):
                job = self._jobs[run.task.job]
                job.fled = job.fled or worker.kind is WorkerKind.COLD
                error = SynthesisFailed("The speech engine stopped while it was speaking.")
                commands += self._again(job, run.task.utterance.index, error)
        return commands + (self._fail_queued() if self._is_hopeless else [])

    def _mourn_hot(self, was: WorkerState, reason: str, now: float) -> None:
        self._failed_starts += was is WorkerState.STARTING
        self._reason = reason or "the speech engine stopped; it is being started again"
        self._spawn_at = now + pause_s(self._deaths_in_a_row)
        self._deaths_in_a_row += 1

    def _mourn_cold(self, was: WorkerState, now: float) -> None:
        self._cold_deaths = self._cold_deaths + 1 if was is WorkerState.STARTING else 0
        self._scaler.next_at = max(self._scaler.next_at, now + pause_s(self._cold_deaths + 1))

    # --- steps

    def _spawn(self, kind: WorkerKind, device: str, now: float) -> Spawn:
        places = {worker.place for worker in self._fleet if worker.kind is WorkerKind.COLD}
        place = next(place for place in count() if place not in places)
        worker = Worker(next(self._worker_ids), kind, device, place, now)
        self._fleet.add(worker)
        return Spawn(worker.id, device)

    def _respawn(self, now: float) -> Iterator[Command]:
        """The hot worker, where it died or was unloaded and is wanted again."""
        if self._spawn_at is not None and now >= self._spawn_at:
            self._restarts += 1
        elif not (self._is_unloaded and self._jobs):
            return
        self._spawn_at, self._is_unloaded = None, False
        yield self._spawn(WorkerKind.HOT, self._fleet.home, now)

    def _scale(self, now: float) -> Iterator[Command]:
        """Cold workers that come, and those that go."""
        if device := self._scaler.where(self._demand, now):
            spawn = self._spawn(WorkerKind.COLD, device, now)
            self._scaler.promise(self._fleet.workers[spawn.worker])
            yield spawn
        for worker, retires_at in self._scaler.idle():
            if retires_at <= now:
                worker.move(WorkerState.DRAINING)
                self._is_unloaded = self._is_unloaded or worker.kind is WorkerKind.HOT
                yield Retire(worker.id)

    def _demand(self) -> Demand:
        jobs = [job for job in self._jobs.values() if self._may_run_cold(job)]
        return Demand(
            backlog_s=sum(self._remaining_s(job, bound_s=self._lead_s) for job in jobs),
            parts=sum(len(job.waiting) + len(job.running) for job in jobs),
        )

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
            for worker in self._fleet
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
    def _is_hopeless(self) -> bool:
        return self._failed_starts >= HOPELESS_STARTS

    def _fail_queued(self) -> list[Command]:
        commands: list[Command] = []
        for job in list(self._jobs.values()):
            commands += self._end(job, JobState.FAILED)
            commands.append(Fail(job.spec.id, Unavailable(f"The speech engine does not start: {self._reason}")))
        return commands

    def _dispatch(self, now: float) -> Iterator[Command]:
        for worker in self._fleet:
            is_hot = worker.kind is WorkerKind.HOT

            def fits(job: Job, is_hot: bool = is_hot) -> bool:
                return (is_hot or self._may_run_cold(job)) and self._is_due(job, now)

            while worker.free_slots and (job := self._queue.take(now, fits)):
                yield self._start(job, worker, now)

    def _may_run_cold(self, job: Job) -> bool:
        return self._scaler.cold.streams or not job.spec.paced

    def _cost_s(self, job: Job) -> float:
        return self._fleet.audio_s(job.next, job.spec.params.speed)

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
        self._fleet.take(worker, task, now)
        route = "COLD-POOL>HOT" if job.fled else "HOT" if worker.kind is WorkerKind.HOT else "COLD-POOL"
        return Start(worker.id, task, route)
