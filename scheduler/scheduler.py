"""Who speaks next, and on which worker. Pure: events and time in, commands out; no I/O, no clock, no asyncio.

A job joins the queue, or is refused at once (`admission`). A free slot goes to whom the queue names (`queue`), the hot
worker's slots first; while one of a job's opening utterances runs, its others wait. Which workers there are is the
supervisor's business.

An utterance runs again when its worker died or failed, as long as none of its audio has left. Whatever was aboard a
worker that died is suspect, and runs alone in one until it sounds. Should that one die too, the suspect is convicted:
its job fails, and so does any that holds the same words in the same voice, for some minutes (`blame`).
"""

from collections.abc import Callable, Iterator
from itertools import count, takewhile
from typing import assert_never

from core.errors import DeadlineExceeded, SpeechError, SynthesisFailed, Unavailable
from core.speech import Task
from scheduler.admission import AHEAD_S, NO_LIMITS, Limits, Load, check, forecast_s, remaining_s, weigh
from scheduler.autoscaler import NO_COLD_POOL, ColdPool, Demand
from scheduler.blame import Blame
from scheduler.fleet import Fleet, Learned
from scheduler.job import MAX_RUNS, Job, JobSpec, JobState
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
    Joined,
    Left,
    Memory,
    Phase,
    Progress,
    Ready,
    Rerun,
    Start,
    Stopped,
    Submitted,
    Tick,
    View,
)
from scheduler.queue import FairQueue
from scheduler.supervisor import Supervisor
from scheduler.watchdog import Patience
from scheduler.worker import Run, Worker, WorkerKind


