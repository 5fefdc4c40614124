"""The cache as the event loop sees it: what is on disk, what is being made, and how often which of the two helped."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from cache.recent import Recent
from cache.single_flight import Listener, Purse, Recording, Source
from cache.store import Hit, Store, Usage
from core.clock import Clock
from core.errors import SynthesisFailed
from core.events import Events
from core.threads import in_thread

SWEEP_INTERVAL_S = 300.0
"""Between two looks at the age of all answers, and at what another server put there."""

MAX_ANSWER_BYTES = 64 * 2**20
"""Largest answer that is kept: it is held in memory until it is whole."""

MAX_RECORDED_BYTES = 256 * 2**20
"""Of all answers that are held so; those beyond are made all the same, and neither shared any more nor kept."""

S = TypeVar("S", bound=Source)


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
        self._lock = threading.Lock()

    def __call__(self, reason: str) -> None:
        """reason: kind and place of an exception; one that is met at another place is no news."""
        kind = reason.partition(" ")[0]
        with self._lock:
            self.count += 1
            is_news = kind not in self._told
            self._told.add(kind)
        if is_news:
            self._events.cache_failed(reason=reason)


class Found:
    """An answer from disk, as a `Source`. What is in memory comes at once, the rest from a thread."""

    route = "CACHE"

    def __init__(self, hit: Hit, threads: Executor) -> None:
        self.label = hit.label
        self.size = hit.size
        self.etag = hit.digest
        self._hit = hit
        self._threads = threads
        self._reading: asyncio.Future[bytes] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """The next bytes. Raises SynthesisFailed where the disk fails."""
        if self._hit.is_at_hand:
            piece = self._hit.next()
        else:
            self._reading = asyncio.get_running_loop().run_in_executor(self._threads, self._hit.next)
            try:
                piece = await asyncio.shield(self._reading)
            except OSError:
                raise SynthesisFailed("The rest of this answer cannot be read any more.") from None
        if not piece:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Close the file."""
        if self._reading is not None and not self._reading.done():
            self._reading.add_done_callback(lambda _: self._hit.close())  # a thread is still at it
        else:
            self._hit.close()


class Cache(Generic[S]):
    """Looks answers up, shares those in flight, and keeps them when they are whole."""

    def __init__(self, store: Store, troubles: Troubles, *, clock: Clock, threads: Executor) -> None:
        """troubles: whom the store tells them. threads: where it blocks; nobody else should wait behind it."""
        self._store = store
        self._recent = Recent(clock)
        self._troubles = troubles
        self._threads = threads
        self._flights: dict[Hashable, Recording[S]] = {}
        self._recordings: set[Recording[S]] = set()
        self._purse = Purse(MAX_ANSWER_BYTES, MAX_RECORDED_BYTES)
        self._forgotten: Counter[str] = Counter()
        self._hits = self._shared = self._misses = 0

    def view(self) -> CacheView:
        """How things stand."""
        return CacheView(self._store.usage, self._hits, self._shared, self._misses, self._troubles.count)

    async def find(self, key: str) -> Found | None:
        """The whole answer of a key; close it."""
        hit = self._recent.get(key)
        if hit is None and self._recent.has(key):
            hit = self._recent.confirm(key, await in_thread(self._threads, self._store.use, key))
        if hit is None:
            hit = await self._read(key)
        if hit is None:
            return None
        self._hits += 1
        return Found(hit, self._threads)

    async def _read(self, key: str) -> Hit | None:
        reading = asyncio.ensure_future(in_thread(self._threads, self._store.get, key))
        try:
            hit = await asyncio.shield(reading)
        except asyncio.CancelledError:
            reading.add_done_callback(_close)  # a thread is still at it
            raise
        if hit is not None:
            self._recent.add(key, hit)
        return hit

    def has(self, flight: Hashable) -> bool:
        """Whether an answer is in flight that one may join."""
        return flight in self._flights

    def join(self, flight: Hashable, client: str) -> Listener[S] | None:
        """Listen to an answer in flight; None where there is none."""
        recording = self._flights.get(flight)
        if recording is None:
            return None
        self._shared += 1
        return recording.listen(client)

    def begin(
        self, flight: Hashable, client: str, key: str, make: Callable[[], Awaitable[S]], *, voice: str = ""
    ) -> Listener[S]:
        """Listen to an answer that begins now, by `make`, and is kept under its key. Others may join the flight.

        voice: of the answer, which is not kept if that is forgotten meanwhile.
        """
        forgotten = self._forgotten[voice]

        async def open() -> S:
            source = await make()
            self._misses += 1  # what is refused is none
            return source

        async def keep(source: S, pieces: list[bytes]) -> None:
            await in_thread(self._threads, self._store.put, key, source.label, pieces, voice=voice)
            if self._forgotten[voice] != forgotten:
                await in_thread(self._threads, self._store.drop, key)

        def land(recording: Recording[S]) -> None:
            del self._flights[flight]

        recording = self._flights[flight] = Recording(open, keep=keep, purse=self._purse, on_end=land)
        self._recordings.add(recording)
        recording.task.add_done_callback(lambda _: self._recordings.discard(recording))
        return recording.listen(client)

    async def forget(self, voice: str) -> None:
        """Remove all answers in a voice, and keep none of those that are being made."""
        self._forgotten[voice] += 1
        await in_thread(self._threads, self._store.forget, voice)

    async def sweep(self) -> None:
        """Remove what is too old or too much, again and again, until this is cancelled."""
        while True:
            await in_thread(self._threads, self._store.sweep)
            await asyncio.sleep(SWEEP_INTERVAL_S)

    async def close(self) -> None:
        """End what is being made, and wait for what is being written."""
        recordings = list(self._recordings)
        for recording in recordings:
            recording.stop()
        if recordings:
            await asyncio.wait({recording.task for recording in recordings})


def _close(reading: "asyncio.Future[Hit | None]") -> None:
    if not reading.cancelled() and reading.exception() is None and (hit := reading.result()):
        hit.close()
