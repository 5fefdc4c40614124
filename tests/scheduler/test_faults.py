"""Workers that die, hang or stop slowly, and what becomes of those aboard; by hand-made events and times."""

import pytest

from core.errors import DeadlineExceeded, SynthesisFailed, Unavailable
from core.speech import OPENING_UTTERANCES, Priors, Reference, Utterance
from scheduler.admission import Limits
from scheduler.autoscaler import ColdPool
from scheduler.job import JobSpec
from scheduler.messages import (
    Command,
    DeviceMemory,
    Died,
    Fail,
    Finished,
    FirstAudio,
    Kill,
    Left,
    Memory,
    Phase,
    Progress,
    Ready,
    Restart,
    Spawn,
    Start,
    Stopped,
    Submitted,
    Tick,
)
from scheduler.scheduler import CONVICTION_S, Scheduler
from scheduler.supervisor import HOPELESS_STARTS
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
    spawns = [c.worker for c in [*died, *scheduler.handle(Tick(), now + 0.6)] if isinstance(c, Spawn)]
    return died + scheduler.handle(Ready(spawns[0], slots, Priors()), now + 1.0)


def jobs(commands: list[Command], kind: type = Start) -> list[int]:
    return [c.task.job if isinstance(c, Start) else c.job for c in commands if isinstance(c, kind)]


def tasks(commands: list[Command]) -> list[int]:
    return [c.task.id for c in commands if isinstance(c, Start)]


# --- suspects


def test_all_that_were_aboard_a_dead_worker_run_again_one_by_one_until_they_sound():
    scheduler = ready(slots=3)
    submit(scheduler, spec(1), spec(2), spec(3))
    said = reborn(scheduler, 1, 1.0, slots=3)
    assert jobs(said, Restart) == [1, 2, 3]
    assert jobs(said) == [1]
    assert jobs(submit(scheduler, spec(4), now=2.1)) == []  # nobody joins a suspect
    said = scheduler.handle(Progress(2, tasks(said)[0]), 2.2)
    assert jobs(said) == []  # the next suspect waits until it is alone
    assert jobs(scheduler.handle(Finished(2, 4, 1.0), 2.3)) == [2]
    assert jobs(scheduler.handle(Finished(2, 5, 1.0), 2.4)) == [3]
    assert jobs(scheduler.handle(Progress(2, 6), 2.5)) == [4]  # cleared: others may come


def test_only_a_lone_suspect_is_convicted_and_what_it_said_is_refused_for_ten_minutes():
    scheduler = ready()
    submit(scheduler, spec(1, "poison"), spec(2))
    reborn(scheduler, 1, 1.0)
    said = reborn(scheduler, 2, 3.0)
    (fail,) = [c for c in said if isinstance(c, Fail)]
    assert (fail.job, type(fail.error)) == (1, SynthesisFailed)
    assert jobs(said) == [2]
    (refusal,) = submit(scheduler, spec(3, "poison"), now=5.0)
    assert isinstance(refusal, Fail)
    assert isinstance(refusal.error, SynthesisFailed)
    assert not any(isinstance(c, Fail) for c in submit(scheduler, spec(4, "not poison"), now=5.0))
    later = 3.0 + CONVICTION_S + 1
    assert not any(isinstance(c, Fail) for c in submit(scheduler, spec(5, "poison"), now=later))


def test_a_suspect_of_a_dead_cold_worker_gets_the_hot_one_once_that_is_empty():
    scheduler = ready(slots=2, cold=ONE_COLD, priors=GAINING)
    scheduler.handle(Memory((DeviceMemory("cpu", 10**12),), {}), 0.0)
    said = submit(scheduler, *[spec(number) for number in range(1, 30)])
    (cold,) = [c.worker for c in said if isinstance(c, Spawn)]
    assert jobs(scheduler.handle(Ready(cold, 2, GAINING), 1.0)) == [3, 4]
    assert jobs(scheduler.handle(Died(cold), 2.0), Restart) == [3, 4]
    assert jobs(scheduler.handle(Finished(1, 1, 1.0), 2.0)) == []  # the other slot is still at work
    assert jobs(scheduler.handle(Finished(1, 2, 1.0), 2.1)) == [3]
    assert jobs(scheduler.handle(Finished(1, 5, 1.0), 2.2)) == [4]
    assert jobs(scheduler.handle(Finished(1, 6, 1.0), 2.3)) == [5, 6]


