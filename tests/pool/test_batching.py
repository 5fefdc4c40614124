"""A batching engine in a real worker process, over the scripted library: it dies, hangs, and loses no slot for good."""

import asyncio

import numpy as np
import pytest

from core.errors import SynthesisFailed
from core.speech import REFERENCE_RATE, Reference
from harness.pool import eventually, open_pool, submit
from scheduler.watchdog import Patience
from scripted_vllm import write_checkpoint
from sink import MemorySink

pytestmark = [pytest.mark.usefixtures("fakes_path"), pytest.mark.slow]

SLOTS = 64
HUM = np.sin(2 * np.pi * 200 * np.arange(REFERENCE_RATE) / REFERENCE_RATE).astype(np.float32) / 3
ANNA = Reference("a" * 64, sample=HUM)
PATCH_S = 0.16 * 48_000 / 24_000
"""As the sink counts: it takes all audio for 24 kHz."""


@pytest.fixture(autouse=True)
def _settings(monkeypatch, tmp_path):
    monkeypatch.setenv("VOXCPM_MODEL", str(write_checkpoint(tmp_path / "model")))
    monkeypatch.setenv("VLLM_MAX_NUM_SEQS", str(SLOTS))


def ask(pool, text):
    sink = MemorySink()
    return sink, submit(pool, sink, text, voice=ANNA)


async def ended(*sinks):
    async with asyncio.timeout(40):
        await asyncio.gather(*(sink.ended.wait() for sink in sinks))


async def all_slots_work(pool):
    """Every slot takes an utterance at the same time as all others, and gives it back."""
    async with asyncio.timeout(20):
        await pool.traits()
    await eventually(lambda: pool.view().slots == SLOTS and not pool.view().busy, 20)
    sinks = [ask(pool, "word " * 12)[0] for _ in range(SLOTS)]
    await eventually(lambda: pool.view().busy == SLOTS)
    await ended(*sinks)
    assert all(sink.error is None for sink in sinks)
    assert {round(sink.seconds(0) / PATCH_S) for sink in sinks} == {12}
    await eventually(lambda: not pool.view().busy)


@pytest.mark.parametrize("backend", ["scripted_vllm:make", "scripted_vllm:make_pooled"])
def test_all_slots_are_filled_and_come_back(backend):
    async def scene():
        async with open_pool(backend=backend) as pool:
            await all_slots_work(pool)
            assert pool.view().restarts == 0

    asyncio.run(scene())


@pytest.mark.parametrize("act", ["crash", "fault"])
@pytest.mark.parametrize("moment", ["add", "first", "mid", "last"])
def test_an_engine_that_ends_at_any_moment_costs_its_neighbours_nothing_that_was_not_heard(act, moment):
    async def scene():
        async with open_pool(backend="scripted_vllm:make") as pool:
            neighbours = [ask(pool, "word " * 40)[0] for _ in range(5)]
            async with asyncio.timeout(30):
                await asyncio.gather(*(sink.sounded.wait() for sink in neighbours))
            guilty, _ = ask(pool, f"{act} {moment} x x x x")
            await ended(guilty, *neighbours)
            assert isinstance(guilty.error, SynthesisFailed)
            assert all(sink.error is None for sink in neighbours)  # nothing of them was released: they ran again
            assert {round(sink.seconds(0) / PATCH_S) for sink in neighbours} == {40}
            assert pool.view().restarts >= 1
            await all_slots_work(pool)

    asyncio.run(scene())


def test_what_somebody_has_heard_ends_with_an_error():
    async def scene():
        async with open_pool(backend="scripted_vllm:make") as pool:
            heard, ticket = ask(pool, "word " * 200)
            async with asyncio.timeout(30):
                await heard.sounded.wait()
            ticket.released(0)
            guilty, _ = ask(pool, "crash first x")
            await ended(guilty, heard)
            assert isinstance(heard.error, SynthesisFailed)
            await all_slots_work(pool)

    asyncio.run(scene())


def test_clients_that_leave_at_every_moment_cost_no_slot():
    async def scene():
        async with open_pool(backend="scripted_vllm:make") as pool:
            await pool.traits()
            for delay_s in (0.0, 0.002, 0.01, 0.03, 0.06, 0.1, 0.2):
                tickets = [ask(pool, "word " * 30)[1] for _ in range(SLOTS)]
                await asyncio.sleep(delay_s)
                for ticket in tickets[::2]:
                    ticket.leave()
                await asyncio.sleep(0)
                for ticket in tickets[1::2]:
                    ticket.leave()
            await all_slots_work(pool)
            assert pool.view().restarts == 0

    asyncio.run(scene())


def test_half_of_all_cancelled_in_the_middle_change_nothing_for_the_others():
    async def scene():
        async with open_pool(backend="scripted_vllm:make") as pool:
            asked = [ask(pool, "word " * 25) for _ in range(SLOTS)]
            async with asyncio.timeout(30):
                await asyncio.gather(*(sink.sounded.wait() for sink, _ in asked))
            for _, ticket in asked[::2]:
                ticket.leave()
            staying = [sink for sink, _ in asked[1::2]]
            await ended(*staying)
            assert {round(sink.seconds(0) / PATCH_S) for sink in staying} == {25}
            await all_slots_work(pool)

    asyncio.run(scene())


def test_an_engine_that_hangs_is_replaced():
    async def scene():
        patience = Patience(task_s=1.0, factor=3.0, silence_s=3.0, phase_s=10.0, first_phase_s=20.0)
        async with open_pool(patience=patience, backend="scripted_vllm:make") as pool:
            warm, _ = ask(pool, "word")
            await ended(warm)
            hung, _ = ask(pool, "hang mid x x x x x")
            await ended(hung)
            assert isinstance(hung.error, SynthesisFailed)
            await all_slots_work(pool)

    asyncio.run(scene())
