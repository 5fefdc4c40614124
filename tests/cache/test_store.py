"""Files on a disk that may be full, read-only, shared, or tampered with."""

import os
import resource
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cache.store import SMALL_BYTES, Label, Store
from core.files import SCRATCH_PREFIX, SCRATCH_SUFFIX, STALE_S
from harness.disk import small_disk
from harness.server import PROJECT

LABEL = Label("audio/mpeg", 24_000, 1.5, 12)
KEYS = [f"{number:032x}" for number in range(8)]


class Troubles(Counter):
    def __call__(self, reason: str) -> None:
        self[reason] += 1


@pytest.fixture
def troubles() -> Troubles:
    return Troubles()


@pytest.fixture
def store(tmp_path, troubles) -> Store:
    return Store(tmp_path / "cache", ttl_s=3600, max_bytes=10**7, on_trouble=troubles)


def audio(store: Store, key: str) -> bytes | None:
    hit = store.get(key)
    if hit is None:
        return None
    try:
        return b"".join(iter(hit.next, b""))
    finally:
        hit.close()


def file_of(store: Store, tmp_path: Path, key: str = KEYS[0]) -> Path:
    return tmp_path / "cache" / f"{key}.audio"


@pytest.mark.parametrize("size", [0, 1, SMALL_BYTES, SMALL_BYTES + 1, 3 * SMALL_BYTES])
def test_what_is_put_is_found_to_the_last_byte(store, troubles, size):
    data = os.urandom(size)
    assert store.put(KEYS[0], LABEL, [data[:7], data[7:]])
    hit = store.get(KEYS[0])
    assert hit is not None
    hit.close()
    assert (hit.label.mime, hit.label.sample_rate, hit.label.audio_s, hit.label.chars) == (
        "audio/mpeg",
        24_000,
        1.5,
        12,
    )
    assert hit.size == size
    assert audio(store, KEYS[0]) == data
    assert audio(store, KEYS[1]) is None
    assert not troubles


@pytest.mark.parametrize("mode_before", [None, 0o755, 0o1777])
def test_only_its_owner_may_look_into_a_folder_of_ours_and_another_one_stays_as_it_was(store, tmp_path, mode_before):
    if mode_before:
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache").chmod(mode_before)
    store.put(KEYS[0], LABEL, [b"data"])
    assert (tmp_path / "cache").stat().st_mode & 0o7777 == (mode_before or 0o700)
    assert store.is_exposed == bool(mode_before)
    assert file_of(store, tmp_path).stat().st_mode & 0o777 == 0o600


def test_what_a_voice_said_goes_with_it_and_nothing_else_does(store, tmp_path, troubles):
    for key, voice in zip(KEYS, ("anna", "ben", ""), strict=False):
        store.put(key, LABEL, [b"some audio"], voice=voice)
    file_of(store, tmp_path, KEYS[3]).write_bytes(b"another kind of file")
    store.forget("anna")
    assert [audio(store, key) for key in KEYS[:3]] == [None, b"some audio", b"some audio"]
    assert file_of(store, tmp_path, KEYS[3]).exists()
    assert store.usage.answers == 3
    assert not troubles


def test_all_answers_go_and_what_is_no_answer_stays(store, tmp_path, troubles):
    for key in KEYS[:3]:
        store.put(key, LABEL, [b"some audio"])
    with file_of(store, tmp_path, KEYS[1]).open("r+b") as file:
        file.truncate(40)
    foreign = [file_of(store, tmp_path, KEYS[3]), tmp_path / "cache" / "notes.txt", tmp_path / "cache" / "mine.audio"]
    for path in foreign:
        path.write_bytes(b"mine")
    store.clear()
    assert sorted((tmp_path / "cache").iterdir()) == sorted(foreign)
    assert not troubles


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda data: data[:-1], id="cut at its end"),
        pytest.param(lambda data: data[:30], id="cut in its label"),
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: data + b"x", id="too long"),
        pytest.param(lambda data: data[:-5] + b"?????", id="other bytes"),
        pytest.param(lambda data: b"ID3" + data, id="another kind of file"),
        pytest.param(lambda data: data.replace(b"1.5", b"NaN"), id="a label that says nonsense"),
    ],
)
def test_a_file_that_is_not_what_was_written_is_told_and_not_served(store, troubles, tmp_path, spoil):
    store.put(KEYS[0], LABEL, [b"some audio"])
    path = file_of(store, tmp_path)
    path.write_bytes(spoil(path.read_bytes()))
    assert store.get(KEYS[0]) is None
    assert troubles.total() == 1
    assert store.put(KEYS[0], LABEL, [b"new audio"])
    assert audio(store, KEYS[0]) == b"new audio"