def test_a_job_with_two_utterances_aboard_that_cannot_go_on_takes_nobody_along():
    scheduler = ready(slots=3)
    parts = tuple(Utterance(index, "some words", "en") for index in range(6))
    said = scheduler.handle(Submitted(JobSpec(parts, Reference("alloy"), id=1)), 0.0)
    for index in range(OPENING_UTTERANCES):
        scheduler.handle(FirstAudio(1, index), 0.0)
        said = scheduler.handle(Finished(1, tasks(said)[0], 1.0), 0.0)
    assert jobs(said) == [1, 1, 1]
    submit(scheduler, spec(2), now=0.1)
    assert jobs(scheduler.handle(Finished(1, tasks(said)[2], 1.0), 0.2)) == [2]
    scheduler.handle(FirstAudio(1, 3), 0.3)
    died = scheduler.handle(Died(1), 0.5)
    assert jobs(died, Fail) == [1]
    assert jobs(died, Restart) == [2]


def test_a_suspect_whose_client_left_holds_nobody_up():
    scheduler = ready()
    submit(scheduler, spec(1), spec(2), spec(3))
    reborn(scheduler, 1, 1.0)
    scheduler.handle(Left(1), 2.1)
    assert jobs(scheduler.handle(Stopped(2, 3), 2.2)) == [2]


# --- hanging


def quiet_until(scheduler: Scheduler, worker: int, begin: float, end: float) -> list[Command]:
    """A worker that lives but makes nothing."""
    said = []
    while begin < end:
        begin += 1.0
        said += scheduler.handle(Progress(worker), begin)
        said += scheduler.handle(Tick(), begin)
    return said


def test_a_task_without_progress_ends_its_worker_within_the_bound_and_no_sooner():
    scheduler = ready()
    submit(scheduler, spec(1))
    assert not quiet_until(scheduler, 1, 0.0, 35.0)  # two seconds of audio at 0.5 a slot: ten times as long
    assert [c.worker for c in quiet_until(scheduler, 1, 35.0, 45.0) if isinstance(c, Kill)] == [1]


def test_a_task_that_goes_on_sounding_is_not_hung_however_long_it_takes():
    scheduler = ready()
    (task,) = tasks(submit(scheduler, spec(1)))
    for second in range(0, 300, 10):
        scheduler.handle(Progress(1, task), second)
        assert scheduler.handle(Tick(), second + 5) == []


def test_a_worker_that_gives_no_sign_of_life_is_ended_even_if_it_has_nothing_to_do():
    scheduler = ready()
    wake = scheduler.next_wake(0.0)
    assert wake == PATIENCE.silence_s
    (kill,) = scheduler.handle(Tick(), wake)
    assert isinstance(kill, Kill)
    assert scheduler.handle(Tick(), wake + 10) == []  # told once
    assert jobs(submit(scheduler, spec(1), now=wake + 11)) == []  # and given nothing more
    assert [c.worker for c in scheduler.handle(Died(1), wake + 12) if isinstance(c, Spawn)] == [2]


def test_a_server_that_stood_still_itself_blames_nobody():
    scheduler = ready()
    submit(scheduler, spec(1))
    assert scheduler.handle(Tick(late_s=3600.0), 3610.0) == []
    assert [type(c) for c in scheduler.handle(Tick(), 3700.0)] == [Kill]


def test_a_cancelled_task_that_does_not_stop_is_waited_for_until_nobody_is_harmed():
    scheduler = ready()
    _, second = tasks(submit(scheduler, spec(1), spec(2)))
    scheduler.handle(Left(1), 0.5)
    said = []
    for now in range(1, 60):
        said += scheduler.handle(Progress(1, second), float(now))
        said += scheduler.handle(Tick(), float(now))
    assert said == []  # the neighbour speaks on
    assert jobs(submit(scheduler, spec(3), now=60.0)) == []
    scheduler.handle(Left(2), 61.0)
    (kill,) = scheduler.handle(Tick(), 61.1)
    assert isinstance(kill, Kill)
    assert jobs(reborn(scheduler, 1, 62.0)) == [3]


def test_a_cancelled_task_that_stops_late_gives_its_worker_back():
    scheduler = ready()
    first, second = tasks(submit(scheduler, spec(1), spec(2)))
    scheduler.handle(Left(1), 0.5)
    for now in range(1, 60):
        scheduler.handle(Progress(1, second), float(now))
        scheduler.handle(Tick(), float(now))
    submit(scheduler, spec(3), now=60.0)
    assert jobs(scheduler.handle(Stopped(1, first), 60.0)) == [3]


def test_a_phase_of_the_start_has_a_bound_that_is_learned_and_the_first_one_a_long_one():
    scheduler = Scheduler(lead_s=60.0, patience=PATIENCE)
    scheduler.start()
    scheduler.handle(Phase(1, "imports"), 1.0)
    scheduler.handle(Phase(1, "weights"), 3.0)
    assert scheduler.next_wake(3.0) == 3.0 + PATIENCE.first_phase_s
    scheduler.handle(Phase(1, "weights"), 90.0)  # some more of a download: the bound begins anew
    assert scheduler.handle(Tick(), 110.0) == []
    scheduler.handle(Ready(1, 2, Priors()), 111.0)
    scheduler.handle(Died(1), 200.0)
    assert scheduler.handle(Phase(2, "imports"), 200.5) == []
    assert scheduler.next_wake(200.5) == 200.5 + 10 * 2.0
    (kill,) = scheduler.handle(Tick(), 221.0)
    assert isinstance(kill, Kill)
    assert "imports" in kill.reason


