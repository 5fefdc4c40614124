"""The cache over HTTP: what is heard again, what is shared, and what leaves no trace."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path

import httpx
import pytest

from harness.disk import small_disk
from harness.server import Server, cached_server, running_server, until

pytestmark = pytest.mark.slow

NUMBERS = count(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("answers")


@pytest.fixture(scope="module")
def cached(folder) -> Iterator[Server]:
    with cached_server(folder, TTS_BACKEND="tone_backend:make") as server:
        yield server


@pytest.fixture
def clean(cached, folder) -> Iterator[Server]:
    """A server that has kept nothing."""
    for path in files(folder):
        path.unlink()
    yield cached
    cached.wait_until_idle()


@pytest.fixture
def text() -> str:
    """No other test's: an answer is given from memory for a moment after its file went."""
    return f"one two three number {next(NUMBERS)}"


@pytest.fixture
def slow_text() -> str:
    """The same, half a second of a slot long."""
    return "slow " * 10 + f"number {next(NUMBERS)}"


def files(folder: Path) -> list[Path]:
    return list((folder / "cache").iterdir()) if (folder / "cache").exists() else []


def tasks(server: Server) -> int:
    """How many utterances were spoken."""
    return sum(worker["jobs"] for worker in server.health()["workers"])


def told(answer: httpx.Response) -> tuple[str, str]:
    return answer.headers["x-cache"], answer.headers["x-route"]


def kept(server: Server, folder: Path, count: int = 1) -> None:
    """Wait until so many answers are on disk: they are written behind the last byte that leaves."""
    until(lambda: len([path for path in files(folder) if path.suffix == ".audio"]) == count, 5)


@pytest.mark.parametrize("format", ["mp3", "opus", "aac", "flac", "wav", "pcm"])
def test_the_same_request_again_is_the_same_bytes_at_once_with_its_length(clean, folder, format, text):
    first = clean.speak(text, response_format=format)
    assert told(first) == ("MISS", "HOT")
    assert "etag" not in first.headers
    kept(clean, folder)
    before = tasks(clean)
    again = clean.speak(text, response_format=format, voice="ALLOY ")
    assert told(again) == ("HIT", "CACHE")
    assert again.content == first.content
    assert int(again.headers["content-length"]) == len(first.content)
    for name in ("content-type", "x-sample-rate"):
        assert again.headers[name] == first.headers[name]
    assert tasks(clean) == before


def test_an_answer_that_was_streamed_is_a_hit_for_one_that_is_whole_and_the_other_way_round(clean, folder, text):
    streamed = clean.speak(text, stream=True)
    kept(clean, folder)
    whole = clean.speak(text, stream=False)
    assert (told(streamed)[0], told(whole)[0]) == ("MISS", "HIT")
    assert whole.content == streamed.content
    assert clean.speak(text, stream=True).content == streamed.content


def test_events_are_made_of_the_same_answer(clean, folder, text):
    plain = clean.speak(text)
    kept(clean, folder)
    events = clean.speak(text, stream_format="sse")
    assert told(events) == ("HIT", "CACHE")
    assert "etag" not in events.headers
    fresh = clean.speak(text, stream_format="sse", cache=False)
    assert told(fresh)[0] == "BYPASS"
    usages = [json.loads(each.text.strip().rsplit("data: ", 1)[1])["usage"] for each in (events, fresh)]
    assert usages[0] == usages[1]
    assert len(plain.content) > 0