def test_another_answer_in_place_of_one_is_told_and_not_served(store, troubles, tmp_path):
    for key, data in zip(KEYS, (b"one", b"two"), strict=False):
        store.put(key, LABEL, [data])
    file_of(store, tmp_path, KEYS[0]).write_bytes(file_of(store, tmp_path, KEYS[1]).read_bytes())
    assert store.get(KEYS[0]) is None
    assert troubles.total() == 1
    assert audio(store, KEYS[1]) == b"two"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_at_all_holds_nobody_up(store, troubles, tmp_path, make):
    store.put(KEYS[1], LABEL, [b"data"])
    make(file_of(store, tmp_path))
    began = time.monotonic()
    assert store.get(KEYS[0]) is None
    assert time.monotonic() - began < 1
    assert troubles.total() == 1


def test_a_large_answer_that_is_cut_while_it_is_read_is_an_error(store, tmp_path):
    store.put(KEYS[0], LABEL, [bytes(3 * SMALL_BYTES)])
    hit = store.get(KEYS[0])
    assert hit
    assert hit.next()
    os.truncate(file_of(store, tmp_path), 1000)
    with pytest.raises(OSError, match="shorter"):
        list(iter(hit.next, b""))
    hit.close()


def test_a_link_to_elsewhere_in_place_of_an_answer_is_not_followed(store, troubles, tmp_path):
    store.put(KEYS[0], LABEL, [b"some audio"])
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path = file_of(store, tmp_path, KEYS[1])
    path.symlink_to(secret)
    assert store.get(KEYS[1]) is None
    store.put(KEYS[1], LABEL, [b"other"])
    assert secret.read_text() == "secret"
    assert audio(store, KEYS[1]) == b"other"


def test_what_is_too_old_is_not_found_and_goes_with_the_next_sweep(tmp_path, troubles):
    store = Store(tmp_path / "cache", ttl_s=100, max_bytes=10**7, on_trouble=troubles)
    for key in KEYS[:2]:
        store.put(key, LABEL, [b"data"])
    old = time.time() - 101
    os.utime(file_of(store, tmp_path), (time.time(), old))
    assert store.get(KEYS[0]) is None
    store.sweep()
    assert not file_of(store, tmp_path).exists()
    assert audio(store, KEYS[1]) == b"data"
    assert store.usage.answers == 1
    assert not troubles


def test_being_asked_for_does_not_make_an_answer_younger(tmp_path, troubles):
    store = Store(tmp_path / "cache", ttl_s=100, max_bytes=10**7, on_trouble=troubles)
    store.put(KEYS[0], LABEL, [b"data"])
    made = time.time() - 90
    os.utime(file_of(store, tmp_path), (made, made))
    assert store.get(KEYS[0])
    assert file_of(store, tmp_path).stat().st_mtime == pytest.approx(made, abs=0.01)
    assert file_of(store, tmp_path).stat().st_atime == pytest.approx(time.time(), abs=5)


def test_beyond_its_size_the_least_recently_used_go_first(tmp_path, troubles):
    store = Store(tmp_path / "cache", ttl_s=3600, max_bytes=5000, on_trouble=troubles)
    for number, key in enumerate(KEYS[:4]):
        store.put(key, LABEL, [bytes(1000)])
        used = time.time() - 100 + number
        os.utime(file_of(store, tmp_path, key), (used, used))
    assert audio(store, KEYS[0])  # the oldest, but just used
    store.put(KEYS[4], LABEL, [bytes(1000)])
    store.put(KEYS[5], LABEL, [bytes(1000)])
    left = {key for key in KEYS if store.get(key)}
    assert {KEYS[0], KEYS[5]} <= left
    assert KEYS[1] not in left
    assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 5000
    assert not store.put(KEYS[6], LABEL, [bytes(5001)])
    assert not troubles


def test_what_a_killed_server_left_half_written_goes_and_what_is_no_answer_stays(store, tmp_path):
    store.put(KEYS[0], LABEL, [b"data"])
    names = (f"{SCRATCH_PREFIX}abc{SCRATCH_SUFFIX}", f"{SCRATCH_PREFIX}xyz{SCRATCH_SUFFIX}", "notes.txt", "thesis.new")
    old, new, *foreign = (tmp_path / "cache" / name for name in names)
    for path in (old, new, *foreign):
        path.write_bytes(b"half")
    for path in (old, *foreign):
        os.utime(path, (0, time.time() - STALE_S - 1))
    store.sweep()
    assert not old.exists()
    assert new.exists()
    assert all(path.exists() for path in foreign)


def test_an_answer_that_is_put_again_counts_once(store):
    for size in (10, 500, 20):
        store.put(KEYS[0], LABEL, [bytes(size)])
    counted = store.usage
    store.sweep()
    assert counted == store.usage
    assert store.usage.answers == 1


