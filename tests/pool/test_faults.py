"""Workers that hang, freeze, or die of what they are given; for real."""

import asyncio
import os
import signal
import time

import psutil
import pytest

from core.errors import SynthesisFailed
from harness.pool import eventually, open_pool, speak, submit
from scheduler.watchdog import Patience
from sink import MemorySink

pytestmark = pytest.mark.usefixtures("fakes_path")

HASTY = Patience(task_s=0.3, factor=3.0, silence_s=3.0, phase_s=2.0, first_phase_s=2.0)


async def ended(*sinks: MemorySink) -> None:
    async with asyncio.timeout(30):
        await asyncio.gather(*(sink.ended.wait() for sink in sinks))


def test_an_utterance_that_hangs_is_convicted_and_its_neighbours_are_spoken():
    async def scene():
        async with open_pool(patience=HASTY) as pool:
            assert (await speak(pool, "warm up")).error is None
            (first,) = pool.pids.values()
            hung, neighbour = MemorySink(), MemorySink()
            submit(pool, hung, "hang here")
            submit(pool, neighbour, "slow " * 20)
            await ended(hung, neighbour)
            assert isinstance(hung.error, SynthesisFailed)
            assert hung.restarts == 1
            assert neighbour.error is None
            assert neighbour.seconds(0) == pytest.approx(2.0)
            began = time.monotonic()
            assert isinstance((await speak(pool, "hang here")).error, SynthesisFailed)  # remembered
            assert time.monotonic() - began < 0.1
            assert (await speak(pool, "still there")).error is None
            assert not psutil.pid_exists(first)

    asyncio.run(scene())


def test_a_frozen_worker_is_replaced_even_if_it_has_nothing_to_do():
    async def scene():
        async with open_pool(patience=HASTY) as pool:
            await pool.traits()
            (frozen,) = pool.pids.values()
            os.kill(frozen, signal.SIGSTOP)
            await eventually(lambda: pool.pids and frozen not in pool.pids.values(), 10)
            assert (await speak(pool, "still there")).error is None
            assert pool.view().restarts == 1

    asyncio.run(scene())


def test_a_worker_that_hangs_while_it_loads_is_started_again(tmp_path):
    async def scene():
        async with open_pool(patience=HASTY, once=str(tmp_path / "begun")) as pool:
            assert (await speak(pool, "one two")).seconds(0) == pytest.approx(0.2)
            assert pool.view().restarts == 1

    asyncio.run(scene())


def test_an_idle_worker_is_not_taken_for_a_frozen_one():
    async def scene():
        async with open_pool(patience=HASTY) as pool:
            await pool.traits()
            pids = pool.pids
            await asyncio.sleep(HASTY.silence_s + 1.5)
            assert pool.pids == pids

    asyncio.run(scene())


def test_a_server_that_stood_still_blames_no_worker_for_it():
    async def scene():
        async with open_pool(patience=HASTY) as pool:
            assert (await speak(pool, "warm up")).error is None
            pids = pool.pids
            first, second = MemorySink(), MemorySink()
            submit(pool, first, "slow " * 10)
            submit(pool, second, "slow " * 100)
            await second.sounded.wait()
            time.sleep(HASTY.silence_s + 2)  # noqa: ASYNC251  (as a suspended machine does)
            await ended(first, second)
            assert (first.error, second.error) == (None, None)
            assert pool.pids == pids

    asyncio.run(scene())


def test_a_cancelled_utterance_that_stops_late_costs_nobody_else_a_thing():
    async def scene():
        async with open_pool(patience=HASTY) as pool:
            assert (await speak(pool, "warm up")).error is None
            pids = pool.pids
            gone, neighbour = MemorySink(), MemorySink()
            ticket = submit(pool, gone, "deaf 2.5")
            submit(pool, neighbour, "slow " * 60)
            await neighbour.sounded.wait()
            ticket.leave()
            await ended(neighbour)
            assert neighbour.error is None
            assert neighbour.restarts == 0
            assert pool.pids == pids
            assert (await speak(pool, "one", "two", "three")).error is None

    asyncio.run(scene())


def test_a_cancelled_utterance_that_never_stops_costs_no_slot_for_good():
    async def scene():
        async with open_pool(patience=HASTY) as pool:
            assert (await speak(pool, "warm up")).error is None
            ticket = submit(pool, MemorySink(), "hang here")
            await eventually(lambda: pool.view().busy == 1)
            ticket.leave()
            await eventually(lambda: pool.view().busy == 0 and pool.view().slots == 2, 10)
            assert (await speak(pool, "still there")).error is None

    asyncio.run(scene())


def test_a_worker_whose_gpu_has_failed_ends_and_what_it_said_is_told():
    async def scene() -> None:
        async with open_pool() as pool:
            await pool.traits()
            (first,) = pool.pids.values()
            sink = await speak(pool, "fault")
            assert sink.error is not None
            await eventually(lambda: first not in pool.pids.values() and bool(pool.pids), 10)
            assert (await speak(pool, "one two")).error is None

    asyncio.run(scene())
