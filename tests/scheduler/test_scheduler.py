"""Dispatch, replay, back-off and pacing, by hand-made events and times."""

import pytest

from core.errors import SynthesisFailed, Unavailable
from core.speech import OPENING_UTTERANCES, Priors, Reference, Utterance
from scheduler.job import JobSpec
from scheduler.messages import (
    Cancel,
    Command,
    Consumed,
    Died,
    Fail,
    Finished,
    FirstAudio,
    Left,
    Ready,
    Rerun,
    Spawn,
    Start,
    Stopped,
    Submitted,
    Tick,
)
from scheduler.scheduler import Scheduler
from scheduler.supervisor import HOPELESS_STARTS
from scheduler.watchdog import Patience
from scheduler.worker import MAX_BACK_OFF_S, pause_s

TEXT = "fourteen chars"  # one second at the assumed rate


def spec(job: int, utterances: int = 1, *, paced: bool = False, seed: int | None = None) -> JobSpec:
    parts = tuple(Utterance(index, TEXT, "en") for index in range(utterances))
    return JobSpec(parts, Reference("alloy"), id=job, paced=paced, seed=seed)


NEVER = float("inf")
ENDLESS = Patience(task_s=NEVER, silence_s=NEVER, first_phase_s=NEVER, phase_s=NEVER)


def ready(slots: int = 2, *, lead_s: float = 60.0) -> Scheduler:
    """A scheduler whose first worker, number 1, has loaded, and may be silent for ever."""
    scheduler = Scheduler(lead_s=lead_s, patience=ENDLESS)
    assert scheduler.start() == [Spawn(1, "cpu")]
    scheduler.handle(Ready(1, slots, Priors()), 0.0)
    return scheduler


def started(commands: list[Command]) -> list[tuple[int, int]]:
    """(job, utterance) of each Start, in order."""
    return [(c.task.job, c.task.utterance.index) for c in commands if isinstance(c, Start)]


def task_of(commands: list[Command]) -> int:
    (start,) = [c for c in commands if isinstance(c, Start)]
    return start.task.id


def opened(scheduler: Scheduler, job: JobSpec) -> list[Command]:
    """All that is said until a job that was just submitted is through the utterances that open it, a second each."""
    commands = said = scheduler.handle(Submitted(job), 0.0)
    for index in range(OPENING_UTTERANCES):
        scheduler.handle(FirstAudio(job.id, index), 0.0)
        said = scheduler.handle(Finished(1, task_of(said), 1.0), 0.0)
        commands += said
    return commands


def test_a_job_waits_for_the_model_and_starts_when_it_is_ready():
    scheduler = Scheduler(lead_s=60)
    scheduler.start()
    assert started(scheduler.handle(Submitted(spec(1)), 0.0)) == []
    assert started(scheduler.handle(Ready(1, 2, Priors()), 3.0)) == [(1, 0)]


def test_what_opens_a_job_runs_alone_and_in_order_and_the_rest_side_by_side():
    scheduler = ready(slots=4)
    commands = scheduler.handle(Submitted(spec(1, 5)), 0.0)
    for index in range(OPENING_UTTERANCES):
        assert started(commands) == [(1, index)]
        assert started(scheduler.handle(FirstAudio(1, index), 0.5)) == []
        commands = scheduler.handle(Finished(1, task_of(commands), 1.0), 0.6)
    assert started(commands) == [(1, 3), (1, 4)]


@pytest.mark.parametrize(("now", "next_one"), [(1.0, (1, 5)), (-3.0, (2, 0))])
def test_a_free_slot_goes_to_a_listener_in_need_and_else_to_the_oldest_job_without_sound(now, next_one):
    scheduler = ready(slots=2)
    commands = opened(scheduler, spec(1, 9))
    first = commands[-2].task.id
    assert started(commands)[-2:] == [(1, 3), (1, 4)]  # the long job takes the second slot too: it ends at 5 s
    assert started(scheduler.handle(Submitted(spec(2)), 0.2)) == []
    assert started(scheduler.handle(Submitted(spec(3)), 0.3)) == []
    assert started(scheduler.handle(Finished(1, first, 1.0), now)) == [next_one]


