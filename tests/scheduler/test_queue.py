"""Whose turn it is: between clients by audio, within one by need."""

import pytest

from core.speech import Reference, Utterance
from scheduler.job import Job, JobSpec
from scheduler.queue import CREDIT_S, HURRY_S, SAFE_S, FairQueue, urgency


def anybody(job: Job) -> bool:
    return True


def waiting(number: int, client: str = "one", *, submitted_at: float = 0.0, streamed: bool = True) -> Job:
    parts = tuple(Utterance(index, "some words", "en") for index in range(100))
    return Job(JobSpec(parts, Reference("alloy"), id=number, client=client, streamed=streamed), submitted_at)


def playing(number: int, client: str = "one", *, until: float) -> Job:
    """A stream whose listener has audio until then."""
    job = waiting(number, client)
    job.plays_until = until
    return job


def turns(queue: FairQueue, count: int, now: float = 0.0) -> list[int]:
    return [job.spec.id if (job := queue.take(now, anybody)) else 0 for _ in range(count)]


def filled(*jobs: Job, cost_s: float = 2.0) -> FairQueue:
    queue = FairQueue(lambda job: cost_s)
    for job in jobs:
        queue.add(job)
    return queue


def test_clients_share_audio_and_not_jobs():
    queue = filled(*(waiting(number, "many") for number in range(1, 6)), waiting(9, "one"))
    taken = turns(queue, 40)
    assert 18 <= taken.count(9) <= 22


def test_a_client_that_was_silent_is_served_next():
    queue = filled(waiting(1, "a"), waiting(2, "b"))
    turns(queue, 11)
    queue.add(waiting(3, "new"))
    assert turns(queue, 1) == [3]


def test_one_that_comes_and_goes_is_not_owed_for_the_time_that_it_was_away():
    queue = filled(waiting(1, "a"), waiting(2, "b"))
    turns(queue, 50)
    queue.add(waiting(3, "new"))
    assert turns(queue, 40).count(3) <= 16


def test_a_playing_stream_goes_ahead_of_other_clients_on_credit_that_ends():
    stream = playing(1, "listener", until=10.0)
    queue = filled(stream, *(waiting(number, "b") for number in (2, 3)))
    turns(queue, 4)  # the first quanta
    taken = turns(queue, 60)
    assert set(taken[: int(CREDIT_S / 2 / 2)]) == {1}
    assert taken.count(2) > 5


def test_who_leaves_on_credit_has_not_paid():
    stream = playing(1, "listener", until=10.0)
    queue = filled(stream, waiting(2, "b"))
    turns(queue, 12)
    queue.remove(stream)
    queue.add(waiting(3, "listener"))
    assert turns(queue, 3) == [2, 2, 2]


def test_one_client_s_jobs_come_in_the_order_of_their_need():
    in_need = playing(1, until=100.0 + HURRY_S - 1)
    fresh = waiting(2, submitted_at=99.0)
    dry = playing(3, until=99.5)
    safe = playing(4, until=100.0 + SAFE_S - 1)
    whole = waiting(5, submitted_at=98.0, streamed=False)
    whole.plays_until, whole.made_s = 100.0, 10.0
    book = waiting(6, submitted_at=98.0, streamed=False)
    book.plays_until, book.made_s = 200.0, 100.0
    ahead = playing(7, until=100.0 + SAFE_S + 1)
    jobs = [ahead, book, safe, dry, fresh, whole, in_need]
    assert [job.spec.id for job in sorted(jobs, key=lambda job: urgency(job, 100.0))] == [1, 5, 2, 3, 4, 7, 6]


def test_what_runs_counts_as_audio_that_its_listener_will_have():
    job = playing(1, until=102.0)
    assert urgency(job, 100.0)[0] == 0
    job.expected = {1: 10.0}
    assert urgency(job, 100.0)[0] == 2


@pytest.mark.parametrize("count", [0, 1, 3])
def test_where_none_fits_nobody_is_charged_and_nobody_is_forgotten(count):
    queue = filled(*(waiting(number, str(number)) for number in range(1, count + 1)))
    for _ in range(5):
        assert queue.take(0.0, lambda job: False) is None
    assert set(turns(queue, 2 * count)) == set(range(1, count + 1))


def test_what_several_hear_is_made_in_whoever_s_turn_comes_first():
    many = [waiting(number, "many") for number in range(1, 9)]
    shared = waiting(9, "many")
    queue = filled(*many, shared)
    turns(queue, 3)
    assert 9 not in turns(queue, 5)  # it is the last of its client's
    shared.clients.append("new")
    queue.add(shared)
    assert turns(queue, 1) == [9]
    queue.remove(shared)
    assert 9 not in turns(queue, 20)
    queue.add(waiting(10, "new"))
    assert 10 in turns(queue, 8)
