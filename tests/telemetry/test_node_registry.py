"""A node that tells a real Redis of itself: one that is there, comes late, goes, comes back, and says nothing."""

import asyncio
import json
import socket
import sys
import time
from collections.abc import Awaitable, Callable

import pytest

from core.environment import SettingsError
from core.events import Silence
from core.settings import Settings, load_settings
from harness.redis import PASSWORD, needs_redis, own_redis
from harness.server import free_port
from telemetry.node_registry import open_redis, registered

KEY = "tts:nodes:here"
SAID = {"load_score": 0.25, "accepts_requests": True, "version": "1", "engine": "tone", "model": "m"}


class Heard(Silence):
    def __init__(self) -> None:
        self.told: list[str] = []

    def registry_lost(self, *, reason: str) -> None:
        self.told.append(f"lost: {reason}")

    def registry_found(self) -> None:
        self.told.append("found")

    @property
    def words(self) -> list[str]:
        return [word.partition(":")[0] for word in self.told]


@pytest.fixture
def redis(tmp_path):
    with own_redis(tmp_path) as redis:
        yield redis


def node(url: str, **settings: object) -> Settings:
    return load_settings(redis_url=url, **{"redis_publish_interval": 0.1, "node_id": "here", **settings})


async def until(claim: Callable[[], object]) -> None:
    began = time.monotonic()
    while not await asyncio.to_thread(claim):
        assert time.monotonic() - began < 20, "it never came to hold"
        await asyncio.sleep(0.02)


def lived(settings: Settings, scene: Callable[[Callable[[], None]], Awaitable[None]]) -> Heard:
    """What was told while a node of these settings lived through the scene."""
    heard = Heard()

    async def main() -> None:
        async with registered(settings, tell=lambda: SAID, events=heard) as leave:
            await scene(leave)

    asyncio.run(main())
    return heard


@needs_redis
def test_an_entry_says_where_how_busy_and_when_and_ends_by_itself(redis):
    redis.start()

    async def scene(leave) -> None:
        await until(lambda: redis.get(KEY))
        told = json.loads(redis.get(KEY) or "")
        assert told.items() >= {**SAID, "host": "10.1.1.1", "port": 1234}.items()
        assert told.keys() == {*SAID, "host", "port", "ts"}
        assert abs(told["ts"] - time.time()) < 5
        assert 0 < int(redis.ask("PTTL", KEY)[1:]) <= 300
        await until(lambda: json.loads(redis.get(KEY) or "")["ts"] > told["ts"])

    assert lived(node(redis.url, node_host="10.1.1.1", node_port=1234), scene).told == []
    assert redis.get(KEY) is None


@needs_redis
def test_who_leaves_is_gone_at_once_and_does_not_come_back(redis):
    redis.start()

    async def scene(leave) -> None:
        await until(lambda: redis.get(KEY))
        leave()
        await until(lambda: redis.get(KEY) is None)
        await asyncio.sleep(0.3)
        assert redis.get(KEY) is None

    # An interval of an hour: only by leaving does it go so soon.
    assert lived(node(redis.url, redis_publish_interval=3600), scene).told == []


@needs_redis
def test_redis_may_come_late_go_and_come_back_with_one_warning_an_outage(redis):
    async def scene(leave) -> None:
        await asyncio.sleep(0.5)
        for _ in range(2):
            redis.start()
            await until(lambda: redis.get(KEY))
            redis.kill()
            await asyncio.sleep(0.8)
        redis.start()
        await until(lambda: redis.get(KEY))

    heard = lived(node(redis.url), scene)
    assert heard.words == ["lost", "found"] * 3
    assert PASSWORD not in "".join(heard.told)


@needs_redis
def test_a_wrong_password_is_an_outage_that_does_not_tell_it(redis):
    redis.start()

    async def scene(leave) -> None:
        await asyncio.sleep(0.5)

    heard = lived(node(redis.url.replace(PASSWORD, "wrong-word")), scene)
    assert heard.words == ["lost"]
    assert "wrong-word" not in "".join(heard.told)


def test_a_redis_that_says_nothing_holds_nobody_up():
    async def scene(leave) -> None:
        await asyncio.sleep(0.1)

    with socket.create_server(("127.0.0.1", 0)) as mute:
        began = time.monotonic()
        heard = lived(node(f"redis://127.0.0.1:{mute.getsockname()[1]}"), scene)
        assert time.monotonic() - began < 8
    assert heard.words == ["lost"]


@needs_redis
@pytest.mark.parametrize(
    ("settings", "host", "key"),
    [
        ({"host": "10.2.2.2", "port": 7}, "10.2.2.2", f"{socket.gethostname()}-7"),
        ({"host": "0.0.0.0", "port": 7}, socket.gethostname(), f"{socket.gethostname()}-7"),
        ({"host": "::", "port": 7, "node_port": 443}, socket.gethostname(), f"{socket.gethostname()}-443"),
        ({"host": "tts.local", "port": 7, "node_id": "a"}, "tts.local", "a"),
    ],
)
def test_name_and_address_are_the_machine_s_own_unless_they_are_set(redis, settings, host, key):
    redis.start()

    async def scene(leave) -> None:
        await until(lambda: redis.get(f"tts:nodes:{key}"))
        assert json.loads(redis.get(f"tts:nodes:{key}") or "")["host"] == host

    lived(node(redis.url, **{"node_id": "", **settings}), scene)


def test_without_a_url_nothing_is_told():
    assert open_redis(load_settings()) is None


URLS = "http://x redis:// redis://:secret@ redis://:secret@h/x redis://h?db=secret secret@h redis://h:secret"


@pytest.mark.parametrize("url", URLS.split())
def test_a_url_that_is_none_is_a_setting_that_is_refused_and_not_repeated(url):
    with pytest.raises(SettingsError) as caught:
        open_redis(load_settings(redis_url=url))
    assert str(caught.value).startswith("REDIS_URL: ")
    assert "secret" not in str(caught.value)


def test_without_its_library_the_setting_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(SettingsError, match=r"REDIS_URL: .*--with redis"):
        open_redis(load_settings(redis_url=f"redis://:{PASSWORD}@127.0.0.1:{free_port()}"))


def test_no_setting_shows_a_key_or_a_password():
    settings = load_settings(redis_url=f"redis://:{PASSWORD}@h", api_keys="k-e-y", admin_api_key="a-d-m-i-n")
    assert not any(secret in repr(settings) for secret in (PASSWORD, "k-e-y", "a-d-m-i-n"))
