"""A scheduler by hand: jobs and workers in few words, and what it says picked apart."""

from core.speech import Priors, Reference, Utterance
from scheduler.autoscaler import ColdPool
from scheduler.job import JobSpec
from scheduler.messages import Command, Died, Progress, Ready, Spawn, Start, Submitted, Tick
from scheduler.scheduler import Scheduler
from scheduler.watchdog import Patience

PATIENCE = Patience(task_s=4.0, factor=10.0, silence_s=30.0, phase_s=5.0, first_phase_s=100.0)
GAINING = Priors(rates=(1.0, 2.0, 3.0, 4.0), start_s=1.0)
ONE_COLD = ColdPool(size=1, safety=0.0, interval_s=0.0, idle_s=1000.0)


def spec(job: int, text: str = "", *, streamed: bool = True, max_wait_s: float | None = None) -> JobSpec:
    part = Utterance(0, text or f"the words of job number {job}", "en")
    return JobSpec((part,), Reference("alloy"), id=job, client=str(job), streamed=streamed, max_wait_s=max_wait_s)


def ready(slots: int = 2, *, batches: bool = False, priors: Priors | None = None, **options) -> Scheduler:
    scheduler = Scheduler(lead_s=60.0, patience=PATIENCE, **options)
    scheduler.start()
    scheduler.handle(Ready(1, slots, priors or Priors(), batches=batches), 0.0)
    return scheduler


def submit(scheduler: Scheduler, *specs: JobSpec, now: float = 0.0) -> list[Command]:
    return [command for each in specs for command in scheduler.handle(Submitted(each), now)]


def reborn(scheduler: Scheduler, worker: int, now: float, slots: int = 2) -> list[Command]:
    """What follows from the death of one worker and the coming of the next."""
    died = scheduler.handle(Died(worker), now)
    spawns = spawned([*died, *scheduler.handle(Tick(), now + 0.6)])
    return died + scheduler.handle(Ready(spawns[0], slots, Priors()), now + 1.0)


def jobs(commands: list[Command], kind: type = Start) -> list[int]:
    return [c.task.job if isinstance(c, Start) else c.job for c in commands if isinstance(c, kind)]


def tasks(commands: list[Command]) -> list[int]:
    return [c.task.id for c in commands if isinstance(c, Start)]


def spawned(commands: list[Command]) -> list[int]:
    return [c.worker for c in commands if isinstance(c, Spawn)]


def quiet_until(scheduler: Scheduler, worker: int, begin: float, end: float) -> list[Command]:
    """A worker that lives but makes nothing."""
    said = []
    while begin < end:
        begin += 1.0
        said += scheduler.handle(Progress(worker), begin)
        said += scheduler.handle(Tick(), begin)
    return said
