"""A voice that comes with the request; the engine is a fake that speaks in the recording's own pitch."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest

from gauges.sound import decode
from harness.recording import recording
from harness.server import Server, running_server


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cloning")


@pytest.fixture(scope="module")
def cloning(folder) -> Iterator[Server]:
    settings = {"CACHE_TTL_MINUTES": "10", "AUDIO_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder)}
    with running_server(folder, TTS_BACKEND="tone_backend:make_cloning", **settings) as server:
        yield server


def speak(server: Server, hz: float, field: str = "custom_voice_file", **fields: str) -> httpx.Response:
    fields = {"input": "one two three four five", "response_format": "wav", **fields}
    return server.http.post("/v1/audio/speech", data=fields, files={field: ("../../me.mp3", recording(hz))})


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def pitch(answer: httpx.Response) -> float:
    assert answer.status_code == 200, answer.text
    samples, rate = decode(answer.content)
    return np.abs(np.fft.rfft(samples)).argmax() * rate / len(samples)


@pytest.mark.parametrize("field", ["custom_voice_file", "speaker_wav"])
def test_speech_comes_in_the_voice_that_came_with_the_request(cloning, field):
    answer = speak(cloning, 523.0, field)
    assert pitch(answer) == pytest.approx(523, abs=3)
    assert (answer.headers["x-cache"], answer.headers["x-route"]) == ("ADHOC", "ADHOC")
    assert pitch(cloning.speak("one two three", response_format="wav")) == pytest.approx(440, abs=5)


def test_of_two_files_the_one_of_the_first_name_is_the_voice(cloning):
    files = [("speaker_wav", ("a.wav", recording(300.0))), ("custom_voice_file", ("b.wav", recording(600.0)))]
    answer = cloning.http.post("/v1/audio/speech", data={"input": "one two", "response_format": "wav"}, files=files)
    assert pitch(answer) == pytest.approx(600, abs=5)


def test_many_at_once_are_never_mixed_up(cloning):
    pitches = [220.0 + 20 * number for number in range(48)]  # more voices than a worker keeps
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda hz: speak(cloning, hz), pitches * 2))
    for hz, answer in zip(pitches * 2, answers, strict=True):
        assert pitch(answer) == pytest.approx(hz, abs=5)


def test_a_long_recording_is_taken_whole(cloning):
    files = {"custom_voice_file": ("long.wav", recording(350.0, 119.0))}
    answer = cloning.http.post("/v1/audio/speech", data={"input": "one two", "response_format": "wav"}, files=files)
    assert pitch(answer) == pytest.approx(350, abs=5)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"", "no recording", id="0 bytes"),
        pytest.param(b"some text", "no recording", id="text"),
        pytest.param(b"#EXTM3U\n#EXTINF:9,\nfile:///etc/passwd\n", "no recording", id="a playlist"),
        pytest.param(recording(300.0, 0.2), "1 s at least", id="too short"),
        pytest.param(recording(0.0), "silent", id="silence"),
    ],
)
def test_what_no_voice_can_be_made_from_is_refused_in_openai_s_shape(cloning, data, said):
    files = {"custom_voice_file": ("sample.wav", data)}
    answer = cloning.http.post("/v1/audio/speech", data={"input": "one two"}, files=files)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["code"], error["param"]) == (
        "invalid_request_error",
        "invalid_sample",
        "custom_voice_file",
    )
    assert said in error["message"]


def test_a_voice_outlives_its_worker(cloning):
    assert pitch(speak(cloning, 480.0)) == pytest.approx(480, abs=5)
    for worker in cloning.workers:
        worker.kill()
    assert pitch(speak(cloning, 480.0)) == pytest.approx(480, abs=5)


def test_nothing_of_it_is_kept_or_told(cloning, folder):
    before = files(folder)
    speak(cloning, 500.0, input="a most private sentence", voice="nova")
    assert files(folder) == before
    log = cloning.log.read_text()
    for private in ("private", "me.mp3", "nova"):
        assert private not in log
