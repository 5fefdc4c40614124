"""What supervisors and pollers see while the server loads, works, is full, and has lost its worker."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psutil
import pytest

from harness.server import Server, running_server, until

pytestmark = pytest.mark.alone

TONES = "tone_backend:make"
PROBES = ["/health", "/ready", "/live"]
SLOW = "slow " * 50


def statuses(server: Server) -> dict[str, int]:
    """The status of each probe, the same by GET and by HEAD, and soon."""
    told = {}
    for path in PROBES:
        began = time.monotonic()
        told[path] = server.http.get(path).status_code
        assert server.http.head(path).status_code == told[path]
        assert time.monotonic() - began < 0.5  # at the median far less; this machine has other things to do
    return told


def names(value: object, prefix: str = "") -> set[str]:
    """All field names in a document; those of list items once."""
    if isinstance(value, dict):
        return set().union(*({prefix + name} | names(item, f"{prefix}{name}.") for name, item in value.items()))
    if isinstance(value, list):
        return set().union(*(names(item, prefix) for item in value))
    return set()


@contextmanager
def asking(server: Server, count: int, text: str = SLOW, **fields: str) -> Iterator[list[int | None]]:
    """So many clients at once, while the block runs; the status of each when it is over, None where it broke off."""
    told: list[int | None] = []

    def ask() -> None:
        try:
            body = {"input": text, **fields}
            told.append(httpx.post(f"{server.url}/v1/audio/speech", json=body, timeout=60).status_code)
        except httpx.RemoteProtocolError:
            told.append(None)

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield told
    finally:
        for thread in threads:
            thread.join()


def test_probes_tell_loading_from_ready_and_the_fields_are_always_the_same(tmp_path):
    server = Server(tmp_path, TTS_BACKEND="tone_backend:make_slow_to_load")
    try:
        server.wait_until("/live")
        assert statuses(server) == {"/live": 200, "/health": 200, "/ready": 503}
        loading = server.health()
        assert loading["status"] == "loading"
        assert loading["hot_worker"] == "loading"
        assert not loading["engine_ready"]
        assert loading["routing"]["accepts_requests"]  # they wait for the model
        server.wait_until()
        assert statuses(server) == {"/live": 200, "/health": 200, "/ready": 200}
        ready = server.health()
        assert ready["status"] == "ok"
        assert ready["hot_worker_loaded"]
        assert ready["hot_worker_error"] is None
        assert ready["voices_loaded"] > 0
        assert names(loading) == names(ready)
    finally:
        server.stop()


def test_a_full_server_says_so_and_what_it_did_is_counted(tmp_path):
    with running_server(tmp_path, TTS_BACKEND=TONES, MAX_QUEUE_LENGTH="2") as server:
        idle = server.health()
        assert idle["routing"] == {"load_score": 0.0, "accepts_requests": True}
        assert idle["smart_routing"]["ema_spw"] == 0
        with asking(server, 4, response_format="wav"):
            until(lambda: server.health()["smart_routing"]["queue_depth"] == 2)
            full = server.health()
            assert statuses(server)["/ready"] == 200  # what it has it serves
            assert server.speak(SLOW).status_code == 503
        assert full["status"] == "saturated"
        assert not full["routing"]["accepts_requests"]
        assert 0 < full["routing"]["load_score"] < 1
        assert full["smart_routing"]["queue_words"] == 100
        assert full["smart_routing"]["queue_drain_estimate_seconds"] > 0.5
        assert full["metrics"]["in_flight"] == 4
        done = server.health()
        assert done["metrics"] == {
            "in_flight": 0,
            "total_completed": 4,
            "total_errors": 0,
            "total_cancelled": 0,
            "total_rejected": 1,
        }
        assert 0.02 < done["smart_routing"]["ema_spw"] < 0.2  # 0.05 s a word
        assert done["smart_routing"]["cold_start_calibrated"]
        (worker,) = done["workers"]
        assert (worker["kind"], worker["state"], worker["device"], worker["slots"]) == ("hot", "idle", "cpu", 2)
        assert worker["pid"] == server.workers[0].pid
        assert worker["jobs"] >= 4
        assert 0.02 < worker["memory_gb"] < 1


def test_a_server_whose_worker_died_is_not_ready_says_why_and_heals(tmp_path):
    with running_server(tmp_path, TTS_BACKEND="tone_backend:make_slow_to_load") as server:
        server.workers[0].kill()
        until(lambda: server.http.get("/ready").status_code != 200, 5)
        assert statuses(server) == {"/live": 200, "/health": 200, "/ready": 503}
        assert server.http.get("/ready").json()["reason"]
        assert server.health()["hot_worker_error"]
        server.wait_until()
        assert server.health()["hot_worker_error"] is None
        assert server.health()["worker_restarts"] == 1


def test_an_idle_hot_worker_is_unloaded_where_that_is_wanted_and_comes_back_for_its_first_caller(tmp_path):
    with running_server(tmp_path, TTS_BACKEND=TONES, HOT_IDLE_TIMEOUT="0.5") as server:
        _, alive = psutil.wait_procs(server.workers, timeout=5)
        assert not alive
        assert statuses(server) == {"/live": 200, "/health": 200, "/ready": 200}
        assert server.health()["hot_worker"] == "unloaded"
        began = time.monotonic()
        assert server.speak("one two three").status_code == 200
        assert time.monotonic() - began < 5
        assert server.health()["metrics"]["total_errors"] == 0
        loading = [line for line in server.log.read_text().splitlines() if "worker loading" in line]
        assert len(loading) == 2
        assert "request=" not in loading[1]  # it serves all of them


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_a_server_that_is_told_to_stop_finishes_what_it_has_and_ends_with_0(tmp_path, signal_name):
    with running_server(tmp_path, TTS_BACKEND=TONES) as server:
        with asking(server, 3) as told:  # one more than there are slots
            until(lambda: server.health()["jobs"] == 3)
            server.process.send_signal(getattr(signal, signal_name))
        assert told == [200, 200, 200]
        assert server.process.wait(10) == 0


def test_what_is_not_finished_in_time_is_told_so_and_the_server_ends_all_the_same(tmp_path):
    with running_server(tmp_path, TTS_BACKEND=TONES, DRAIN_SECONDS="1") as server:
        with asking(server, 4, "slow " * 400) as told:
            until(lambda: server.health()["jobs"] == 4)
            began = time.monotonic()
            server.process.terminate()
        assert server.process.wait(10) == 0
        assert 0.9 < time.monotonic() - began < 5
        assert sorted(told, key=str) == [503, 503, None, None]  # two had no sound yet; two broke off
        assert "ERROR" not in server.log.read_text()


@pytest.mark.parametrize("is_on", [False, True])
def test_a_text_is_in_the_log_only_where_the_operator_wants_it_there(tmp_path, is_on):
    with running_server(tmp_path, TTS_BACKEND="tone_backend:make", LOG_TEXT=str(is_on)) as server:
        assert server.speak('one "two"\nthree', voice="nova").status_code == 200
    log = server.log.read_text()
    assert ("LOG_TEXT is on" in log) is is_on
    assert (r'text="one \"two\"\nthree"' in log) is is_on
    assert "nova" not in log