def test_who_has_it_already_is_told_so(clean, folder, text):
    clean.speak(text)
    kept(clean, folder)
    hit = clean.speak(text)
    body = {"input": text}
    for tag in (hit.headers["etag"], f'"other", {hit.headers["etag"]}', f"W/{hit.headers['etag']}"):
        answer = clean.http.post("/v1/audio/speech", json=body, headers={"If-None-Match": tag})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == hit.headers["etag"]
    for tag in ('"other"', "*"):  # the latter would depend on whether it is kept
        answer = clean.http.post("/v1/audio/speech", json=body, headers={"If-None-Match": tag})
        assert answer.status_code == 200


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        pytest.param({"cache": False}, {}, id="JSON false"),
        pytest.param({"cache": 0}, {}, id="JSON 0"),
        pytest.param({}, {"Cache-Control": "no-cache"}, id="no-cache"),
        pytest.param({}, {"Cache-Control": "max-age=0, No-Store"}, id="no-store among others"),
        pytest.param({}, {"Pragma": "no-cache"}, id="as of old"),
        pytest.param({}, {"Cache-Control": 'no-cache="x";'}, id="oddly"),
        pytest.param({}, [("Cache-Control", "max-age=0"), ("Cache-Control", "no-store")], id="in a line of its own"),
    ],
)
def test_who_opts_out_is_neither_served_from_disk_nor_kept(clean, folder, fields, headers, text):
    for _ in range(2):
        answer = clean.http.post("/v1/audio/speech", json={"input": text, **fields}, headers=headers)
        assert told(answer) == ("BYPASS", "HOT")
    assert files(folder) == []
    kept_one = clean.speak(text)
    kept(clean, folder)
    before = files(folder)[0].stat()
    clean.http.post("/v1/audio/speech", json={"input": text, **fields}, headers=headers)
    after = files(folder)[0].stat()
    assert (after.st_mtime_ns, after.st_atime_ns) == (before.st_mtime_ns, before.st_atime_ns)
    assert kept_one.status_code == 200


@pytest.mark.parametrize("value", ["0", "false", "no", "off"])
@pytest.mark.parametrize("kind", ["form", "multipart"])
def test_a_form_opts_out_too(clean, folder, value, kind):
    fields = {"input": "one", "cache": value}
    body = {"data": fields} if kind == "form" else {"files": {name: (None, each) for name, each in fields.items()}}
    assert told(clean.http.post("/v1/audio/speech", **body))[0] == "BYPASS"
    assert files(folder) == []


def test_the_path_that_only_streams_never_touches_the_cache(clean, folder, text):
    for _ in range(2):
        assert told(clean.speak(text, "/v1/audio/speech/stream")) == ("BYPASS", "HOT")
    assert files(folder) == []


@pytest.mark.parametrize("fields", [{"voice": "nova"}, {"speed": 2}, {"response_format": "pcm"}, {"seed": 7}])
def test_another_request_is_another_answer(clean, folder, fields, text):
    clean.speak(text)
    kept(clean, folder)
    assert told(clean.speak(text, **fields))[0] == "MISS"


def test_eight_at_once_are_spoken_once_whether_they_stream_or_not(clean, folder, slow_text):
    before = tasks(clean)
    alone = clean.speak(slow_text, cache=False).content
    once = tasks(clean) - before

    def ask(number: int) -> httpx.Response:
        return clean.speak(slow_text, stream=bool(number % 2), **({"stream_format": "sse"} if number == 7 else {}))

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.content for answer in answers[:7]} == {alone}
    assert tasks(clean) - before == 2 * once
    kept(clean, folder)


@pytest.mark.parametrize("moment", ["before any sound", "in mid-stream"])
def test_the_others_get_their_audio_when_the_first_one_leaves(clean, folder, slow_text, moment):
    before = tasks(clean)
    alone = clean.speak(slow_text, cache=False).content
    once = tasks(clean) - before
    shared = clean.health()["cache"]["shared"]

    async def scene() -> bytes:
        async with httpx.AsyncClient(base_url=clean.url, timeout=30) as http:

            async def first() -> None:
                async with http.stream("POST", "/v1/audio/speech", json={"input": slow_text}) as answer:
                    async for _ in answer.aiter_raw():
                        sounded.set()

            sounded = asyncio.Event()
            leaving = asyncio.create_task(first())
            if moment == "in mid-stream":
                await sounded.wait()
            else:
                while not clean.health()["slots"]["busy"]:
                    await asyncio.sleep(0.005)
                assert not sounded.is_set()
            other = asyncio.create_task(http.post("/v1/audio/speech", json={"input": slow_text}))
            while clean.health()["cache"]["shared"] == shared:
                await asyncio.sleep(0.005)
            leaving.cancel()
            return (await other).content

    assert asyncio.run(scene()) == alone
    kept(clean, folder)
    assert tasks(clean) - before == 2 * once