def test_a_cancelled_task_keeps_its_slot_until_it_has_stopped():
    scheduler = ready(slots=1)
    task = task_of(scheduler.handle(Submitted(spec(1)), 0.0))
    scheduler.handle(Submitted(spec(2)), 0.0)
    assert scheduler.handle(Left(1), 0.1) == [Cancel(1, task)]
    assert scheduler.task(1, task) is None
    assert started(scheduler.handle(Stopped(1, task), 0.2)) == [(2, 0)]


def test_leaving_a_queued_job_only_forgets_it():
    scheduler = ready(slots=1)
    scheduler.handle(Submitted(spec(1)), 0.0)
    scheduler.handle(Submitted(spec(2)), 0.0)
    assert scheduler.handle(Left(2), 0.1) == []
    assert scheduler.view(0.0).queued == 0


@pytest.mark.parametrize(
    "event", [Left(9), Consumed(9, 1, 1), FirstAudio(9, 0), Stopped(9, 9), Finished(9, 9, 1), Died(9)]
)
def test_events_about_what_is_gone_are_ignored(event):
    assert ready().handle(event, 0.0) == []


def test_an_utterance_whose_worker_died_runs_again_if_nothing_of_it_was_heard():
    scheduler = ready(slots=2)
    scheduler.handle(Submitted(spec(1, 2)), 0.0)
    assert scheduler.handle(Died(1), 1.0) == [Rerun(1, 0), Spawn(2, "cpu")]
    assert started(scheduler.handle(Ready(2, 2, Priors()), 2.0)) == [(1, 0)]


def test_a_job_fails_when_its_worker_died_with_half_an_utterance_heard():
    scheduler = ready()
    scheduler.handle(Submitted(spec(1, 2)), 0.0)
    scheduler.handle(FirstAudio(1, 0), 0.5)
    commands = scheduler.handle(Died(1), 1.0)
    (fail,) = [c for c in commands if isinstance(c, Fail)]
    assert fail.job == 1
    assert isinstance(fail.error, SynthesisFailed)


def test_what_was_finished_before_the_death_is_not_spoken_again():
    scheduler = ready(slots=2)
    first = task_of(scheduler.handle(Submitted(spec(1, 2)), 0.0))
    scheduler.handle(Finished(1, first, 1.0), 0.5)
    assert Rerun(1, 1) in scheduler.handle(Died(1), 1.0)
    assert started(scheduler.handle(Ready(2, 2, Priors()), 2.0)) == [(1, 1)]


def test_an_utterance_that_comes_out_wrong_twice_fails_its_job_and_no_other():
    scheduler = ready(slots=1)
    commands = scheduler.handle(Submitted(spec(1)), 0.0)
    commands = scheduler.handle(Finished(1, task_of(commands), None), 1.0)
    assert Rerun(1, 0) in commands
    scheduler.handle(Submitted(spec(2)), 1.0)
    commands = scheduler.handle(Finished(1, task_of(commands), None), 1.0)
    assert [type(c) for c in commands] == [Fail, Start]
    assert started(commands) == [(2, 0)]


def test_the_second_restart_in_a_row_waits_and_each_later_one_longer():
    scheduler = Scheduler(lead_s=60)
    scheduler.start()
    now, pauses, worker = 0.0, [], 1
    for _ in range(9):
        commands = scheduler.handle(Died(worker), now)
        pauses.append(scheduler.backoff_s(now))
        assert not pauses[-1] or scheduler.next_wake(now) == now + pauses[-1]
        now += pauses[-1]
        commands += scheduler.handle(Tick(), now)
        (worker,) = [c.worker for c in commands if isinstance(c, Spawn)]
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, MAX_BACK_OFF_S, MAX_BACK_OFF_S]


def test_a_worker_that_dies_for_days_is_still_tried_again():
    assert [pause_s(deaths) for deaths in (0, 1, 2, 5000)] == [0.0, 0.5, 1.0, MAX_BACK_OFF_S]


