"""Tells a Redis again and again that this server is there and how busy it is, for a router of several servers.

One key a server, with an end: whoever is not told of any more disappears by itself. A server that is about to stop
takes its key away at once, so that no router sends it what it would refuse. Redis' library is an extra, loaded where it
is wished for.
"""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING

from core.environment import SettingsError
from core.errors import place_of
from core.events import Events
from core.settings import Settings

if TYPE_CHECKING:
    from redis.asyncio import Redis

PREFIX = "tts:nodes:"

LIVES = 3
"""Intervals after which an entry expires: two words may be lost."""

TIMEOUT_S = 2.0
"""For Redis to answer; the server waits no longer for it when it stops."""

MAX_PAUSE_S = 30.0
"""Between two attempts, however long Redis is gone; more where the interval is longer."""


def open_redis(settings: Settings) -> "Redis | None":
    """A client that has not connected yet, None where none is wished for. Raises SettingsError."""
    url = settings.node.redis_url.get_secret_value()
    if not url:
        return None
    try:
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ImportError:
        raise SettingsError("REDIS_URL: It needs a package that is not installed: ./setup.sh --with redis") from None
    once = Retry(NoBackoff(), 0)
    try:
        return Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, retry=once)
    except (ValueError, TypeError):  # which may repeat a part of the URL, and so of its password
        raise SettingsError("REDIS_URL: It has a part that Redis' own library does not know") from None


class NodeRegistry:
    """Publishes until it is told to leave."""

    def __init__(
        self, redis: "Redis", settings: Settings, *, tell: Callable[[], Mapping[str, object]], events: Events
    ) -> None:
        """tell: what there is to say besides where the server is and when it was."""
        node, server = settings.node, settings.server
        self._redis = redis
        self._tell = tell
        self._events = events
        self._interval_s = node.redis_publish_interval
        port = node.node_port or server.port
        self._place = {"host": node.node_host or _reachable(server.host), "port": port}
        self._key = PREFIX + (node.node_id or f"{socket.gethostname()}-{port}")
        self._leaving = asyncio.Event()
        self._is_lost = False

    def leave(self) -> None:
        """Take the entry away, soon. Called on the loop."""
        self._leaving.set()

    async def keep(self) -> None:
        """Publish, until `leave` is called."""
        pause_s = self._interval_s
        while not self._leaving.is_set():
            is_heard = await self._tried(self._publish())
            pause_s = self._interval_s if is_heard else min(pause_s * 2, max(MAX_PAUSE_S, self._interval_s))
            await self._rest(pause_s)
        await self._tried(self._redis.delete(self._key))  # or it expires

    async def _publish(self) -> None:
        word = json.dumps({**self._tell(), **self._place, "ts": round(time.time(), 3)})
        await self._redis.set(self._key, word, px=int(LIVES * self._interval_s * 1000))

    async def _tried(self, command: Awaitable[object]) -> bool:
        """Whether Redis took it; one event an outage."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await command
        except Exception as error:  # the edge of a background task: the server speaks without it
            if not self._is_lost:
                self._events.registry_lost(reason=place_of(error))
            self._is_lost = True
            return False
        if self._is_lost:
            self._events.registry_found()
        self._is_lost = False
        return True

    async def _rest(self, seconds: float) -> None:
        """Sleep, unless it is time to leave."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._leaving.wait()


def _reachable(host: str) -> str:
    """The address a server listens on, or the machine's name where that is any address, which is none."""
    try:
        is_any = ip_address(host).is_unspecified
    except ValueError:
        is_any = False
    return socket.gethostname() if is_any else host


@asynccontextmanager
async def registered(
    settings: Settings, *, tell: Callable[[], Mapping[str, object]], events: Events
) -> AsyncIterator[Callable[[], None]]:
    """Keep the entry while the block runs; what it gets takes the entry away before. Raises SettingsError."""
    redis = open_redis(settings)
    if redis is None:
        yield lambda: None
        return
    registry = NodeRegistry(redis, settings, tell=tell, events=events)
    keeping = asyncio.create_task(registry.keep())
    try:
        yield registry.leave
    finally:
        registry.leave()
        await asyncio.wait({keeping})
        await redis.aclose()