def test_when_all_leave_the_slots_are_free_and_nothing_is_kept(clean, folder):
    text = "slow " * 400
    gone = threading.Event()

    def ask(_: int) -> None:
        with httpx.stream("POST", f"{clean.url}/v1/audio/speech", json={"input": text}, timeout=30) as answer:
            next(answer.iter_raw())
            gone.wait(10)

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask, number) for number in range(3)]
        until(lambda: clean.health()["metrics"]["in_flight"] == 3)
        gone.set()
        for each in asking:
            each.result()
    assert clean.wait_until_idle() < 1
    assert files(folder) == []


def test_who_joins_does_not_wait_behind_the_other_requests_of_who_came_first(clean, slow_text):
    def ask(client: str, slow_text: str, **fields: object) -> float:
        began = time.monotonic()
        with httpx.Client(transport=httpx.HTTPTransport(local_address=client)) as http:
            body = {"input": slow_text, "response_format": "wav", **fields}
            assert http.post(f"{clean.url}/v1/audio/speech", json=body, timeout=60).status_code == 200
        return time.monotonic() - began

    with ThreadPoolExecutor(16) as threads:
        greedy = [threads.submit(ask, "127.0.0.5", "slow " * 24 + f"n{n}", cache=False) for n in range(8)]
        until(lambda: clean.health()["jobs"] == 8)
        first = threads.submit(ask, "127.0.0.5", slow_text)
        until(lambda: clean.health()["jobs"] == 9)
        joined_s = ask("127.0.0.9", slow_text)
        assert joined_s < 2.5
        assert not all(each.done() for each in greedy)
        for each in (first, *greedy):
            each.result()


def test_an_error_is_told_to_all_who_share_it_and_not_kept(clean, folder):
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda _: clean.speak("raise it"), range(3)))
    assert {answer.status_code for answer in answers} == {500}
    assert files(folder) == []


def test_who_joins_has_all_of_its_own_time(tmp_path):
    settings = {"HANG_SECONDS": "30", "DEADLINE_SECONDS": "2"}
    with cached_server(tmp_path, TTS_BACKEND="tone_backend:make", **settings) as server:

        def ask(delay_s: float) -> float:
            time.sleep(delay_s)
            began = time.monotonic()
            assert server.speak("hang here").status_code == 504
            return time.monotonic() - began

        with ThreadPoolExecutor(2) as threads:
            took_s = list(threads.map(ask, (0.0, 1.0)))
        assert took_s == pytest.approx([2.0, 2.0], abs=0.4)


def test_health_tells_what_the_cache_did(clean, folder, text):
    before = clean.health()["cache"]
    clean.speak(text)
    kept(clean, folder)
    clean.speak(text)
    after = clean.health()["cache"]
    assert after["hits"] - before["hits"] == 1
    assert after["misses"] - before["misses"] == 1
    assert after["troubles"] == before["troubles"]


def test_a_file_that_was_spoiled_is_spoken_again_and_told_once(clean, folder, text):
    whole = clean.speak(text, response_format="pcm").content
    kept(clean, folder)
    (path,) = files(folder)
    path.write_bytes(path.read_bytes()[:-100])
    again = clean.speak(text, response_format="pcm")
    assert told(again)[0] == "MISS"
    assert again.content == whole
    assert clean.health()["cache"]["troubles"] >= 1
    assert clean.log.read_text().count("cache failed") == 1


