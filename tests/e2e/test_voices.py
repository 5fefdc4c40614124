"""The library of voices over HTTP; the engine is a fake that speaks in a recording's own pitch."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from gauges.sound import decode
from harness.recording import recording
from harness.server import Server, cached_server, running_server, until


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("library")


@pytest.fixture(scope="module")
def library(folder) -> Iterator[Server]:
    settings = {"VOICE_ASSET_DIR": str(folder / "voices")}
    with cached_server(folder, TTS_BACKEND="tone_backend:make_cloning", **settings) as server:
        yield server


def add(server: Server, name: str, hz: float, **fields: str) -> httpx.Response:
    files = {"audio_sample": ("../../etc/passwd", recording(hz))}
    return server.http.post("/v1/audio/voices", data={"name": name, **fields}, files=files)


def pitch(answer: httpx.Response) -> float:
    assert answer.status_code == 200, answer.text
    samples, rate = decode(answer.content)
    return np.abs(np.fft.rfft(samples)).argmax() * rate / len(samples)


def names(server: Server) -> set[str]:
    return {voice["id"] for voice in server.http.get("/v1/audio/voices").json()["data"]}


def test_a_voice_that_is_added_speaks_is_listed_and_goes_when_it_is_deleted(library, folder):
    added = add(library, "Anna Bell", 523.0, transcript="Hello.", language="en", description="Mine", consent="cons_1")
    assert added.status_code == 200, added.text
    told = added.json()
    assert (told["id"], told["object"], told["name"]) == ("anna-bell", "audio.voice", "anna-bell")
    assert told["created_at"] > 1_700_000_000
    assert library.http.get("/v1/audio/voices/anna-bell").json() == told
    assert library.http.get("/audio/voices/anna-bell").json() == told
    assert "anna-bell" in names(library)
    assert pitch(library.speak("one two three", voice="ANNA-BELL", response_format="wav")) == pytest.approx(523, abs=5)
    assert (folder / "voices" / "elite" / "anna-bell.wav").read_bytes() == recording(523.0)
    assert library.http.delete("/v1/audio/voices/anna-bell").json()["deleted"] is True
    assert "anna-bell" not in names(library)
    assert library.speak("one two three", voice="anna-bell").json()["error"]["code"] == "unknown_voice"
    assert library.http.get("/v1/audio/voices/anna-bell").status_code == 404
    assert library.http.delete("/v1/audio/voices/anna-bell").status_code == 404
    assert list((folder / "voices" / "elite").iterdir()) == []


def test_a_voice_that_is_replaced_is_never_served_from_what_was_before(library):
    def spoken() -> httpx.Response:
        return library.speak("one two three four", voice="replaced", response_format="wav")

    add(library, "replaced", 300.0)
    assert pitch(spoken()) == pytest.approx(300, abs=5)
    add(library, "replaced", 700.0)
    again = spoken()
    assert again.headers["x-cache"] == "MISS"
    assert pitch(again) == pytest.approx(700, abs=5)


def test_a_file_that_changes_in_the_folder_speaks_otherwise_at_once(library, folder):
    add(library, "changing", 300.0)
    assert pitch(library.speak("one two three", voice="changing", response_format="wav")) == pytest.approx(300, abs=5)
    (folder / "voices" / "elite" / "changing.wav").write_bytes(recording(650.0))
    assert pitch(library.speak("one two three", voice="changing", response_format="wav")) == pytest.approx(650, abs=5)


def test_the_folder_is_read_again_without_a_restart_and_bad_entries_are_told(library, folder):
    elite = folder / "voices" / "elite"
    elite.mkdir(parents=True, exist_ok=True)
    (elite / "dropped-in.wav").write_bytes(recording(440.0))
    (elite / "text.wav").write_bytes(b"no recording")
    told = library.http.post("/admin/reload-voices").json()
    assert "dropped-in" in told["loaded"]
    assert "no recording" in told["failed"]["text"]
    assert "dropped-in" in names(library)
    (elite / "dropped-in.wav").unlink()
    (elite / "text.wav").unlink()
    assert "dropped-in" in library.http.post("/admin/reload-voices").json()["removed"]


def test_a_voice_whose_file_is_gone_is_refused_and_harms_nobody(library, folder):
    add(library, "lost", 300.0)
    (folder / "voices" / "elite" / "lost.wav").unlink()
    answer = library.speak("one two", voice="lost")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_sample")
    assert library.speak("one two").status_code == 200


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "..%2f..%2fetc", "a\\b", "a\0b", ".", "CON.", "alloy", "x" * 5000, "é"]
)
def test_a_name_that_is_a_path_or_taken_is_refused_and_nothing_is_written(library, folder, name):
    before = set(folder.rglob("*"))
    answer = add(library, name, 300.0)
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, "name")
    assert set(folder.rglob("*")) == before


def test_what_a_voice_has_said_goes_with_it(library, folder):
    assert add(library, "gone", 333.0).status_code == 200
    until(lambda: library.speak("one two", voice="nova").headers["x-cache"] == "HIT")
    before = set((folder / "cache").iterdir())
    until(lambda: library.speak("one two", voice="Gone").headers["x-cache"] == "HIT")
    assert len(set((folder / "cache").iterdir()) - before) == 1
    assert library.http.delete("/v1/audio/voices/Gone").status_code == 200
    assert set((folder / "cache").iterdir()) == before


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize(
    "path", ["nobody", "..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "%00", "a%5Cb", "%2e%2e", "CON", "x" * 5000]
)
def test_nothing_but_a_voice_is_found_or_deleted(library, folder, method, path):
    before = set(folder.rglob("*"))
    answer = library.http.request(method, f"/v1/audio/voices/{path}")
    assert answer.status_code in (404, 405)
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert set(folder.rglob("*")) == before


@pytest.mark.parametrize("voice", ["alloy", "nova"])
def test_a_standard_voice_cannot_be_deleted(library, voice):
    assert library.http.delete(f"/v1/audio/voices/{voice}").status_code == 404
    assert voice in names(library)


@pytest.mark.parametrize(
    ("fields", "files", "param"),
    [
        ({}, {"audio_sample": ("a.wav", recording(300.0))}, "name"),
        ({"name": "x"}, {"other": ("a.wav", b"")}, "audio_sample"),
        ({"name": "x", "language": "!!"}, {"audio_sample": ("a.wav", recording(300.0))}, "language"),
        ({"name": "x"}, {"audio_sample": ("a.wav", b"text")}, "audio_sample"),
        ({"name": "x"}, {"audio_sample": ("a.wav", recording(300.0, 0.1))}, "audio_sample"),
    ],
)
def test_what_is_no_voice_is_refused_by_name(library, fields, files, param):
    answer = library.http.post("/v1/audio/voices", data=fields, files=files)
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["param"] == param


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/audio/voices"), ("DELETE", "/v1/audio/voices/x"), ("POST", "/admin/reload-voices")],
)
def test_a_page_of_another_site_may_not(library, method, path):
    answer = library.http.request(method, path, headers={"Origin": "https://a.example"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


def test_an_engine_that_cannot_clone_takes_no_voice_and_lists_none(tmp_path):
    (tmp_path / "voices" / "elite").mkdir(parents=True)
    (tmp_path / "voices" / "elite" / "anna.wav").write_bytes(recording(300.0))
    settings = {"VOICE_ASSET_DIR": str(tmp_path / "voices"), "ADMIN_API_KEY": "secret"}
    with running_server(tmp_path, TTS_BACKEND="tone_backend:make", **settings) as server:
        assert "anna" not in names(server)
        assert add(server, "x", 300.0).status_code == 401
        server.http.headers["Authorization"] = "Bearer secret"
        answer = add(server, "x", 300.0)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "cloning_not_supported")
        assert "secret" not in server.log.read_text()


def test_voices_are_there_from_the_first_request_after_a_restart(tmp_path):
    (tmp_path / "voices" / "elite").mkdir(parents=True)
    (tmp_path / "voices" / "elite" / "anna.wav").write_bytes(recording(300.0))
    server = Server(tmp_path, TTS_BACKEND="tone_backend:make_cloning", VOICE_ASSET_DIR=str(tmp_path / "voices"))
    try:
        server.wait_until("/live")
        assert pitch(server.speak("one two", voice="anna", response_format="wav")) == pytest.approx(300, abs=8)
    finally:
        server.stop()


def test_a_standard_voice_is_made_from_its_recording_and_of_a_cloning_engine_alone(tmp_path):
    (tmp_path / "voices" / "standard").mkdir(parents=True)
    (tmp_path / "voices" / "standard" / "nova.wav").write_bytes(recording(600.0))
    for backend, hz in (("make_cloning", 600), ("make", 440)):
        settings = {"TTS_BACKEND": f"tone_backend:{backend}", "VOICE_ASSET_DIR": str(tmp_path / "voices")}
        with running_server(tmp_path, **settings) as server:
            assert pitch(server.speak("one two", voice="nova", response_format="wav")) == pytest.approx(hz, abs=8)
            assert pitch(server.speak("one two", voice="alloy", response_format="wav")) == pytest.approx(440, abs=8)