def test_the_file_of_a_key_is_known_without_being_read(store, tmp_path):
    store.put(KEYS[0], LABEL, [b"data"])
    hit = store.get(KEYS[0])
    assert hit is not None
    path = file_of(store, tmp_path)
    os.utime(path, ns=(0, path.stat().st_mtime_ns))
    assert store.use(KEYS[0]) == hit.stamp
    assert path.stat().st_atime == pytest.approx(time.time(), abs=5)
    store.put(KEYS[0], LABEL, [b"atad"])
    assert store.use(KEYS[0]) not in (None, hit.stamp)
    path.unlink()
    assert store.use(KEYS[0]) is None


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_cache(tmp_path, troubles):
    (tmp_path / "cache").write_text("a file where the folder should be")
    store = Store(tmp_path / "cache", ttl_s=3600, max_bytes=10**7, on_trouble=troubles)
    assert not store.put(KEYS[0], LABEL, [b"data"])
    assert store.get(KEYS[0]) is None
    store.sweep()
    assert troubles.total() >= 1


def test_a_full_disk_takes_what_fits_and_leaves_no_half_file(tmp_path, troubles):
    with small_disk(tmp_path / "disk", 10**6) as disk:
        store = Store(disk / "cache", ttl_s=3600, max_bytes=10**9, on_trouble=troubles)
        kept = [key for key in KEYS if store.put(key, LABEL, [bytes([1]) * 300_000])]
        assert 0 < len(kept) < len(KEYS)
        assert troubles.total() == len(KEYS) - len(kept)
        assert {path.stem for path in (disk / "cache").iterdir()} == set(kept)
        assert all(audio(store, key) == bytes([1]) * 300_000 for key in kept)


def test_a_disk_that_takes_no_more_leaves_no_half_file(store, troubles, tmp_path):
    store.put(KEYS[0], LABEL, [b"data"])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        kept = store.put(KEYS[1], LABEL, [bytes(2000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not kept
    assert troubles.total() == 1
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f"{KEYS[0]}.audio"]


HAMMER = """
    import random, resource, sys, time
    from pathlib import Path
    from cache.store import Label, Store
    folder, seed, seconds, size = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    chance, ends = random.Random(seed), time.monotonic() + seconds
    if seed % 3 == 0:  # a disk that takes no large file
        resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))
    store = Store(folder, ttl_s=3600, max_bytes=size, on_trouble=lambda reason: None)
    while time.monotonic() < ends:
        number = chance.randrange(8)
        data = bytes([number]) * chance.choice((1, 5000, 1_500_000))
        match chance.randrange(5):
            case 0 | 1:
                store.put(f"{number:032x}", Label("audio/mpeg", 24_000, 1.5, number), [data])
            case 2:
                store.sweep()
            case _:
                if hit := store.get(f"{number:032x}"):
                    heard = b"".join(iter(hit.next, b""))
                    hit.close()
                    if set(heard) != {number} or len(heard) != hit.size or hit.label.chars != number:
                        print("WRONG", number, len(heard), flush=True)
"""


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_readers_writers_sweepers_and_kills_never_see_a_wrong_or_partial_answer(tmp_path_factory, data):
    hammer(tmp_path_factory.mktemp("hammered") / "cache", data)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_nor_do_they_on_a_disk_that_is_full(tmp_path_factory, data):
    with small_disk(tmp_path_factory.mktemp("hammered") / "disk", 4 * 10**6) as disk:
        hammer(disk / "cache", data)


def hammer(folder: Path, data: st.DataObject) -> None:
    """Processes that read, write and sweep for a second or two, some of which are killed."""
    size = data.draw(st.sampled_from([10**5, 4 * 10**6, 10**8]))
    kills = data.draw(st.lists(st.floats(0.05, 0.4), min_size=1, max_size=3))
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}

    def start(seed: int) -> subprocess.Popen:
        command = [sys.executable, "-c", textwrap.dedent(HAMMER), str(folder), str(seed), "1.2", str(size)]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)

    running = [start(data.draw(st.integers(0, 10**6))) for _ in range(3)]
    for after in kills:
        time.sleep(after)
        running[0].kill()
        running.append(start(data.draw(st.integers(0, 10**6))))
        assert running.pop(0).communicate(timeout=20)[0] == ""
    for process in running:
        assert process.communicate(timeout=20)[0] == ""
        assert process.returncode == 0
    fresh = Store(folder, ttl_s=3600, max_bytes=size, on_trouble=pytest.fail)
    for number, key in enumerate(KEYS):
        found = audio(fresh, key)
        assert found is None or set(found) == {number}
    fresh.sweep()
    assert fresh.usage.bytes <= size
