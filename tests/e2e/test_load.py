"""More requests than slots, over HTTP: served in turn or refused at once, with a true time; nothing is left behind."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from harness.server import Server, running_server

SLOTS = 2
PLACES = 6
TEXT = "slow " * 40
"""Four seconds of audio in two seconds of a slot."""

SENTENCE = "The river was wide and slow, and nobody on the bank knew where it came from."

pytestmark = [pytest.mark.slow, pytest.mark.alone]


@contextmanager
def learned_server(folder: Path, backend: str, text: str) -> Iterator[Server]:
    """A server with two slots and six places in its queue, which has learned how fast it is."""
    settings = {"MAX_QUEUE_LENGTH": str(PLACES), "KOKORO_SLOTS": str(SLOTS)}
    with running_server(folder, TTS_BACKEND=backend, **settings) as server:
        asyncio.run(ask_at_once(server, SLOTS * 3, text=text))
        yield server


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Such a server, whose engine is as fast as it says."""
    with learned_server(tmp_path_factory.mktemp("busy"), "tone_backend:make", TEXT) as server:
        yield server


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Such a server with the embedded model."""
    with learned_server(tmp_path_factory.mktemp("real"), "kokoro", SENTENCE) as server:
        yield server


@dataclass
class Told:
    """One answer, and when it came."""

    answer: httpx.Response
    took_s: float


async def ask_at_once(
    server: Server, count: int, *, text: str = TEXT, patience_s: float = 30.0, **headers: str
) -> list[Told | None]:
    """So many requests at the same time; None for each that its client gave up."""
    limits = httpx.Limits(max_connections=count)
    async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=limits) as http:
        await asyncio.gather(*(http.get("/live") for _ in range(count)))  # connections are there
        began = time.monotonic()

        async def ask() -> Told | None:
            try:
                async with asyncio.timeout(patience_s):
                    body = {"input": text, "response_format": "wav"}
                    answer = await http.post("/v1/audio/speech", json=body, headers=headers)
            except TimeoutError:
                return None
            return Told(answer, time.monotonic() - began)

        return await asyncio.gather(*(ask() for _ in range(count)))


def test_five_times_the_capacity_is_served_or_refused_at_once_with_a_true_time(busy):
    assert_served_or_refused(busy, TEXT)


def test_so_it_is_by_the_real_model(real):
    assert_served_or_refused(real, SENTENCE)


def assert_served_or_refused(server: Server, text: str) -> None:
    told = asyncio.run(ask_at_once(server, 5 * (SLOTS + PLACES), text=text))
    served = [each for each in told if each.answer.status_code == 200]
    refused = [each for each in told if each.answer.status_code == 503]
    assert len(served) == SLOTS + PLACES
    assert len(refused) == len(told) - len(served)
    assert max(each.took_s for each in refused) < 1  # all 40 are sent and answered on the cores of this one process
    frees_s = min(each.took_s for each in served)
    for each in refused:
        assert each.answer.json()["error"]["type"] == "overloaded_error"
        assert int(each.answer.headers["retry-after"]) >= 1
        retry_s = int(each.answer.headers["retry-after-ms"]) / 1000 / 1.05  # as told, without half of the jitter
        assert frees_s * 0.8 - 0.5 <= retry_s <= frees_s * 1.2 + 0.5
    assert {len(each.answer.content) for each in served} == {len(served[0].answer.content)}


def test_clients_that_hang_up_leave_no_work_behind(busy):
    assert_nothing_is_left(busy, TEXT)


def test_nor_do_they_in_the_real_model(real):
    assert_nothing_is_left(real, SENTENCE)


def assert_nothing_is_left(server: Server, text: str) -> None:
    before = server.health()["metrics"]
    told = asyncio.run(ask_at_once(server, SLOTS + PLACES, text=text, patience_s=0.6))
    assert told == [None] * (SLOTS + PLACES)
    assert server.wait_until_idle() < 1.0
    after = server.health()["metrics"]
    assert after["total_cancelled"] - before["total_cancelled"] == SLOTS + PLACES
    assert after["total_errors"] == before["total_errors"]


def test_health_and_refusals_come_at_once_while_the_queue_is_full(busy):
    async def scene() -> tuple[list[float], list[float]]:
        asking = asyncio.create_task(ask_at_once(busy, SLOTS + PLACES))
        await asyncio.sleep(0.5)
        health_s, refusal_s = [], []
        async with httpx.AsyncClient(base_url=busy.url) as http:
            for _ in range(200):
                began = time.monotonic()
                assert (await http.get("/health")).status_code == 200
                then = time.monotonic()
                assert (await http.post("/v1/audio/speech", json={"input": TEXT})).status_code == 503
                refusal_s.append(time.monotonic() - then)
                health_s.append(then - began)
        await asking
        return sorted(health_s), sorted(refusal_s)

    for took in asyncio.run(scene()):
        assert took[-1] < 0.25
        assert took[-3] < 0.05  # 99 of 100


def test_a_client_may_ask_to_be_refused_rather_than_to_wait(busy):
    told = asyncio.run(ask_at_once(busy, SLOTS + 4, **{"X-Max-Wait-Seconds": "2.5"}))
    codes = sorted(each.answer.status_code for each in told)
    assert codes[0] == 200
    assert codes[-1] == 503
    assert busy.health()["metrics"]["total_rejected"] > 0


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "inf"])
def test_a_wait_that_is_no_number_of_seconds_is_refused_by_name(busy, value):
    answer = busy.http.post("/v1/audio/speech", json={"input": "Hello."}, headers={"X-Max-Wait-Seconds": value})
    assert answer.status_code == 422
    assert answer.json()["error"]["param"] == "X-Max-Wait-Seconds"
