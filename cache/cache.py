"""The cache as the event loop sees it: what is on disk, what is being made, and how often which of the two helped."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Generic, ParamSpec, TypeVar

from cache.recent import Recent
from cache.single_flight import Listener, Recording, Source
from cache.store import Hit, Store, Usage
from core.events import Events

SWEEP_INTERVAL_S = 300.0
"""Between two looks at the age of all answers, and at what another server put there."""

MAX_ANSWER_BYTES = 64 * 2**20
"""Largest answer that is kept: it is held in memory until it is whole."""

S = TypeVar("S", bound=Source)
T = TypeVar("T")
Args = ParamSpec("Args")


@dataclass(frozen=True, slots=True)
class CacheView:
    """The cache at one moment. hits: answers from disk. shared: that joined one being made. misses: that began one.

    troubles: how often the disk, or what was on it, was of no use.
    """

    usage: Usage
    hits: int
    shared: int
    misses: int
    troubles: int


class Troubles:
    """Counts what hinders the cache, and tells each kind of it once. Called from any thread."""

    def __init__(self, events: Events) -> None:
        self.count = 0
        self._events = events
        self._told: set[str] = set()

    def __call__(self, reason: str) -> None:
        """reason: kind and place of an exception."""
        self.count += 1
        if reason not in self._told:
            self._told.add(reason)
            self._events.cache_failed(reason=reason)


class Cache(Generic[S]):
    """Looks answers up, shares those in flight, and keeps them when they are whole."""

    def __init__(self, store: Store, troubles: Troubles, *, threads: Executor) -> None:
        """troubles: whom the store tells them. threads: where it blocks."""
        self._store = store
        self._recent = Recent(store)
        self._troubles = troubles
        self._threads = threads
        self._flights: dict[Hashable, Recording[S]] = {}
        self._recordings: set[asyncio.Task[None]] = set()
        self._hits = self._shared = self._misses = 0

    def view(self) -> CacheView:
        """How things stand."""
        return CacheView(self._store.usage, self._hits, self._shared, self._misses, self._troubles.count)

    async def find(self, key: str) -> Hit | None:
        """The whole answer of a key; close it."""
        hit = self._recent.get(key)
        if hit is None:
            hit = await self._in_thread(self._store.get, key)
            if hit is None:
                return None
            self._recent.add(key, hit)
        elif self._recent.wants_touch(key):
            await self._in_thread(self._store.touch, key, hit.stamp)
        self._hits += 1
        return hit

    def join(self, flight: Hashable) -> Listener[S] | None:
        """Listen to an answer in flight; None where there is none."""
        recording = self._flights.get(flight)
        if recording is None:
            return None
        self._shared += 1
        return recording.listen()

    def begin(self, flight: Hashable, key: str, open: Callable[[], Awaitable[S]]) -> Listener[S]:
        """Listen to an answer that begins now, by `open`, and is kept under its key. Others may join the flight."""

        async def keep(source: S, pieces: list[bytes]) -> None:
            await self._in_thread(self._store.put, key, source.label, pieces)

        def land(recording: Recording[S]) -> None:
            del self._flights[flight]

        self._misses += 1
        recording = self._flights[flight] = Recording(open, keep=keep, max_bytes=MAX_ANSWER_BYTES, on_end=land)
        self._recordings.add(recording.task)
        recording.task.add_done_callback(self._recordings.discard)
        return recording.listen()

    async def sweep(self) -> None:
        """Remove what is too old or too much, again and again, until this is cancelled."""
        while True:
            await self._in_thread(self._store.sweep)
            await asyncio.sleep(SWEEP_INTERVAL_S)

    async def _in_thread(self, call: Callable[Args, T], *args: Args.args, **kwargs: Args.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(call, *args, **kwargs))

    async def close(self) -> None:
        """Wait for what is being made, which has been told to end, and for what is being written."""
        if self._recordings:
            await asyncio.wait(self._recordings)