def test_a_finished_utterance_forgives_earlier_deaths():
    scheduler = ready()
    scheduler.handle(Died(1), 0.0)
    scheduler.handle(Ready(2, 2, Priors()), 1.0)
    scheduler.handle(Finished(2, task_of(scheduler.handle(Submitted(spec(1)), 1.0)), 1.0), 2.0)
    assert Spawn(3, "cpu") in scheduler.handle(Died(2), 3.0)


def test_jobs_are_told_when_the_engine_does_not_start_and_later_ones_at_once():
    scheduler = Scheduler(lead_s=60)
    scheduler.start()
    scheduler.handle(Submitted(spec(1)), 0.0)
    commands: list[Command] = []
    for worker in range(1, HOPELESS_STARTS + 1):
        commands += scheduler.handle(Died(worker, "weights are missing"), 100.0 * worker)
        commands += scheduler.handle(Tick(), 100.0 * worker + 50)
    (fail,) = [c for c in commands if isinstance(c, Fail)]
    assert isinstance(fail.error, Unavailable)
    assert "weights are missing" in str(fail.error)
    assert [c.job for c in scheduler.handle(Submitted(spec(2)), 999.0) if isinstance(c, Fail)] == [2]
    scheduler.handle(Ready(HOPELESS_STARTS + 1, 1, Priors()), 1000.0)
    assert started(scheduler.handle(Submitted(spec(3)), 1000.0)) == [(3, 0)]


def test_no_more_is_made_than_a_client_that_takes_nothing_may_have_ahead():
    scheduler = ready(slots=8, lead_s=5.0)
    assert started(opened(scheduler, spec(1, 20))) == [(1, index) for index in range(5)]
    assert started(scheduler.handle(Consumed(1, 1.0, 1.0), 0.2)) == [(1, 5)]
    assert scheduler.next_wake(0.2) == NEVER


def test_a_paced_client_that_reads_everything_is_still_served_in_real_time():
    scheduler = ready(slots=8, lead_s=2.0)
    commands = scheduler.handle(Submitted(spec(1, 20, paced=True)), 0.0)
    scheduler.handle(FirstAudio(1, 0), 10.0)
    for _ in range(OPENING_UTTERANCES):
        commands = scheduler.handle(Finished(1, task_of(commands), 1.0), 10.0)
        commands += scheduler.handle(Consumed(1, 1.0, 1.0), 10.0)
    assert scheduler.next_wake(10.0) == 11.0
    assert started(scheduler.handle(Tick(), 10.9)) == []
    assert started(scheduler.handle(Tick(), 11.0)) == [(1, 3)]


def test_what_a_paced_client_plays_counts_and_not_what_the_engine_made():
    scheduler = ready(slots=8, lead_s=2.0)
    commands = scheduler.handle(Submitted(spec(1, 20, paced=True)), 0.0)
    scheduler.handle(FirstAudio(1, 0), 10.0)
    scheduler.handle(Finished(1, task_of(commands), 9.0), 10.0)
    assert started(scheduler.handle(Consumed(1, 9.0, 0.25), 10.0)) == [(1, 1)]
    assert scheduler.next_wake(10.0) == NEVER


def test_each_utterance_of_a_seeded_job_has_its_own_seed_wherever_it_runs():
    scheduler = ready(slots=4)
    commands = opened(scheduler, spec(1, 5, seed=7))
    seeds = {c.task.utterance.index: c.task.seed for c in commands if isinstance(c, Start)}
    assert len(set(seeds.values())) == len(seeds) == 5
    again = ready(slots=1)
    commands = opened(again, spec(5, 5, seed=7))
    assert {c.task.utterance.index: c.task.seed for c in commands if isinstance(c, Start)}.items() <= seeds.items()


def seed_of(commands):
    return next(command.task.seed for command in commands if isinstance(command, Start))


def test_what_came_out_wrong_is_tried_with_another_seed_and_what_died_with_the_same():
    scheduler = ready(slots=1)
    commands = scheduler.handle(Submitted(spec(1, seed=5)), 0.0)
    first = seed_of(commands)
    scheduler.handle(Died(1), 0.5)
    commands = scheduler.handle(Ready(2, 1, Priors()), 1.0)
    assert seed_of(commands) == first
    commands = scheduler.handle(Finished(2, task_of(commands), None), 2.0)
    assert seed_of(commands) not in (first, None)