def test_a_start_that_hangs_is_tried_again_and_told_to_those_who_wait_when_it_is_hopeless():
    scheduler = Scheduler(lead_s=60.0, patience=PATIENCE)
    scheduler.start()
    submit(scheduler, spec(1))
    now, said = 0.0, []
    for worker in range(1, HOPELESS_STARTS + 1):
        now += PATIENCE.first_phase_s
        assert [type(c) for c in scheduler.handle(Tick(), now)] == [Kill]
        said += scheduler.handle(Died(worker, "it hung"), now)
        now += 5.0
        said += scheduler.handle(Tick(), now)
    (fail,) = [c for c in said if isinstance(c, Fail)]
    assert isinstance(fail.error, Unavailable)
    assert "it hung" in fail.error.message


# --- a hot worker that does not come back


def test_cold_workers_go_on_when_the_hot_one_does_not_start():
    scheduler = ready(slots=1, cold=ONE_COLD, priors=GAINING)
    scheduler.handle(Memory((DeviceMemory("cpu", 10**12),), {}), 0.0)
    said = submit(scheduler, *[spec(number) for number in range(1, 9)])
    (cold,) = [c.worker for c in said if isinstance(c, Spawn)]
    (task,) = tasks(scheduler.handle(Ready(cold, 1, GAINING), 1.0))
    now, worker = 2.0, 1
    for _ in range(HOPELESS_STARTS + 1):
        said = scheduler.handle(Died(worker, "no such file"), now)
        assert not jobs(said, Fail)
        now += 10.0
        said += scheduler.handle(Progress(cold, task), now)
        said += scheduler.handle(Tick(), now)
        (worker,) = [c.worker for c in said if isinstance(c, Spawn)]
    assert scheduler.view(now).is_hopeless
    assert scheduler.view(now).is_ready  # somebody speaks
    said = scheduler.handle(Died(cold), now + 1)
    assert sorted(jobs(said, Fail)) == [1, 2, 3, 4, 5, 6, 7, 8]


# --- deadlines


@pytest.mark.parametrize(
    ("limit_s", "asked_s", "given_up_at"), [(50.0, None, 50.0), (50.0, 20.0, 20.0), (0.0, 5.0, 5.0)]
)
def test_a_job_without_sound_is_given_up_at_its_deadline(limit_s, asked_s, given_up_at):
    scheduler = Scheduler(lead_s=60.0, limits=Limits(deadline_s=limit_s))
    scheduler.start()
    scheduler.handle(Ready(1, 1, Priors()), 0.0)
    submit(scheduler, spec(1))
    submit(scheduler, spec(2, max_wait_s=asked_s))
    scheduler.handle(Progress(1), given_up_at - 1)
    assert scheduler.next_wake(given_up_at - 1) == given_up_at
    scheduler.handle(FirstAudio(1, 0), given_up_at - 0.5)
    (fail,) = [c for c in scheduler.handle(Tick(), given_up_at) if isinstance(c, Fail)]
    assert (fail.job, type(fail.error)) == (2, DeadlineExceeded)


def test_who_has_sound_has_no_deadline_any_more_and_without_a_limit_nobody_has():
    scheduler = ready(limits=Limits(deadline_s=0.0))
    submit(scheduler, spec(1))
    scheduler.handle(FirstAudio(1, 0), 1.0)
    assert not jobs(scheduler.handle(Tick(), 10_000.0), Fail)


# --- streams aboard a batching engine

SHARED = Priors(rates=tuple(2.4 * slots**0.5 for slots in range(1, 17)))
"""Four sequences of 1.2 times real time each; sixteen of 0.6."""


def test_a_batching_worker_takes_no_more_than_keep_its_listeners_ahead():
    scheduler = ready(slots=16, batches=True, priors=SHARED)
    said = submit(scheduler, *[spec(number) for number in range(1, 17)])
    assert jobs(said) == [1, 2, 3, 4]
    assert jobs(scheduler.handle(Left(1), 0.5)) == []
    assert jobs(scheduler.handle(Stopped(1, 1), 0.6)) == [5]


def test_without_listeners_a_batching_worker_is_filled():
    scheduler = ready(slots=16, batches=True, priors=SHARED)
    said = submit(scheduler, *[spec(number, streamed=False) for number in range(1, 17)])
    assert len(jobs(said)) == 16
