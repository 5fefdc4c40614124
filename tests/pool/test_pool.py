"""Real child processes, a scripted backend: audio arrives, cancel stops one, a death is survived."""

import asyncio
import errno
import os
import signal
import time

import pytest

from core.errors import SynthesisFailed, Unavailable
from harness.pool import eventually, open_pool, speak, submit
from sink import MemorySink

pytestmark = pytest.mark.usefixtures("fakes_path")


def test_utterances_arrive_whole_and_a_job_that_came_before_the_model_is_served():
    async def scene():
        async with open_pool(load_s=0.3) as pool:
            sink = await speak(pool, "one two three", "four")
            assert [round(sink.seconds(i), 3) for i in (0, 1)] == [0.3, 0.1]
            assert (await pool.traits()).backend == "tone"

    asyncio.run(scene())


def test_cancel_frees_one_slot_at_once_and_leaves_the_neighbour_alone():
    async def scene():
        async with open_pool() as pool:
            gone, neighbour = MemorySink(), MemorySink()
            ticket = submit(pool, gone, "slow " * 100)
            submit(pool, neighbour, "slow " * 10)
            await gone.sounded.wait()
            ticket.leave()
            ticket.leave()
            assert await eventually(lambda: pool.view().busy == 1) < 0.3
            await asyncio.wait_for(neighbour.ended.wait(), 10)
            assert neighbour.seconds(0) == pytest.approx(1.0)

    asyncio.run(scene())


@pytest.mark.parametrize("text", ["raise this private sentence"])
def test_a_backend_that_raises_fails_its_job_alone_and_says_nothing_of_its_text(text, capfd):
    async def scene():
        async with open_pool() as pool:
            sink = await speak(pool, text)
            assert isinstance(sink.error, SynthesisFailed)
            assert (await speak(pool, "still there")).error is None

    asyncio.run(scene())
    assert "private" not in capfd.readouterr().err


def test_an_utterance_that_kills_its_worker_fails_in_the_end_and_the_next_job_is_served():
    async def scene():
        async with open_pool() as pool:
            sink = await speak(pool, "crash")
            assert isinstance(sink.error, SynthesisFailed)
            assert sink.restarts == 1
            assert (await speak(pool, "still there")).seconds(0) == pytest.approx(0.2)

    asyncio.run(scene())


def test_a_killed_worker_is_replaced_and_what_nobody_heard_is_spoken_again():
    async def scene():
        async with open_pool() as pool:
            sink = MemorySink()
            submit(pool, sink, "slow " * 20)
            await sink.sounded.wait()
            os.kill(next(iter(pool.pids.values())), signal.SIGKILL)
            await asyncio.wait_for(sink.ended.wait(), 10)
            assert sink.error is None
            assert sink.restarts == 1
            assert sink.seconds(0) == pytest.approx(2.0)

    asyncio.run(scene())


def test_a_killed_worker_ends_a_job_whose_utterance_was_half_heard():
    async def scene():
        async with open_pool() as pool:
            sink = MemorySink()
            ticket = submit(pool, sink, "slow " * 20)
            await sink.sounded.wait()
            ticket.released(0)
            os.kill(next(iter(pool.pids.values())), signal.SIGKILL)
            await asyncio.wait_for(sink.ended.wait(), 10)
            assert isinstance(sink.error, SynthesisFailed)

    asyncio.run(scene())


def test_a_backend_that_cannot_load_says_why_to_everyone_who_waits():
    async def scene():
        async with open_pool(broken="the weights are missing: run setup") as pool:
            with pytest.raises(Unavailable, match="weights are missing"):
                await asyncio.wait_for(pool.traits(), 20)
            sink = await speak(pool, "hello")
            assert isinstance(sink.error, Unavailable)

    asyncio.run(scene())


def test_a_backend_with_a_bug_says_where_and_no_more():
    async def scene():
        async with open_pool(bug=True) as pool:
            with pytest.raises(Unavailable, match=r"OSError at .*tone_backend\.py:\d+") as caught:
                await asyncio.wait_for(pool.traits(), 20)
            assert "secret" not in caught.value.message

    asyncio.run(scene())


def test_a_worker_that_cannot_even_be_started_is_told_to_everyone_who_waits(monkeypatch):
    def refuse(*words: object, **options: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    async def scene():
        monkeypatch.setattr("subprocess.Popen", refuse)
        async with open_pool() as pool:
            with pytest.raises(Unavailable, match="Cannot allocate memory"):
                await asyncio.wait_for(pool.traits(), 20)

    asyncio.run(scene())


def test_a_ticket_may_be_given_back_when_the_pool_is_closed():
    async def scene():
        async with open_pool() as pool:
            sink = MemorySink()
            ticket = submit(pool, sink, "slow " * 20)
            await sink.sounded.wait()
        ticket.leave()
        ticket.consumed(1.0, 1.0)
        assert isinstance(sink.error, Unavailable)

    asyncio.run(scene())


def test_closing_again_goes_on_where_the_first_one_was_given_up():
    async def scene() -> int:
        async with open_pool() as pool:
            await pool.traits()
            (pid,) = pool.pids.values()
            first = asyncio.create_task(pool.close())
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
        return pid

    pid = asyncio.run(scene())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("load_s", [0, 30])
def test_closing_ends_the_child_also_while_it_loads(load_s):
    async def scene() -> tuple[int, ...]:
        async with open_pool(load_s=load_s) as pool:
            if not load_s:
                await pool.traits()
            return tuple(pool.pids.values())

    began = time.monotonic()
    (pid,) = asyncio.run(scene())
    assert time.monotonic() - began < 5
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