class Scheduler:
    """Owner of jobs, tasks and slots. Others get a `View`, or a command."""

    def __init__(
        self,
        *,
        lead_s: float,
        limits: Limits = NO_LIMITS,
        cold: ColdPool = NO_COLD_POOL,
        patience: Patience = Patience(),  # noqa: B008  (frozen)
        device: str = CPU,
        learned: Learned | None = None,
    ) -> None:
        """lead_s: seconds of audio that may be made ahead of a job's client. limits: of the queue.

        cold: what cold workers may come. patience: with workers that are silent. device: the hot worker's.
        learned: in an earlier life of the server.
        """
        self._lead_s = lead_s
        self._limits = limits
        self._streams_on_cold = cold.streams
        self._fleet = Fleet(home=device, learned=learned)
        self._supervisor = Supervisor(self._fleet, cold, patience)
        self._jobs: dict[int, Job] = {}
        self._queue = FairQueue(self._cost_s)
        self._task_ids = count(1)
        self._blame = Blame()

    def start(self, now: float = 0.0) -> list[Command]:
        """The first command: spawn the hot worker."""
        return self._supervisor.start(now)

    def handle(self, event: Event, now: float) -> list[Command]:  # noqa: C901  (one case an event)
        """Take in what happened and say what to do. now: monotonic seconds. Events about what is gone are ignored."""
        commands: list[Command] = []
        match event:
            case Submitted():
                commands = self._admit(event.job, now)
            case Joined():
                self._update(event.job, lambda job: self._join(job, event.client))
            case Left():
                commands = self._leave(event.job, now)
            case Consumed():
                self._update(event.job, lambda job: self._consume(job, event))
            case FirstAudio():
                self._update(event.job, lambda job: self._release(job, event.index, now))
            case Phase():
                self._fleet.enter(event.worker, event.name, now)
            case Ready():
                self._supervisor.ready(event, now)
            case Progress():
                if not self._sounds(event, now):
                    return []  # nothing follows from a sign of life, and there are many
            case Finished():
                commands = self._settle(event, now)
            case Stopped():
                self._fleet.free(event.worker, event.task, now)
            case Died():
                commands = self._bury(event, now)
            case Memory():
                self._supervisor.read(event)
            case Tick():
                commands = self._tick(event, now)
            case _:
                assert_never(event)
        commands += self._dispatch(now)
        commands += self._supervisor.steps(self._demand, has_jobs=bool(self._jobs), now=now)
        return commands

    def next_wake(self, now: float) -> float | None:
        """When a `Tick` is due, in monotonic seconds; None while only events can change anything."""
        waiting = [job for job in self._jobs.values() if job.waiting]
        free = (job.free_at(self._lead_s, now) for job in waiting)
        times = [time for time in free if time is not None and time > now]
        times += [job.gives_up_at for job in self._jobs.values() if job.gives_up_at is not None]
        times += self._supervisor.wakes(now, has_jobs=bool(self._jobs), is_wanted=bool(waiting))
        return min(times, default=None)

    def task(self, worker: int, task_id: int) -> Task | None:
        """The task that runs in a worker under this id and is still wanted."""
        known = self._fleet.workers.get(worker)
        run = known.running.get(task_id) if known else None
        return run.task if run and not run.is_cancelled else None

    @property
    def wants_memory(self) -> bool:
        """Whether a reading of memory may decide something now."""
        return self._supervisor.may_grow and (bool(self._jobs) or not self._supervisor.has_seen_memory)

    @property
    def learned(self) -> Learned:
        """What the next life of the server should know."""
        return self._fleet.learned

    def forecast_s(self, spec: JobSpec, now: float) -> float:
        """Seconds until a job that came now would have its first sound."""
        return self._forecast_s(spec, self._load(now))

    def backoff_s(self, now: float) -> float:
        """Seconds until the next spawn; 0 where none is planned."""
        return self._supervisor.backoff_s(now)

    def view(self, now: float) -> View:
        """A frozen look at the whole."""
        supervisor = self._supervisor
        demand = self._demand()
        load = weigh(self._jobs.values(), demand, supervisor, now)
        hot = self._fleet.hot
        return View(
            jobs=len(self._jobs),
            waiting=load.waiting,
            queued=sum(len(job.waiting) for job in self._jobs.values()),
            words=sum(job.words for job in self._jobs.values() if job.state is JobState.QUEUED),
            word_s=self._fleet.word_s,
            drain_s=load.starts_in_s + load.made_in_s(sum(load.backlog_s.values())),
            busy=sum(len(worker.running) for worker in self._fleet),
            slots=self._fleet.slots,
            is_ready=supervisor.is_unloaded or self._fleet.slots > 0,
            is_hot=bool(hot and hot.slots and hot.is_of_use),
            is_unloaded=supervisor.is_unloaded,
            is_hopeless=supervisor.is_hopeless,
            restarts=supervisor.restarts,
            reason=supervisor.reason,
            start_s=self._fleet.start_s(self._fleet.home),
            is_start_known=self._fleet.is_start_known,
            cold=supervisor.cold_view(demand),
            memory=supervisor.memory,
            workers=supervisor.views(now),
        )

    # --- events

    def _admit(self, spec: JobSpec, now: float) -> list[Command]:
        if refusal := self._refusal(spec, now):
            self._supervisor.load()  # whoever was refused for it finds it loaded when he comes again
            return [Fail(spec.id, refusal)]
        job = self._jobs[spec.id] = Job(spec, now, self._limits.deadline(now, spec.max_wait_s))
        job.estimate_s = min(AHEAD_S, remaining_s(job, self._fleet, AHEAD_S))
        self._queue.add(job)
        return self._give_up(now) if self._supervisor.is_hopeless else []

    def _refusal(self, spec: JobSpec, now: float) -> SpeechError | None:
        self._blame.forget(now)
        if self._blame.has_convict(spec):
            return _convicted()
        if spec.is_admitted or self._supervisor.is_hopeless:
            return None  # the latter is told so itself
        load = self._load(now)
        return check(self._limits, load, self._forecast_s(spec, load), spec.max_wait_s)

    def _forecast_s(self, spec: JobSpec, load: Load) -> float:
        return forecast_s(load, spec.client, self._fleet.first_s(spec.utterances[0], spec.params.speed))

    def _load(self, now: float) -> Load:
        return weigh(self._jobs.values(), self._demand(), self._supervisor, now)

    def _demand(self) -> Demand:
        if not self._supervisor.may_grow:
            return Demand(0.0, 0)  # no cold worker may come, whatever there is to do
        jobs = [job for job in self._jobs.values() if self._may_run_cold(job)]
        return Demand(
            backlog_s=sum(remaining_s(job, self._fleet, self._lead_s) for job in jobs),
            parts=sum(len(job.waiting) + len(job.running) for job in jobs),
        )

    def _leave(self, job_id: int, now: float) -> list[Command]:
        job = self._jobs.get(job_id)
        return self._end(job, JobState.CANCELLED, now) if job else []

    def _update(self, job_id: int, change: Callable[[Job], None]) -> None:
        job = self._jobs.get(job_id)
        if job is not None:
            change(job)

    def _join(self, job: Job, client: str) -> None:
        if client not in job.clients:
            job.clients.append(client)
            self._queue.add(job)

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

    def _sounds(self, event: Progress, now: float) -> bool:
        """Take in a sign of life; whether it clears a suspect, so that others may join it."""
        run = self._fleet.hear(event.worker, event.task, now)
        if run is None or run.has_sounded:
            return False
        run.has_sounded = True
        self._blame.clear(run.task)
        return run.is_suspect

    def _settle(self, event: Finished, now: float) -> list[Command]:
        task = self.task(event.worker, event.task)
        run = self._fleet.free(event.worker, event.task, now)
        if event.audio_s is not None:
            self._supervisor.works(event.worker)
        if task is None or run is None:
            return []
        job = self._jobs[task.job]
        self._blame.clear(task)
        if event.audio_s is None:
            error = SynthesisFailed("The engine could not speak this text.")
            job.misses[task.utterance.index] += 1
            return self._again(job, task.utterance.index, error, now)
        self._fleet.learn(event.worker, run, event.audio_s, now)
        job.finish(task.utterance.index, event.audio_s, now)
        return [] if job.waiting or job.running else self._end(job, JobState.DONE, now)

    def _bury(self, event: Died, now: float) -> list[Command]:
        worker = self._supervisor.bury(event, now)
        if worker is None:
            return []
        commands: list[Command] = []
        for run in worker.running.values():
            if run.is_cancelled and worker.is_hung:  # it did not stop in time, which is no crime
                continue
            index = run.task.utterance.index
            job = None if run.is_cancelled else self._jobs.get(run.task.job)
            is_last = job is not None and job.runs[index] >= MAX_RUNS
            # Memory runs out for many reasons: the words are tried again alone, and not remembered.
            is_guilty = run.is_suspect and (is_last or not run.has_sounded) and not event.is_out_of_memory
            (self._blame.convict if is_guilty else self._blame.accuse)(run.task, now)
            if job is None:  # gone, perhaps just now, with another of its utterances
                continue
            job.fled = job.fled or worker.kind is WorkerKind.COLD
            if is_guilty:
                error = SynthesisFailed("The speech engine stopped twice while it was to speak this text.")
                commands += self._fail(job, error, now)
            else:
                error = SynthesisFailed("The speech engine stopped while it was speaking.")
                commands += self._again(job, index, error, now)
        for job in [job for job in self._jobs.values() if not job.released and self._blame.has_convict(job.spec)]:
            commands += self._fail(job, _convicted(), now)
        return commands + (self._give_up(now) if self._supervisor.is_hopeless else [])

    def _tick(self, tick: Tick, now: float) -> list[Command]:
        commands: list[Command] = list(self._supervisor.kill_hung(tick.late_s, now))
        late = [job for job in self._jobs.values() if job.gives_up_at is not None and job.gives_up_at <= now]
        for job in late:
            commands += self._fail(job, DeadlineExceeded("There was no sound in the time that this request had."), now)
        return commands

    # --- steps

    def _again(self, job: Job, index: int, error: SpeechError, now: float) -> list[Command]:
        """Run an utterance once more, or fail its job with `error` where that is not possible."""
        job.stop(index)
        if job.is_spent(index):
            return self._fail(job, error, now)
        job.waiting.append(index)
        job.waiting.sort()
        return [Rerun(job.spec.id, index)]

    def _fail(self, job: Job, error: SpeechError, now: float) -> list[Command]:
        return [*self._end(job, JobState.FAILED, now), Fail(job.spec.id, error)]

    def _end(self, job: Job, state: JobState, now: float) -> list[Command]:
        """Take a job off the list; tasks of it that still run are told to stop."""
        commands: list[Command] = []
        for worker in self._fleet:
            for run in worker.running.values():
                if run.task.job == job.spec.id and not run.is_cancelled:
                    run.is_cancelled, run.heard_at = True, now
                    commands.append(Cancel(worker.id, run.task.id))
        job.move(state)
        del self._jobs[job.spec.id]
        self._queue.remove(job)
        return commands

    def _give_up(self, now: float) -> list[Command]:
        """The hot worker does not start: end what no cold one works for."""
        commands: list[Command] = []
        for job in list(self._jobs.values()):
            if not job.running and not (self._fleet.slots and self._may_run_cold(job)):
                error = Unavailable(f"The speech engine does not start: {self._supervisor.reason}")
                commands += self._fail(job, error, now)
        return commands

    def _dispatch(self, now: float) -> Iterator[Command]:
        workers = [worker for worker in self._fleet if worker.takes_work and not worker.is_quarantined]
        due = (job for job in self._jobs.values() if self._is_due(job, now))
        for suspect in list(takewhile(self._is_suspect, due)):  # who came before them is not to starve behind them
            if self._blame.is_convicted(suspect.next, suspect.spec):
                yield from self._fail(suspect, _convicted(), now)
                continue
            fitting = [worker for worker in workers if self._fits(suspect, worker)]
            if fitting:
                worker = min(fitting, key=lambda worker: len(worker.running))
                workers.remove(worker)  # it takes nothing else before: it is to be empty
                if not worker.running:
                    yield self._start(suspect, worker, now, is_suspect=True)
        for worker in workers:
            yield from self._fill(worker, now)

    def _is_suspect(self, job: Job) -> bool:
        return self._blame.is_accused(job.next, job.spec)

    def _fill(self, worker: Worker, now: float) -> Iterator[Command]:
        def fits(job: Job) -> bool:
            return self._fits(job, worker) and self._is_due(job, now) and not self._is_suspect(job)

        while len(worker.running) < self._bound(worker) and worker.free_slots and (job := self._queue.take(now, fits)):
            yield self._start(job, worker, now)

    def _bound(self, worker: Worker) -> int:
        """Slots of a worker that may be used. Where all share one engine, streams aboard must stay ahead of time."""
        if not worker.batches or not any(self._is_listened_to(run) for run in worker.running.values()):
            return worker.slots
        return self._fleet.sustainable(worker)

    def _is_listened_to(self, run: Run) -> bool:
        return not run.is_cancelled and self._jobs[run.task.job].spec.streamed

    def _fits(self, job: Job, worker: Worker) -> bool:
        return worker.kind is WorkerKind.HOT or worker.batches or self._may_run_cold(job)

    def _may_run_cold(self, job: Job) -> bool:
        return self._streams_on_cold or not job.spec.paced

    def _cost_s(self, job: Job) -> float:
        return self._fleet.audio_s(job.next, job.spec.params.speed)

    def _is_due(self, job: Job, now: float) -> bool:
        if not job.waiting or job.opening:
            return False
        time = job.free_at(self._lead_s, now)
        return time is not None and time <= now

    def _start(self, job: Job, worker: Worker, now: float, *, is_suspect: bool = False) -> Start:
        utterance, spec = job.next, job.spec
        task = Task(next(self._task_ids), spec.id, utterance, spec.voice, spec.params, job.seed(utterance.index))
        job.start(task, self._cost_s(job))
        self._fleet.take(worker, task, now, is_suspect=is_suspect)
        route = "COLD-POOL>HOT" if job.fled else "HOT" if worker.kind is WorkerKind.HOT else "COLD-POOL"
        return Start(worker.id, task, route)


def _convicted() -> SynthesisFailed:
    return SynthesisFailed("This text has ended the speech engine twice within the last minutes.")
