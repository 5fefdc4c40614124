"""XTTS-v2 over HTTP, on a checkpoint of random weights: voices, languages, parameters, cloning, faults."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from checkpoints import xtts
from cli.main import app
from harness.recording import recording, samples
from harness.server import Server, running_server, until
from hub import Hub, serving

pytestmark = pytest.mark.slow(file_s=80)

SECONDS = int(int(xtts.TOKENS * 4) * 24_000 / 22_050) * 256 / 24_000
"""Of every utterance that the checkpoint speaks."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return xtts.write(tmp_path_factory.mktemp("checkpoints") / "xtts")


@pytest.fixture(scope="module")
def server(tmp_path_factory, checkpoint):
    folder = tmp_path_factory.mktemp("coqui")
    settings = {
        "TTS_BACKEND": "coqui",
        "QUALITY_GUARD": "false",  # random weights speak noise
        "OMP_NUM_THREADS": "1",
        "TTS_MODEL": str(checkpoint),
        "VOICE_ASSET_DIR": str(folder / "voices"),
        "DEFAULT_VOICE": "Ana Florence",
        "COLD_POOL_SIZE": "2",
        "HOT_QUEUE_SAFETY_FACTOR": "0",
        "STREAM_ON_COLD": "true",
    }
    with running_server(folder, **settings) as running:
        yield running


LANGUAGES = "ar cs de en es fr hi hu it ja ko nl pl pt ru tr zh zh-cn zh-CN en-US".split()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_is_spoken(server, language):
    text = {"ar": "مرحبا", "hi": "नमस्ते", "ja": "こんにちは", "ko": "안녕하세요", "ru": "Привет", "zh": "你好"}
    answer = server.speak(text.get(language[:2], "Hola 12"), language=language, response_format="wav")
    assert len(samples(answer)) / 24_000 == pytest.approx(SECONDS, abs=0.3)


def test_another_language_is_refused_by_name(server):
    answer = server.speak("Hej", language="sv")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unsupported_language")


FIELDS = {"temperature": (0.2, 2.1), "top_k": (1, 0), "top_p": (0.1, 1.5), "repetition_penalty": (20, 21),
          "length_penalty": (-10, 11)}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_every_parameter_is_taken_in_its_range_and_refused_beyond(server, name):
    good, bad = FIELDS[name]
    assert len(samples(server.speak("Hello there", seed=1, response_format="wav", **{name: good})))
    answer = server.speak("Hello there", **{name: bad})
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, name)


def test_the_same_seed_gives_the_same_bytes(server):
    first, again, other = (
        samples(server.speak("Hello there", seed=seed, response_format="wav")).tobytes() for seed in (3, 3, 4)
    )
    assert first == again != other


def test_a_text_beyond_the_model_s_limit_is_split_and_spoken_whole(server):
    text = " ".join(["A sentence of some length that goes on for a while."] * 12)
    answer = samples(server.speak(text, response_format="wav"))
    assert len(answer) / 24_000 > 4 * SECONDS


def test_a_voice_is_cloned_from_an_upload_and_from_the_library(server, tmp_path):
    sample = {"custom_voice_file": ("me.wav", recording(200.0, 3.0), "audio/wav")}
    fields = {"input": "Hello there", "response_format": "wav", "seed": "5"}
    mine = server.http.post("/v1/audio/speech", data=fields, files=sample)
    assert (mine.headers["X-Route"], mine.headers["X-Cache"]) == ("ADHOC", "ADHOC")
    added = server.http.post(
        "/v1/audio/voices", data={"name": "me"}, files={"audio_sample": sample["custom_voice_file"]}
    )
    assert added.status_code == 200
    kept = server.speak("Hello there", voice="me", seed=5, response_format="wav")
    assert samples(mine).tobytes() == samples(kept).tobytes()
    assert samples(mine).tobytes() != samples(server.speak("Hello there", seed=5, response_format="wav")).tobytes()
    assert server.http.delete("/v1/audio/voices/me").status_code == 200


