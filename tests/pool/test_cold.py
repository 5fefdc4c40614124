"""Cold worker processes for real: they come for a queue, are told from the hot one, may die, and go again."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from harness.pool import eventually, open_pool, submit
from pool.memory import MainMemory
from pool.pool import Pool
from scheduler.autoscaler import ColdPool
from sink import MemorySink

pytestmark = pytest.mark.usefixtures("fakes_path")

COLD = ColdPool(size=2, idle_s=0.5, stagger_s=0.5, interval_s=0.1, safety=0.0)
"""Cold workers that come for every queue and do not stay."""

SLOW = "slow " * 16
"""Less than a second of a slot."""


def burst(pool: Pool, count: int) -> list[MemorySink]:
    sinks = [MemorySink() for _ in range(count)]
    for sink in sinks:
        submit(pool, sink, SLOW)
    return sinks


@asynccontextmanager
async def cold_at_work() -> AsyncIterator[tuple[Pool, int, list[MemorySink]]]:
    """A pool in which a cold worker speaks; its hot worker's process id, and the jobs."""
    async with open_pool(COLD, slots=1) as pool:
        await pool.traits()
        (hot,) = pool.pids.values()
        sinks = burst(pool, 24)
        await eventually(lambda: any("COLD-POOL" in sink.routes for sink in sinks), 10)
        yield pool, hot, sinks


async def ended(sinks: list[MemorySink]) -> None:
    async with asyncio.timeout(30):
        await asyncio.gather(*(sink.ended.wait() for sink in sinks))


def test_a_queue_brings_cold_workers_that_speak_and_go_when_it_is_over():
    async def scene():
        async with open_pool(COLD, slots=1) as pool:
            await pool.traits()
            sinks = burst(pool, 24)
            await eventually(lambda: len(pool.pids) == 3, 10)
            await ended(sinks)
            assert all(sink.error is None and sink.seconds(0) == pytest.approx(1.6) for sink in sinks)
            assert {route for sink in sinks for route in sink.routes} == {"HOT", "COLD-POOL"}
            assert await eventually(lambda: len(pool.pids) == 1, 10) > 0.3

    asyncio.run(scene())


def test_what_a_cold_worker_did_not_finish_is_spoken_elsewhere():
    async def scene():
        async with cold_at_work() as (pool, hot, sinks):
            for pid in set(pool.pids.values()) - {hot}:
                os.kill(pid, signal.SIGKILL)
            await ended(sinks)
            assert all(sink.error is None and sink.seconds(0) == pytest.approx(1.6) for sink in sinks)
            assert "COLD-POOL>HOT" in {sink.routes[-1] for sink in sinks}
            assert hot in pool.pids.values()

    asyncio.run(scene())


def test_the_death_of_the_hot_worker_leaves_the_cold_ones_speaking():
    async def scene():
        async with cold_at_work() as (_, hot, sinks):
            os.kill(hot, signal.SIGKILL)
            await ended(sinks)
            assert all(sink.error is None and sink.seconds(0) == pytest.approx(1.6) for sink in sinks)

    asyncio.run(scene())


def test_main_memory_is_read_with_what_each_worker_holds_of_it():
    memory = MainMemory().read({1: os.getpid(), 2: 2**22 + 1})
    (device,) = memory.devices
    assert device.id == "cpu"
    assert device.free_bytes > 10**8
    assert memory.workers[1] > 10**7
    assert memory.workers[2] == 0
