"""Starting, leaving, dying: what a server does when somebody goes away, itself included."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import time

import httpx
import psutil
import pytest
from openai import InternalServerError, OpenAI

from harness.server import PROJECT, Server, free_port, running_server

pytestmark = pytest.mark.alone

LONG = "The river was wide and slow, and nobody on the bank knew where it came from. " * 12
SHORT = "Good morning, everyone."

FREE_S = 0.3
"""How soon a slot is free after its client left."""


def leave(server, moment: str) -> None:
    """Ask for a long text, and hang up at a moment."""
    fields = {"input": LONG, "response_format": "wav" if moment == "before any sound" else "mp3"}
    if moment == "in mid-event":
        fields["stream_format"] = "sse"
    if moment == "before any sound":
        with httpx.Client(timeout=httpx.Timeout(10, read=0.4)) as client, pytest.raises(httpx.ReadTimeout):
            client.post(f"{server.url}/v1/audio/speech", json=fields)
        return
    with httpx.stream("POST", f"{server.url}/v1/audio/speech", json=fields, timeout=60) as answer:
        pieces = answer.iter_bytes()  # kept: a generator that is collected closes its answer
        next(pieces)
        if moment != "at its first sound":
            time.sleep(0.5)
            assert server.health()["slots"]["busy"]


@pytest.mark.parametrize("moment", ["before any sound", "at its first sound", "in mid-stream", "in mid-event"])
def test_a_client_that_leaves_frees_its_slots_at_once(server, moment):
    server.wait_until_idle()
    cancelled = server.health()["metrics"]["total_cancelled"]
    leave(server, moment)
    assert server.wait_until_idle() < FREE_S
    assert server.health()["metrics"]["total_cancelled"] == cancelled + 1


def test_a_neighbour_does_not_notice_that_a_client_leaves(server):
    alone = server.speak(SHORT, response_format="pcm").content
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        leaving = threads.submit(leave, server, "in mid-stream")
        staying = threads.submit(server.speak, SHORT, response_format="pcm")
        leaving.result()
        assert staying.result().content == alone


@pytest.mark.parametrize("delay_s", [0.2, 1.5])
def test_a_worker_killed_at_any_moment_gives_all_of_the_audio_or_an_error(server, delay_s):
    text = f"{SHORT} " * 5
    whole = server.speak(text, response_format="pcm").content
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        speaking = threads.submit(server.speak, text, response_format="pcm")
        time.sleep(delay_s)
        for worker in server.workers:
            worker.kill()
        began = time.monotonic()
        assert server.speak("Hello.").status_code == 200
        assert time.monotonic() - began < 5
        try:
            answer = speaking.result()
        except httpx.RemoteProtocolError:
            return
        assert answer.status_code >= 500 or len(answer.content) == len(whole)


def test_a_short_text_beside_a_long_one_sounds_within_three_utterances(server):
    sentence = "The quick brown fox jumps over the lazy dog while the rain keeps falling on the old stone bridge."
    server.wait_until_idle()
    began = time.monotonic()
    server.speak(sentence, response_format="wav")
    utterance_s = time.monotonic() - began
    with httpx.stream("POST", f"{server.url}/v1/audio/speech", json={"input": LONG * 20}, timeout=60) as long:
        pieces = long.iter_bytes()
        next(pieces)
        time.sleep(1)
        began = time.monotonic()
        with httpx.stream("POST", f"{server.url}/v1/audio/speech", json={"input": SHORT}, timeout=60) as short:
            next(short.iter_bytes())
        assert time.monotonic() - began < 3 * utterance_s
    server.wait_until_idle()


def test_while_the_model_loads_probes_answer_and_requests_wait(tmp_path):
    server = Server(tmp_path, TTS_BACKEND="tone_backend:make_slow_to_load")
    try:
        assert server.wait_until("/live", 10) < 5
        assert server.http.get("/health").json()["status"] == "loading"
        assert server.http.get("/ready").status_code == 503
        assert server.speak("one two").status_code == 200
        assert server.http.get("/ready").status_code == 200
    finally:
        server.stop()


def test_an_engine_that_does_not_start_says_why(tmp_path):
    server = Server(tmp_path, TTS_BACKEND="tone_backend:make_broken")
    try:
        server.wait_until("/live")
        answer = server.speak("one two")
        assert answer.status_code == 503
        assert "the weights are missing: run setup" in answer.json()["error"]["message"]
        assert int(answer.headers["retry-after"]) >= 1
        assert server.http.get("/health").status_code == 503
        assert "run setup" in server.http.get("/ready").json()["reason"]
    finally:
        server.stop()


def test_openai_s_client_asks_again_as_often_and_as_late_as_it_is_told(tmp_path):
    server = Server(tmp_path, TTS_BACKEND="tone_backend:make_broken")
    asked_at = []
    http = httpx.Client(event_hooks={"request": [lambda _: asked_at.append(time.monotonic())]})
    try:
        server.wait_until("/live")
        told_s = int(server.speak("one two").headers["retry-after-ms"]) / 1000 / 1.1  # each is told a little else
        with (
            OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=1, http_client=http) as client,
            pytest.raises(InternalServerError, match="run setup"),
        ):
            client.audio.speech.create(model="tts-1", voice="alloy", input="one two")
        first, second = asked_at
        assert second - first >= told_s
    finally:
        server.stop()


def test_openai_s_client_gets_its_speech_from_a_server_that_is_just_starting(tmp_path):
    server = Server(tmp_path, TTS_BACKEND="tone_backend:make")
    try:
        with OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=6) as client:
            speech = client.audio.speech.create(model="tts-1", voice="alloy", input="one two", response_format="pcm")
        assert speech.content
    finally:
        server.stop()


def test_a_server_that_is_killed_leaves_no_worker(tmp_path):
    with running_server(tmp_path, TTS_BACKEND="tone_backend:make") as server:
        workers = server.workers
        assert workers
        server.process.kill()
        _, alive = psutil.wait_procs(workers, timeout=2)
        assert not alive


def test_the_http_process_never_loads_an_engine(server):
    maps = "".join(region.path for region in psutil.Process(server.process.pid).memory_maps())
    assert "onnxruntime" not in maps
    assert "torch" not in maps
    assert any("onnxruntime" in region.path for region in server.workers[0].memory_maps())


def test_a_bad_setting_ends_the_start_with_a_line_a_field():
    environment = {**os.environ, "PORT": "0", "MAX_INPUT_CHARS": "many"}
    for command in (["main_tts.py", "serve"], ["-m", "uvicorn", "main_tts:app"]):
        ended = subprocess.run(
            [sys.executable, *command], env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=30
        )
        assert ended.returncode == 2
        assert "PORT:" in ended.stderr
        assert "MAX_INPUT_CHARS:" in ended.stderr
        assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("way", ["option", "environment"])
def test_uvicorn_with_several_processes_is_refused_with_the_reason(way):
    option, variable = (["--workers", "2"], {}) if way == "option" else ([], {"WEB_CONCURRENCY": "2"})
    command = [sys.executable, "-m", "uvicorn", "main_tts:app", "--port", str(free_port()), *option]
    environment = {**os.environ, "TTS_BACKEND": "tone_backend:make", **variable}
    ended = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=50)
    assert "More than one server process is refused" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_uvicorn_serves_the_app_and_ends_on_a_signal(tmp_path):
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "main_tts:app", "--port", str(port)]
    environment = {**os.environ, "TTS_BACKEND": "tone_backend:make", "PYTHONPATH": str(PROJECT / "tests" / "fakes")}
    process = subprocess.Popen(command, env=environment, cwd=PROJECT, stderr=subprocess.PIPE, text=True)
    try:
        answer = None
        while answer is None:
            assert process.poll() is None
            try:
                answer = httpx.post(f"http://127.0.0.1:{port}/v1/audio/speech", json={"input": "secret words"})
            except httpx.ConnectError:
                time.sleep(0.05)
        assert answer.status_code == 200
    finally:
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=20)
    assert "speech done" in log
    assert "secret" not in log
