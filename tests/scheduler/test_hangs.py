"""Workers that hang, or stop slowly; by hand-made events and times."""

from core.speech import Priors
from harness.scheduling import PATIENCE, jobs, quiet_until, ready, reborn, spawned, spec, submit, tasks
from scheduler.messages import (
    Died,
    Kill,
    Left,
    Phase,
    Progress,
    Ready,
    Stopped,
    Tick,
)
from scheduler.scheduler import Scheduler


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
    assert spawned(scheduler.handle(Died(1), wake + 12)) == [2]


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
    wake = scheduler.next_wake(61.0)
    assert wake == 61.0  # at once: the other one has been waited for long enough
    (kill,) = scheduler.handle(Tick(), wake)
    assert isinstance(kill, Kill)
    assert jobs(reborn(scheduler, 1, 62.0)) == [3]


def test_a_cancelled_task_that_does_not_stop_hides_nobody_else_who_hangs():
    scheduler = ready()
    _, second = tasks(submit(scheduler, spec(1), spec(2)))
    scheduler.handle(Progress(1, second), 10.0)
    scheduler.handle(Left(1), 10.0)
    closed_at = scheduler.next_wake(10.0)
    assert closed_at == 10.0 + 3 * PATIENCE.task_s  # its own bound, which does not grow with what it was to make
    assert scheduler.handle(Tick(), closed_at) == []
    scheduler.handle(Progress(1), 30.0)
    wake = scheduler.next_wake(30.0)
    assert 40.0 < wake < 50.0
    (kill,) = scheduler.handle(Tick(), wake)
    assert kill.reason == "it hung in an utterance"


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


def test_a_phase_that_took_too_long_is_given_longer_the_next_time_and_never_for_ever():
    scheduler = Scheduler(lead_s=60.0, patience=PATIENCE)
    scheduler.start()
    bounds, now, worker = [], 0.0, 1
    for _ in range(4):
        scheduler.handle(Phase(worker, "imports"), now)
        bounds.append(scheduler.next_wake(now) - now)
        now += bounds[-1]
        assert [type(c) for c in scheduler.handle(Tick(), now)] == [Kill]
        said = scheduler.handle(Died(worker), now)
        now += scheduler.backoff_s(now)
        (worker,) = spawned([*said, *scheduler.handle(Tick(), now)])
    assert bounds == [50.0, 100.0, 100.0, 100.0]  # what downloads nothing has less at first


def test_a_server_that_stood_still_does_not_put_its_workers_into_the_future():
    scheduler = ready()
    scheduler.handle(Progress(1), 3600.0)  # read in the same turn of the loop, before the wake-up that was due
    scheduler.handle(Tick(late_s=3570.0), 3600.0)
    assert scheduler.next_wake(3600.0) == 3600.0 + PATIENCE.silence_s
