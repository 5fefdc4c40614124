"""Several who hear one making of an answer, and leave when they like."""

import asyncio

import pytest

from cache.single_flight import Purse, Recording
from core.errors import Unavailable


class Tape:
    """A source that is made piece by piece, as it is asked for."""

    def __init__(self, pieces, fails: Exception | None = None, starts_s: float = 0.0) -> None:
        self.pieces = list(pieces)
        self.fails = fails
        self.starts_s = starts_s
        self.made = 0
        self.opened = 0
        self.is_closed = False
        self.joined: list[str] = []

    async def open(self) -> "Tape":
        self.opened += 1
        await asyncio.sleep(self.starts_s)
        return self

    async def __aiter__(self):
        for piece in self.pieces:
            await asyncio.sleep(0)
            self.made += 1
            yield piece
        if self.fails:
            raise self.fails

    def join(self, client: str) -> None:
        self.joined.append(client)

    async def aclose(self) -> None:
        self.is_closed = True


class Scene:
    def __init__(self, tape: Tape, max_bytes: int = 10**6, purse: Purse | None = None) -> None:
        self.kept: list[bytes] = []
        self.ends = 0
        self.purse = purse or Purse(max_bytes, 10**6)
        self.recording = Recording(tape.open, keep=self.keep, purse=self.purse, on_end=self.end)

    async def keep(self, source: Tape, pieces: list[bytes]) -> None:
        self.kept.append(b"".join(pieces))

    def end(self, recording) -> None:
        self.ends += 1


async def read(listener) -> bytes:
    return b"".join([piece async for piece in listener])


def play(scene):
    return asyncio.run(asyncio.wait_for(scene(), 5))


def test_all_hear_all_of_it_whenever_they_come_and_it_is_made_and_kept_once():
    async def scene():
        tape = Tape([b"a", b"b", b"c"])
        told = Scene(tape)
        first, second = told.recording.listen("early"), told.recording.listen("another")
        assert await anext(first) == b"a"
        third = told.recording.listen("late")
        assert await read(first) == b"bc"
        assert await asyncio.gather(read(second), read(third)) == [b"abc", b"abc"]
        await told.recording.task
        assert (tape.opened, tape.made, told.kept, told.ends) == (1, 3, [b"abc"], 1)
        assert tape.joined == ["early", "another", "late"]  # as soon as there is a line to stand in
        assert tape.is_closed

    play(scene)


def test_nothing_is_made_that_nobody_has_asked_for():
    async def scene():
        tape = Tape([b"a", b"b", b"c"])
        told = Scene(tape)
        fast, slow = told.recording.listen("a client"), told.recording.listen("a client")
        await anext(fast)
        await asyncio.sleep(0.05)
        assert tape.made == 1
        await anext(fast)
        await anext(slow)
        await asyncio.sleep(0.05)
        assert tape.made == 2
        for listener in (fast, slow):
            await listener.aclose()
        await asyncio.wait({told.recording.task})

    play(scene)


@pytest.mark.parametrize("heard", [0, 1])
def test_who_leaves_takes_nothing_from_the_others(heard):
    async def scene():
        tape = Tape([b"a", b"b", b"c"], starts_s=0.05)
        told = Scene(tape)
        first, second = told.recording.listen("a client"), told.recording.listen("a client")
        for _ in range(heard):
            await anext(first)
        await first.aclose()
        await first.aclose()
        assert await read(second) == b"abc"

    play(scene)


@pytest.mark.parametrize("heard", [0, 1])
def test_when_the_last_one_leaves_it_ends_and_is_not_kept(heard):
    async def scene():
        tape = Tape([b"a", b"b", b"c"], starts_s=0.05)
        told = Scene(tape)
        listeners = [told.recording.listen("a client"), told.recording.listen("a client")]
        for _ in range(heard):
            await anext(listeners[0])
        await asyncio.sleep(0.01)
        for listener in listeners:
            await listener.aclose()
        assert told.ends == 1  # at once: who comes now begins anew
        await asyncio.wait({told.recording.task})
        assert told.kept == []
        assert tape.is_closed or not heard

    play(scene)


def test_what_goes_wrong_is_told_to_all_behind_what_came_before():
    async def scene():
        told = Scene(Tape([b"a"], fails=ValueError("broken")))
        listeners = [told.recording.listen("a client") for _ in range(3)]
        for listener in listeners:
            assert await anext(listener) == b"a"
        for listener in listeners:
            with pytest.raises(ValueError, match="broken"):
                await anext(listener)
        await asyncio.wait({told.recording.task})
        assert (told.kept, told.ends) == ([], 1)

    play(scene)


def test_what_is_too_large_is_forgotten_as_it_is_heard_and_found_by_nobody():
    async def scene():
        told = Scene(Tape([b"12345"] * 20), max_bytes=12)
        fast, slow = told.recording.listen("a client"), told.recording.listen("a client")
        for _ in range(20):
            assert await anext(fast) == await anext(slow) == b"12345"
        assert told.ends == 1
        assert await read(slow) == await read(fast) == b""
        await told.recording.task
        assert told.kept == []
        assert sum(map(len, told.recording._pieces)) <= 10

    play(scene)


def test_what_all_hold_together_is_bounded_and_free_again_once_nobody_hears_it():
    async def scene():
        purse = Purse(each=100, all=25)
        first, second = (Scene(Tape([b"12345"] * 4), purse=purse) for _ in range(2))
        listeners = [first.recording.listen("a client"), second.recording.listen("a client")]
        for listener in listeners:
            assert await read(listener) == b"12345" * 4
        for each in (first, second):
            await each.recording.task
        assert (len(first.kept), len(second.kept)) == (1, 0)
        assert not purse.take(10, 0)  # they are whole, but still somebody's
        for listener in listeners:
            await listener.aclose()
        assert purse.take(25, 0)

    play(scene)


def test_one_that_is_stopped_ends_though_its_listeners_ask_for_nothing():
    async def scene():
        tape = Tape([b"a", b"b"])
        told = Scene(tape)
        listener = told.recording.listen("a client")
        await anext(listener)
        told.recording.stop()
        await asyncio.wait({told.recording.task})
        assert tape.is_closed
        assert told.kept == []
        await listener.aclose()

    play(scene)


@pytest.mark.parametrize("heard", [0, 1])
def test_who_waits_when_it_is_stopped_is_told_so(heard):
    async def scene():
        told = Scene(Tape([b"a"], starts_s=0.0 if heard else 10.0))
        listener = told.recording.listen("a client")
        for _ in range(heard):
            await anext(listener)
        waiting = asyncio.ensure_future(anext(listener))
        if not heard:
            await asyncio.sleep(0.01)
        told.recording.stop()
        with pytest.raises(Unavailable, match="stopping"):
            await waiting
        await asyncio.wait({told.recording.task})
        await listener.aclose()

    play(scene)
