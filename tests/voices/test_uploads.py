"""What requests bring: counted, read once, shared, and let go of."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.errors import BadSample, Overloaded
from harness.recording import recording
from harness.server import until
from voices.uploads import Upload, Uploads

SECOND = 4 * 24_000
"""Bytes of samples."""


def play(max_bytes: int, scene: Callable[[Uploads], Awaitable[None]]) -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1) as thread:
            uploads = Uploads(max_bytes, thread)
            await asyncio.wait_for(scene(uploads), 20)
            assert uploads.held == 0, "something was not given back"

    asyncio.run(main())


def sent(uploads: Uploads, data: bytes) -> Upload:
    upload = uploads.begin()
    upload.grow(len(data) + 100)
    upload.fill(data)
    return upload


def test_bytes_are_counted_until_they_are_read_and_samples_from_then_on():
    data = recording(seconds=2.0)

    async def scene(uploads):
        upload = sent(uploads, data)
        assert uploads.held == len(data)
        made = await upload.read("Hello.")
        assert (uploads.held, upload.data, made.transcript) == (2 * SECOND, None, "Hello.")
        assert (await upload.read()).sample is made.sample
        upload.close()
        upload.close()

    play(10 * SECOND, scene)


def test_one_recording_of_many_requests_is_held_once_and_for_as_long_as_one_of_them():
    async def scene(uploads):
        many = [sent(uploads, recording(seconds=2.0)) for _ in range(20)]
        await asyncio.gather(*(upload.read() for upload in many))
        assert (uploads.held, len(uploads._samples)) == (2 * SECOND, 1)
        for upload in many[1:]:
            upload.close()
        await asyncio.sleep(0)  # until then, the loop itself holds what it has handed over
        assert (uploads.held, len(uploads._samples)) == (2 * SECOND, 1)
        many[0].close()
        until(lambda: not uploads._samples)  # the thread may be letting go of it right now

    play(100 * SECOND, scene)


def test_what_there_is_no_room_for_is_refused_and_holds_nothing():
    async def scene(uploads):
        first = sent(uploads, recording(seconds=1.5))  # as 16 bit, half of what its samples take
        second = uploads.begin()
        with pytest.raises(Overloaded):
            second.grow(2 * SECOND)
        second.grow(SECOND)
        second.fill(recording(300.0, seconds=1.5))
        await first.read()
        with pytest.raises(Overloaded):
            await second.read()
        assert uploads.held == 1.5 * SECOND
        first.close()
        second.close()

    play(5 * SECOND // 2, scene)


def test_one_alone_is_taken_however_large_it_is():
    async def scene(uploads):
        upload = sent(uploads, recording(seconds=3.0))
        await upload.read()
        upload.close()

    play(SECOND, scene)


def test_what_is_no_recording_is_refused_and_let_go():
    async def scene(uploads):
        for upload in (sent(uploads, b"text"), uploads.begin()):
            with pytest.raises(BadSample) as raised:
                await upload.read()
            assert raised.value.param == "custom_voice_file"
            upload.close()

    play(SECOND, scene)


def test_a_client_that_leaves_while_its_recording_waits_leaves_nothing_behind():
    async def scene(uploads):
        is_held = threading.Event()
        holding = asyncio.get_running_loop().run_in_executor(uploads._thread, is_held.wait, 10)
        upload = sent(uploads, recording())
        reading = asyncio.create_task(upload.read())
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait({reading})
        upload.close()
        is_held.set()
        await holding

    play(SECOND, scene)
