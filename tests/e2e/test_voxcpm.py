"""VoxCPM2 over HTTP, on a checkpoint of random weights: cloning, languages, parameters, streams."""

import os
import signal

import pytest

from checkpoints import voxcpm
from harness.recording import recording, samples
from harness.server import running_server, until

SECONDS = voxcpm.PATCHES * 0.16


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("voxcpm")
    settings = {
        "TTS_BACKEND": "voxcpm",
        "QUALITY_GUARD": "false",  # random weights speak noise
        "OMP_NUM_THREADS": "1",
        "VOXCPM_MODEL": str(voxcpm.write(folder / "model")),
        "VOICE_ASSET_DIR": str(folder / "voices"),
        "DEFAULT_VOICE": "anna",
    }
    with running_server(folder, **settings) as running:
        sample = {"audio_sample": ("anna.wav", recording(200.0, 3.0), "audio/wav")}
        assert running.http.post("/v1/audio/voices", data={"name": "anna"}, files=sample).status_code == 200
        yield running


def test_it_speaks_at_openai_s_rate(server):
    answer = server.speak("Hello there", seed=1, response_format="pcm")
    assert answer.status_code == 200
    assert len(answer.content) / 2 / 24_000 == pytest.approx(SECONDS, abs=0.2)


@pytest.mark.parametrize("language", ["en", "sv", "zh-CN", "ja", "th", "vi"])
def test_languages_are_spoken(server, language):
    assert len(samples(server.speak("Hello 12", language=language, response_format="wav")))


@pytest.mark.parametrize(("good", "bad"), [(0.5, 0.4), (5.0, 5.1)])
def test_guidance_is_taken_in_its_range_and_refused_beyond(server, good, bad):
    assert len(samples(server.speak("Hello there", cfg_value=good, response_format="wav")))
    answer = server.speak("Hello there", cfg_value=bad)
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, "cfg_value")


def test_an_upload_and_the_library_make_the_same_voice_and_a_transcript_another(server):
    sample = ("me.wav", recording(120.0, 3.0), "audio/wav")
    fields = {"input": "Hello there", "response_format": "wav", "seed": "5"}
    mine = server.http.post("/v1/audio/speech", data=fields, files={"custom_voice_file": sample})
    answers = []
    for name, notes in (("plain", {}), ("told", {"transcript": "what is said in it"})):
        added = server.http.post("/v1/audio/voices", data={"name": name, **notes}, files={"audio_sample": sample})
        assert added.status_code == 200
        answers.append(samples(server.speak("Hello there", voice=name, seed=5, response_format="wav")).tobytes())
    assert answers[0] == samples(mine).tobytes() != answers[1]


def test_a_client_that_leaves_in_the_middle_changes_nothing_for_the_next(server):
    before = samples(server.speak("Hello there", seed=9, response_format="wav")).tobytes()
    text = " ".join(["This one is left alone in the middle of what it says."] * 20)
    server.leave(text)
    server.wait_until_idle()
    assert samples(server.speak("Hello there", seed=9, response_format="wav")).tobytes() == before


def test_what_was_prepared_is_there_for_the_next_worker(server, tmp_path_factory):
    before = samples(server.speak("Hello there", seed=11, response_format="wav")).tobytes()
    (hot,) = (worker["pid"] for worker in server.health()["workers"] if worker["kind"] == "hot")
    os.kill(hot, signal.SIGKILL)
    until(lambda: any(worker["kind"] == "hot" and worker["pid"] != hot for worker in server.health()["workers"]))
    server.wait_until()
    assert samples(server.speak("Hello there", seed=11, response_format="wav")).tobytes() == before
    assert list(tmp_path_factory.getbasetemp().glob("voxcpm*/latents/*/*.safetensors"))


def test_what_was_prepared_goes_with_its_voice(server, tmp_path_factory):
    def prepared():
        found = tmp_path_factory.getbasetemp().glob("voxcpm*/latents/*/*.safetensors")
        return {path.resolve() for path in found}  # pytest links the newest folder once more

    before = prepared()
    sample = {"audio_sample": ("gone.wav", recording(333.0, 3.0), "audio/wav")}
    assert server.http.post("/v1/audio/voices", data={"name": "gone"}, files=sample).status_code == 200
    samples(server.speak("Hello", voice="gone", response_format="wav"))
    assert len(prepared() - before) == 1
    assert server.http.delete("/v1/audio/voices/gone").status_code == 200
    assert prepared() == before