def test_without_a_cache_it_is_told_and_nothing_is_written(tmp_path):
    settings = {"CACHE_TTL_MINUTES": "0", "AUDIO_CACHE_DIR": str(tmp_path / "cache")}
    with running_server(tmp_path, TTS_BACKEND="tone_backend:make", **settings) as server:
        for _ in range(2):
            assert told(server.speak("one two")) == ("DISABLED", "HOT")
        assert server.health()["cache"] is None
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_cannot_be_used_costs_nothing_but_the_cache(tmp_path):
    (tmp_path / "file").write_text("no folder")
    settings = {"CACHE_TTL_MINUTES": "10", "AUDIO_CACHE_DIR": str(tmp_path / "file" / "cache")}
    with running_server(tmp_path, TTS_BACKEND="tone_backend:make", **settings) as server:
        for _ in range(3):
            answer = server.speak("one two")
            assert (answer.status_code, told(answer)[0]) == (200, "MISS")
        assert server.health()["cache"]["troubles"] >= 3
    assert server.log.read_text().count("cache failed") == 1


def test_identical_requests_are_spoken_once_while_the_engine_loads_too(tmp_path):
    settings = {"CACHE_TTL_MINUTES": "10", "AUDIO_CACHE_DIR": str(tmp_path / "cache")}
    server = Server(tmp_path, TTS_BACKEND="tone_backend:make_slow_to_load", **settings)
    try:
        server.wait_until("/live")
        assert server.health()["status"] == "loading"
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda _: server.speak("slow " * 10), range(4)))
        assert {answer.status_code for answer in answers} == {200}
        cache = server.health()["cache"]
        assert (cache["misses"], cache["shared"] + cache["hits"]) == (1, 3)
    finally:
        server.stop()


def test_a_server_killed_while_it_writes_leaves_nothing_that_the_next_one_serves(tmp_path):
    fields = {"response_format": "wav"}
    with cached_server(tmp_path, TTS_BACKEND="tone_backend:make") as server:
        whole = server.speak("one " * 2000, **fields, cache=False).content
        for number in range(6):
            threading.Thread(target=_ask_in_vain, args=(server, number)).start()
        until(lambda: any((tmp_path / "cache").glob("*")) if (tmp_path / "cache").exists() else False, 20)
        server.process.kill()
        server.process.wait()
    with cached_server(tmp_path, TTS_BACKEND="tone_backend:make") as server:
        for number in range(6):
            answer = server.speak("one " * 2000, **fields, seed=number)
            assert answer.content == whole


def _ask_in_vain(server: Server, seed: int) -> None:
    body = {"input": "one " * 2000, "response_format": "wav", "seed": seed}
    with suppress(httpx.TransportError):
        httpx.post(f"{server.url}/v1/audio/speech", json=body)


def test_a_full_disk_costs_the_cache_and_one_warning(tmp_path):
    with small_disk(tmp_path / "disk", 200_000) as disk:
        settings = {"CACHE_TTL_MINUTES": "10", "AUDIO_CACHE_DIR": str(disk / "cache")}
        with running_server(tmp_path, TTS_BACKEND="tone_backend:make", **settings) as server:
            texts = [f"one two three number {number} " * 6 for number in range(8)]
            answers = [server.speak(text, response_format="wav") for text in texts]
            assert {answer.status_code for answer in answers} == {200}
            assert {answer.headers["X-Cache"] for answer in answers} == {"MISS"}
            again = [server.speak(text, response_format="wav") for text in texts]
            assert [answer.content for answer in again] == [answer.content for answer in answers]
            assert {answer.headers["X-Cache"] for answer in again} <= {"HIT", "MISS"}
            assert server.health()["cache"]["troubles"] >= 1
            warnings = [line for line in server.log.read_text().splitlines() if " WARNING " in line]
            assert len(warnings) == 1
            assert server.health()["status"] == "ok"
