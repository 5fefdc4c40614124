"""Answers in memory: for how long they are believed, and which of them go."""

import pytest

from cache.recent import LOOK_S, Recent
from cache.store import Label, Store

LABEL = Label("audio/mpeg", 24_000, 1.5, 12)
KEYS = [f"{number:032x}" for number in range(8)]


class Clock:
    time = 100.0

    def now(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "cache", ttl_s=3600, max_bytes=10**7, on_trouble=pytest.fail)


def put(store: Store, recent: Recent, key: str, data: bytes) -> None:
    store.put(key, LABEL, [data])
    hit = store.get(key)
    assert hit
    recent.add(key, hit)
    hit.close()


def held(recent: Recent, key: str) -> bytes | None:
    hit = recent.get(key)
    return b"".join(iter(hit.next, b"")) if hit else None


def test_an_answer_is_given_again_and_again_until_its_file_has_to_be_looked_at(store, clock):
    recent = Recent(clock)
    put(store, recent, KEYS[0], b"data")
    for _ in range(3):
        assert held(recent, KEYS[0]) == b"data"
    clock.time += LOOK_S * 1.1
    assert held(recent, KEYS[0]) is None
    assert recent.has(KEYS[0])
    assert recent.confirm(KEYS[0], store.use(KEYS[0]))
    assert held(recent, KEYS[0]) == b"data"


@pytest.mark.parametrize("change", ["replaced", "gone"])
def test_one_whose_file_is_another_now_is_dropped(store, clock, tmp_path, change):
    recent = Recent(clock)
    put(store, recent, KEYS[0], b"data")
    if change == "gone":
        (tmp_path / "cache" / f"{KEYS[0]}.audio").unlink()
    else:
        store.put(KEYS[0], LABEL, [b"atad"])
    assert recent.confirm(KEYS[0], store.use(KEYS[0])) is None
    assert not recent.has(KEYS[0])


def test_beyond_its_bound_the_least_recently_used_go(store, clock):
    recent = Recent(clock, max_bytes=3000)
    for key in KEYS[:3]:
        put(store, recent, key, bytes(1000))
    assert held(recent, KEYS[0])
    put(store, recent, KEYS[3], bytes(1000))
    assert [recent.has(key) for key in KEYS[:4]] == [True, False, True, True]
    put(store, recent, KEYS[4], bytes(3001))
    assert not any(recent.has(key) for key in KEYS)


def test_a_large_one_stays_on_disk(store, clock):
    recent = Recent(clock)
    put(store, recent, KEYS[0], bytes(2 * 2**20))
    assert not recent.has(KEYS[0])