def test_streams_begin_before_their_end_and_hold_the_same(server):
    whole = samples(server.speak("Hello there", seed=6, response_format="wav"))
    with server.http.stream(
        "POST", "/v1/audio/speech", json={"input": "Hello there", "seed": 6, "response_format": "pcm"}
    ) as answer:
        streamed = np.frombuffer(b"".join(answer.iter_bytes()), "<i2")
    assert len(streamed) == len(whole)
    assert np.abs(streamed.astype(int) - whole).max() <= 1


def test_two_cold_workers_come_and_say_what_the_hot_one_says(server):
    text = " ".join(["Say this again and again, for it is to take a while."] * 3)
    alone = samples(server.speak(text, seed=8, response_format="wav")).tobytes()
    with ThreadPoolExecutor(12) as clients:
        answers = list(clients.map(lambda _: server.speak(text, seed=8, response_format="wav"), range(12)))
    assert {samples(answer).tobytes() for answer in answers} == {alone}
    assert "COLD-POOL" in {answer.headers["X-Route"] for answer in answers}


def test_a_client_that_leaves_in_the_middle_changes_nothing_for_the_next(server):
    before = samples(server.speak("Hello there", seed=9, response_format="wav")).tobytes()
    text = " ".join(["This one is left alone in the middle of what it says."] * 10)
    server.leave(text)
    server.wait_until_idle()
    assert samples(server.speak("Hello there", seed=9, response_format="wav")).tobytes() == before


def test_an_answer_survives_the_death_of_its_worker(server):
    text = " ".join(["This one is spoken again from where nothing has left."] * 6)
    whole = samples(server.speak(text, seed=10, response_format="wav")).tobytes()
    with ThreadPoolExecutor(1) as clients:
        running = clients.submit(server.speak, text, seed=10, response_format="wav")
        until(lambda: server.health()["slots"]["busy"] > 0)
        (hot,) = (worker["pid"] for worker in server.health()["workers"] if worker["kind"] == "hot")
        os.kill(hot, signal.SIGKILL)
        answer = running.result()
    assert samples(answer).tobytes() == whole


def test_the_server_loads_no_torch(server):
    assert "libtorch" not in Path(f"/proc/{server.process.pid}/maps").read_text(encoding="utf-8")


def test_what_is_wrong_with_a_checkpoint_is_said(tmp_path, checkpoint):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps({}))
    server = Server(tmp_path, TTS_BACKEND="coqui", TTS_MODEL=str(tmp_path / "model"))
    try:
        server.wait_until("/live")
        answer = server.speak("Hello")
        assert answer.status_code == 503
        assert "model.pth" in server.http.get("/health").text
    finally:
        server.stop()


def test_weights_that_were_fetched_speak_without_another_setting(tmp_path, checkpoint):
    files = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    with serving(Hub("coqui/XTTS-v2", files)) as hub:
        told = {"TTS_HOME": str(tmp_path), "COQUI_TOS_AGREED": "1", "HF_ENDPOINT": hub.url, "no_proxy": "127.0.0.1"}
        assert CliRunner().invoke(app, ["weights", "xtts"], env=told).exit_code == 0
    settings = {"TTS_HOME": str(tmp_path), "QUALITY_GUARD": "false", "DEFAULT_VOICE": "Ana Florence"}
    with running_server(tmp_path, TTS_BACKEND="coqui", **settings) as server:
        assert server.speak("Hola 12", language="es").status_code == 200


def test_speech_that_cannot_be_right_is_tried_once_more_and_then_an_error(tmp_path, checkpoint):
    settings = {"TTS_BACKEND": "coqui", "TTS_MODEL": str(checkpoint), "DEFAULT_VOICE": "Ana Florence"}
    with running_server(tmp_path, **settings) as server:
        answer = server.speak("This text is much longer than half a second of noise can be.", response_format="wav")
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "synthesis_failed")
        failures = [line for line in server.log.read_text().splitlines() if "quality: " in line]
        assert len(failures) == 2
        assert "longer" not in "".join(failures)
