"""One making of an answer for all who want it at the same time. It belongs to none of them.

A `Recording` is an append-only log of bytes. Whoever has heard all that there is asks for more, and that alone drives
the source: a source that nobody listens to makes nothing. When the last one leaves, it ends.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, Protocol, Self, TypeVar

from cache.store import Label
from core.errors import Unavailable


class Source(Protocol):
    """Bytes while they are being made."""

    @property
    def label(self) -> Label:
        """What they are, and how much of it there is so far."""

    @property
    def route(self) -> str:
        """Who makes them."""

    def join(self, client: str) -> None:
        """A client hears it; one that is known already changes nothing."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces, none of them empty; an exception is the end of the answer too."""

    async def aclose(self) -> None:
        """Stop. Safe more than once."""


S = TypeVar("S", bound=Source)


class Purse:
    """Bytes that recordings may hold in memory: each of them, and all together."""

    def __init__(self, each: int, all: int) -> None:
        self._each = each
        self._left = all

    def take(self, count: int, held: int) -> bool:
        """Whether one that holds `held` bytes may hold `count` more; they are its own then."""
        if held + count > self._each or count > self._left:
            return False
        self._left -= count
        return True

    def give_back(self, count: int) -> None:
        """They are not held any more."""
        self._left += count


class Recording(Generic[S]):
    """What is made, as far as it is made."""

    def __init__(
        self,
        open: Callable[[], Awaitable[S]],
        *,
        keep: Callable[[S, list[bytes]], Awaitable[None]],
        purse: Purse,
        on_end: Callable[["Recording[S]"], None],
    ) -> None:
        """open: begins to make it; what it raises, every listener is told. keep: takes the whole of it.

        purse: where it holds no more than that in memory; beyond, it is not kept, nor found by new listeners any more.
        on_end: called once, when nobody should join any more.
        """
        self._open = open
        self._keep = keep
        self._purse = purse
        self._on_end = on_end
        self._source: S | None = None
        self._pieces: list[bytes] = []
        self._held = 0
        self._is_kept = True
        self._error: Exception | None = None
        self._is_whole = False
        self._is_joinable = True
        self._asked = 0
        self._forgotten = 0
        self._listeners: list[Listener[S]] = []  # the first came first
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._record())

    @property
    def source(self) -> S:
        """Where it comes from; known as soon as anything has come."""
        assert self._source is not None
        return self._source

    def listen(self, client: str) -> "Listener[S]":
        """One more who wants all of it, from its beginning."""
        listener = Listener(self, client)
        self._listeners.append(listener)
        if self._source is not None:
            self._source.join(client)
        return listener

    def leave(self, listener: "Listener[S]") -> None:
        """One less; with the last one, the source is closed, and nothing held any more."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        if not self._listeners:
            self.stop()
            self._pay()

    def stop(self) -> None:
        """End the making of it, which listeners are told; what is whole is kept all the same."""
        if not self._is_whole:
            self._error = self._error or Unavailable("The server is stopping.")
            self._close_door()
            self._tell()
            self.task.cancel()

    async def piece(self, position: int) -> bytes | None:
        """The piece at a position, from 0; None after the last. Raises what the source raised, once all came before."""
        if position >= self._asked:
            self._asked = position + 1
            self._tell()
        while position >= len(self._pieces):
            if self._is_whole:
                return None
            if self._error is not None:
                raise self._error
            await self._news.wait()
        return self._pieces[position]

    async def _record(self) -> None:
        try:
            self._source = await self._open()
            for listener in self._listeners:  # who came when there was no line to stand in
                self._source.join(listener.client)
            try:
                pieces = aiter(self._source)
                while (data := await self._next(pieces)) is not None:
                    self._add(data)
            finally:
                await self._source.aclose()
        except Exception as error:
            self._error = error
        else:
            self._is_whole = True
            self._tell()
            if self._is_kept:
                await self._keep(self._source, self._pieces)  # who comes meanwhile joins, instead of finding nothing
        finally:
            self._close_door()
            self._tell()
            self._pay()

    def _pay(self) -> None:
        """Once nobody listens and nothing is being written, its bytes are not held any more."""
        if not self._listeners and not self._is_joinable:
            self._purse.give_back(self._held)
            self._held = 0

    async def _next(self, pieces: AsyncIterator[bytes]) -> bytes | None:
        """The next piece, once somebody wants it."""
        while self._asked <= len(self._pieces):
            await self._news.wait()
        return await anext(pieces, None)

    def _add(self, data: bytes) -> None:
        self._pieces.append(data)
        if self._is_kept and self._purse.take(len(data), self._held):
            self._held += len(data)
        else:
            self._is_kept = False
            self._close_door()
            self._forget()
        self._tell()

    def _forget(self) -> None:
        """Empty what all listeners have had."""
        heard = min((listener.position for listener in self._listeners), default=0)
        for position in range(self._forgotten, heard):
            self._pieces[position] = b""
        self._forgotten = max(self._forgotten, heard)

    def _close_door(self) -> None:
        if self._is_joinable:
            self._is_joinable = False
            self._on_end(self)

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class Listener(Generic[S]):
    """One who hears a recording from its beginning. Always close it."""

    def __init__(self, recording: Recording[S], client: str) -> None:
        self._recording = recording
        self.client = client
        self.position = 0

    @property
    def label(self) -> Label:
        """See `Source.label`."""
        return self._recording.source.label

    @property
    def route(self) -> str:
        """See `Source.route`."""
        return self._recording.source.route

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """The next bytes."""
        piece = await self._recording.piece(self.position)
        if piece is None:
            raise StopAsyncIteration
        self.position += 1
        return piece

    async def aclose(self) -> None:
        """Leave. Safe more than once."""
        self._recording.leave(self)
