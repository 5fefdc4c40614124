"""Cold workers in virtual time: they come when they are worth it and memory allows, and go when they are idle."""

import pytest

from machine import Machine, Room, job
from scheduler.autoscaler import ColdPool
from scheduler.scheduler import Scheduler


def linear(busy: int) -> float:
    """A machine that each process makes faster, up to four."""
    return 2.0 * min(busy, 4)


def crowded(busy: int) -> float:
    """One GPU: the second process adds a tenth."""
    return 4.2 if busy == 1 else 4.6


def machine(*, size: int | None = 3, rate=linear, start_s: float = 5.0, room: Room | None = None, **cold) -> Machine:
    scheduler = Scheduler(lead_s=60.0, cold=ColdPool(size=size, **cold))
    return Machine(scheduler, slots=1, rate=rate, start_s=start_s, room=room)


def burst(count: int, *chars: int, **fields) -> list:
    return [(0.0, job(number, *chars, **fields)) for number in range(1, count + 1)]


def test_a_long_queue_brings_as_many_as_are_allowed_and_all_is_made_sooner():
    alone = machine(size=0)
    alone.run(burst(100, 60))
    pool = machine()
    stories = pool.run(burst(100, 60))
    assert pool.most_workers == 4
    assert pool.now < alone.now / 2.5
    assert all(story.ended for story in stories.values())


def test_ten_short_jobs_do_not_start_workers_that_take_longer_than_they_do():
    scene = machine(rate=lambda busy: 4.2 * busy, start_s=11.0, size=6)
    scene.run(burst(10, 12))
    assert scene.most_workers == 1


def test_a_second_process_that_adds_a_tenth_is_not_taken_for_double():
    scene = machine(rate=crowded, start_s=11.0, size=6)
    scene.run(burst(40, 60))  # 200 s of audio: 48 s alone, 45 s with another that comes after 11 s
    assert scene.most_workers == 1


def test_without_a_word_of_the_operator_a_backend_that_does_not_gain_gets_none():
    scene = machine(size=None)
    scene.run(burst(100, 60))
    assert scene.most_workers == 1


@pytest.mark.parametrize(("free", "workers"), [(1.0, 1), (3.0, 2), (4.0, 3), (5.5, 3), (50.0, 4)])
def test_memory_is_never_promised_twice(free, workers):
    scene = machine(room=Room(free=free))
    scene.run(burst(100, 60))
    assert scene.most_workers == workers


def test_a_worker_that_ran_out_of_memory_is_not_tried_again_before_there_is_more():
    room = Room(free=2.0)
    scene = machine(room=room)
    scene.run([], until=0.0)
    started = []
    spawn = scene.load

    def load(worker: int) -> None:
        started.append(worker)
        if len(started) == 1:
            room.free -= 5.0  # somebody else took it while the worker loaded
        spawn(worker)

    scene.load = load
    scene.run(burst(60, 60))
    assert len(started) == 1


def test_workers_that_break_while_they_load_are_tried_again_after_a_growing_pause():
    scene = machine(room=Room(loads_that_fail=3), size=1)
    stories = scene.run(burst(200, 60))
    assert scene.most_workers == 2
    assert all(story.ended for story in stories.values())


def test_idle_workers_go_one_after_the_other_and_their_memory_is_free_again():
    room = Room(free=50.0)
    scene = machine(room=room, idle_s=60.0, stagger_s=10.0)
    scene.run(burst(100, 60))
    busy_until = scene.now
    scene.run([(busy_until + 65.0, job(1000, 12))])
    assert len(scene.loaded) == 3
    scene.run([(busy_until + 75.0, job(1001, 12))])
    assert len(scene.loaded) == 2
    scene.run([(busy_until + 200.0, job(1002, 12))])
    assert scene.loaded == {1}
    assert room.free == 50.0


@pytest.mark.parametrize(("streams", "workers"), [(False, 1), (True, 4)])
def test_streams_stay_on_the_hot_worker_unless_they_may_leave_it(streams, workers):
    scene = machine(streams=streams)
    scene.run(burst(100, 60, paced=True))
    assert scene.most_workers == workers


def test_the_hot_worker_takes_the_base_load_alone():
    scene = machine()
    scene.run([(5.0 * number, job(number, 24)) for number in range(60)])
    assert scene.most_workers == 1


def test_an_idle_hot_worker_may_be_unloaded_and_the_next_request_loads_it():
    scene = machine(size=0, hot_idle_s=30.0)
    scene.run([(0.0, job(1, 24))])
    stories = scene.run([(100.0, job(2, 24))])
    assert scene.scheduler.view(scene.now).is_ready
    assert stories[2].error is None
    assert stories[2].waited_s == pytest.approx(scene.start_s + 1.0, abs=0.5)


def test_a_forecast_counts_the_workers_that_the_queue_will_bring():
    scene = machine(size=3)
    scene.run([(0.2 * number, job(number, 24)) for number in range(1, 40)])
    start = scene.now + 200.0  # those that came have gone
    stories = scene.run([(start, job(1000 + number, 60)) for number in range(100)])
    last = stories[1099]
    assert last.forecast_s == pytest.approx(last.waited_s, rel=0.25)
