"""Workers that die, hang or stop slowly, and what becomes of those aboard; by hand-made events and times."""

import pytest

from core.errors import DeadlineExceeded, SynthesisFailed, Unavailable
from core.speech import OPENING_UTTERANCES, Priors, Reference, Utterance
from harness.scheduling import GAINING, ONE_COLD, PATIENCE, jobs, ready, reborn, spawned, spec, submit, tasks
from scheduler.admission import Limits
from scheduler.autoscaler import ColdPool
from scheduler.blame import CONVICTION_S
from scheduler.job import MAX_RUNS, JobSpec
from scheduler.messages import (
    DeviceMemory,
    Died,
    Fail,
    Finished,
    FirstAudio,
    Kill,
    Left,
    Memory,
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
from scheduler.supervisor import HOPE_S, HOPEFUL_PAUSE_S, HOPELESS_STARTS
from scheduler.worker import BACK_OFF_S, MAX_BACK_OFF_S

# --- suspects


def test_all_that_were_aboard_a_dead_worker_run_again_one_by_one_until_they_sound():
    scheduler = ready(slots=3)
    submit(scheduler, spec(1), spec(2), spec(3))
    said = reborn(scheduler, 1, 1.0, slots=3)
    assert jobs(said, Rerun) == [1, 2, 3]
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
    (cold,) = spawned(said)
    assert jobs(scheduler.handle(Ready(cold, 2, GAINING), 1.0)) == [3, 4]
    assert jobs(scheduler.handle(Died(cold), 2.0), Rerun) == [3, 4]
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
    assert jobs(died, Rerun) == [2]


def test_a_suspect_whose_client_left_holds_nobody_up():
    scheduler = ready()
    submit(scheduler, spec(1), spec(2), spec(3))
    reborn(scheduler, 1, 1.0)
    scheduler.handle(Left(1), 2.1)
    assert jobs(scheduler.handle(Stopped(2, 3), 2.2)) == [2]


def test_memory_that_runs_out_convicts_nobody():
    scheduler = ready(slots=1)
    submit(scheduler, spec(1, "good words"))
    reborn(scheduler, 1, 1.0, slots=1)
    said = scheduler.handle(Died(2, is_out_of_memory=True), 3.0)
    assert jobs(said, Rerun) == [1]  # alone, once more
    (worker,) = spawned(scheduler.handle(Tick(), 4.0))
    assert jobs(scheduler.handle(Ready(worker, 1, Priors()), 5.0)) == [1]
    assert jobs(scheduler.handle(Died(worker, is_out_of_memory=True), 6.0), Fail) == [1]
    assert not jobs(submit(scheduler, spec(2, "good words"), now=7.0), Fail)


def test_words_that_silence_the_whole_worker_are_convicted_too():
    scheduler = ready(slots=1)
    submit(scheduler, spec(1, "poison"))
    (kill,) = scheduler.handle(Tick(), PATIENCE.silence_s)
    assert kill.reason == "it gave no sign of life"
    reborn(scheduler, 1, 31.0, slots=1)
    assert [type(c) for c in scheduler.handle(Tick(), 63.0)] == [Kill]
    assert jobs(scheduler.handle(Died(2), 63.0), Fail) == [1]
    assert jobs(submit(scheduler, spec(2, "poison"), now=64.0), Fail) == [2]


def test_words_that_end_each_worker_behind_their_first_sound_are_convicted_in_the_end():
    scheduler = ready(slots=1)
    submit(scheduler, spec(1, "poison"))
    now, worker, said = 1.0, 1, []
    for _ in range(MAX_RUNS):
        scheduler.handle(Progress(worker, next(iter(scheduler._fleet.workers[worker].running))), now)
        said = scheduler.handle(Died(worker), now)
        now += 4.0
        (worker,) = spawned([*said, *scheduler.handle(Tick(), now)])
        scheduler.handle(Ready(worker, 1, Priors()), now)
    assert jobs(said, Fail) == [1]
    assert jobs(submit(scheduler, spec(2, "poison"), now=now), Fail) == [2]


def test_clients_that_do_not_wait_for_a_slow_engine_convict_nobody():
    scheduler = ready(slots=1)
    now, worker = 0.0, 1
    for number in range(1, 4):
        assert not jobs(submit(scheduler, spec(number, "good words"), now=now), Fail)
        scheduler.handle(Left(number), now + 1)
        now += 1 + 3 * PATIENCE.task_s  # it has finished nothing yet, and may still warm up
        assert scheduler.handle(Tick(), now - 0.5) == []
        assert [type(c) for c in scheduler.handle(Tick(), now)] == [Kill]
        said = scheduler.handle(Died(worker), now)
        now += 4.0
        (worker,) = spawned([*said, *scheduler.handle(Tick(), now)])
        scheduler.handle(Ready(worker, 1, Priors()), now)


def test_convicted_words_do_not_run_at_the_end_of_a_longer_text_either():
    scheduler = ready(slots=2)
    parts = (Utterance(0, "hello there", "en"), Utterance(1, "poison", "en"))
    (task,) = tasks(scheduler.handle(Submitted(JobSpec(parts, Reference("alloy"), id=1)), 0.0))
    scheduler.handle(FirstAudio(1, 0), 0.1)
    submit(scheduler, spec(2, "poison"), now=0.2)
    scheduler._blame.convict(scheduler.task(1, 2), 0.3)
    assert jobs(scheduler.handle(Finished(1, task, 1.0), 0.4), Fail) == [1]


def test_poison_whose_client_leaves_each_time_is_found_all_the_same():
    scheduler = ready(slots=2)
    submit(scheduler, spec(1, "poison"))
    scheduler.handle(Left(1), 0.5)
    reborn(scheduler, 1, 1.0)
    submit(scheduler, spec(2), now=2.5)
    assert jobs(submit(scheduler, spec(3, "poison"), now=3.0)) == []  # accused: it waits to be alone
    assert jobs(scheduler.handle(Finished(2, 2, 1.0), 3.5)) == [3]
    scheduler.handle(Left(3), 4.0)
    reborn(scheduler, 2, 5.0)
    (fail,) = submit(scheduler, spec(4, "poison"), now=7.0)
    assert isinstance(fail, Fail)


def test_all_who_wait_with_convicted_words_are_told_at_once():
    scheduler = ready(slots=1)
    submit(scheduler, spec(1, "poison"), spec(2, "poison"), spec(3))
    reborn(scheduler, 1, 1.0, slots=1)
    said = scheduler.handle(Died(2), 3.0)
    assert jobs(said, Fail) == [1, 2]


def test_suspects_take_the_empty_workers_and_leave_those_alone_that_take_no_work():
    scheduler = ready(slots=1, cold=ONE_COLD, priors=GAINING)
    scheduler.handle(Memory((DeviceMemory("cpu", 10**12),), {}), 0.0)
    said = submit(scheduler, *[spec(number) for number in range(1, 9)])
    (cold,) = spawned(said)
    assert jobs(scheduler.handle(Ready(cold, 1, GAINING), 1.0)) == [2]
    died = scheduler.handle(Died(1), 2.0)  # job 1 is suspect, and the cold worker is busy with job 2
    (hot,) = spawned(died)
    assert jobs(scheduler.handle(Ready(hot, 1, GAINING), 3.0)) == [1]
    assert jobs(scheduler.handle(Finished(cold, 2, 1.0), 3.1)) == [3]  # it is not held for anybody


# --- a hot worker that does not come back


def spoken(scheduler: Scheduler) -> Scheduler:
    """Its first worker has made something."""
    (task,) = tasks(submit(scheduler, spec(1000)))
    scheduler.handle(Finished(1, task, 1.0), 0.5)
    return scheduler


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


def test_cold_workers_go_on_when_the_hot_one_does_not_start():
    scheduler = ready(slots=1, cold=ONE_COLD, priors=GAINING)
    scheduler.handle(Memory((DeviceMemory("cpu", 10**12),), {}), 0.0)
    said = submit(scheduler, *[spec(number) for number in range(1, 9)])
    (cold,) = spawned(said)
    (task,) = tasks(scheduler.handle(Ready(cold, 1, GAINING), 1.0))
    now, worker = 2.0, 1
    while now <= 2.0 + 2 * HOPE_S:
        said = scheduler.handle(Died(worker, "no such file"), now)
        assert not jobs(said, Fail)
        for _ in range(3):
            now += 10.0
            said += scheduler.handle(Progress(cold, task), now)
        said += scheduler.handle(Tick(), now)
        (worker,) = spawned(said)
    assert scheduler.view(now).is_hopeless
    assert scheduler.view(now).is_ready  # somebody speaks
    said = scheduler.handle(Died(cold), now + 1)
    assert sorted(jobs(said, Fail)) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_an_engine_that_has_loaded_before_is_waited_for_a_while():
    scheduler = spoken(ready(slots=1))
    submit(scheduler, spec(1))
    now, worker, said = 1.0, 1, []
    for _ in range(HOPELESS_STARTS + 1):
        said = scheduler.handle(Died(worker), now)
        assert not jobs(said, Fail)
        assert not jobs(submit(scheduler, spec(100 + worker), now=now), Fail)
        now += 4.0
        (worker,) = spawned([*said, *scheduler.handle(Tick(), now)])
    assert now < 1.0 + HOPE_S
    assert jobs(scheduler.handle(Ready(worker, 1, Priors()), now)) == [1]
    assert jobs(scheduler.handle(Died(worker), now), Fail) == [1]  # alone aboard for the second time
    for _ in range(HOPELESS_STARTS):
        now += 35.0
        (worker,) = spawned(scheduler.handle(Tick(), now))
        said = scheduler.handle(Died(worker, "no such file"), now)
    assert scheduler.view(now).is_hopeless
    assert len(jobs(said, Fail)) == 4


def test_an_engine_that_spoke_and_dies_is_back_soon_however_often():
    scheduler = spoken(ready(slots=1))
    now, worker, pauses = 1.0, 1, []
    for _ in range(6):
        said = scheduler.handle(Died(worker), now)
        pauses.append(scheduler.backoff_s(now))
        now += pauses[-1]
        (worker,) = spawned([*said, *scheduler.handle(Tick(), now)])
        scheduler.handle(Ready(worker, 1, Priors()), now + 1.0)
        now += 1.5
    assert pauses == [0.0, 0.5, 1.0, 2.0, HOPEFUL_PAUSE_S, HOPEFUL_PAUSE_S]


def test_an_engine_that_loads_and_dies_without_a_word_is_given_more_and_more_time():
    scheduler = ready(slots=1)
    now, worker = 1.0, 1
    for _ in range(8):
        said = scheduler.handle(Died(worker), now)
        now += scheduler.backoff_s(now)
        (worker,) = spawned([*said, *scheduler.handle(Tick(), now)])
        scheduler.handle(Ready(worker, 1, Priors()), now + 1.0)
        now += 1.5
    scheduler.handle(Died(worker), now)
    assert scheduler.backoff_s(now) == MAX_BACK_OFF_S


def test_what_cold_workers_make_does_not_hide_that_the_hot_one_keeps_dying():
    scheduler = ready(slots=1, cold=ONE_COLD, priors=GAINING)
    scheduler.handle(Memory((DeviceMemory("cpu", 10**12),), {}), 0.0)
    said = submit(scheduler, *[spec(number) for number in range(1, 9)])
    (cold,) = spawned(said)
    (task,) = tasks(scheduler.handle(Ready(cold, 1, GAINING), 1.0))
    (hot,) = spawned(scheduler.handle(Died(1), 2.0))
    scheduler.handle(Finished(cold, task, 1.0), 2.5)
    assert not [c for c in scheduler.handle(Died(hot), 3.0) if isinstance(c, Spawn)]
    assert scheduler.backoff_s(3.0) == BACK_OFF_S


def test_an_idle_worker_is_not_sent_away_by_the_very_event_that_brings_it_work():
    scheduler = ready(slots=1, cold=ColdPool(size=0, hot_idle_s=5.0))
    said = submit(scheduler, spec(1), now=6.0)
    assert [type(c) for c in said] == [Start]


def test_a_refusal_wakes_an_unloaded_worker_so_that_the_next_try_succeeds():
    scheduler = ready(slots=1, cold=ColdPool(size=0, hot_idle_s=5.0))
    assert scheduler.handle(Tick(), 6.0) == [Retire(1)]
    scheduler.handle(Died(1), 6.1)
    said = submit(scheduler, spec(1, max_wait_s=0.1), now=7.0)
    assert jobs(said, Fail) == [1]
    assert spawned(said) == [2]
    scheduler.handle(Ready(2, 1, Priors()), 9.0)
    assert jobs(submit(scheduler, spec(2, max_wait_s=5.0), now=9.1)) == [2]


def test_the_hot_worker_stays_while_somebody_plays_what_it_made_so_far():
    scheduler = ready(slots=1, cold=ColdPool(size=0, hot_idle_s=5.0))
    long = JobSpec(tuple(Utterance(n, "twelve words " * 6, "en") for n in range(20)), Reference("alloy"), id=1)
    said, now = submit(scheduler, long), 0.0
    while task := tasks(said):
        now += 1.0
        said = scheduler.handle(Finished(1, task[0], 10.0), now)
    assert scheduler.next_wake(now) == now + PATIENCE.silence_s  # its lead is full; nothing to do but to listen
    scheduler.handle(Progress(1), now + 20.0)
    assert scheduler.handle(Tick(), now + 20.0) == []
    assert scheduler.handle(Left(1), now + 20.0) == [Retire(1)]


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


# --- a GPU that fails


@pytest.mark.parametrize("shares_fate", [True, False], ids=["with MPS", "each by itself"])
def test_workers_that_share_a_gpu_share_its_faults(shares_fate):
    pool = ColdPool(size=1, safety=0.0, interval_s=0.0, shares_fate=shares_fate)
    scheduler = ready(slots=1, priors=GAINING, cold=pool, device="GPU-1")
    scheduler.handle(Memory((DeviceMemory("GPU-1", 10**12, 10**12),), {}), 0.0)
    said = submit(scheduler, *(spec(number) for number in range(1, 9)))
    (cold,) = spawned(said)
    scheduler.handle(Ready(cold, 1, GAINING), 1.0)
    said = scheduler.handle(Died(1, "a fault", is_device_fault=True), 2.0)
    assert [command.worker for command in said if isinstance(command, Kill)] == ([cold] if shares_fate else [])
    if shares_fate:
        assert not [command for command in said if isinstance(command, Start)]
