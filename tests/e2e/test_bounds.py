"""What a client may send without the server's opening another file, or holding more than it accepts."""

import ast
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest

from audio.encode import Encoder
from core.environment import PROJECT
from core.speech import AudioFormat
from harness.recording import recording
from harness.server import FAKES, Server, running_server

TRACED = FAKES.parent / "harness" / "traced"

ROOM_BYTES = 128 * 2**20
"""By how much a refused request may make the server larger: four times what it accepts of a body."""


# --- other files


class Traced:
    """A server whose files are all written down."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.secret = folder / "elsewhere" / "secret.wav"
        self.secret.parent.mkdir()
        self.secret.write_bytes(recording(700.0))
        self._read = 0

    def opened(self) -> set[Path]:
        """Since it was last asked."""
        lines = (self.folder / "trace").read_text().splitlines()
        new, self._read = lines[self._read :], len(lines)
        return {Path(ast.literal_eval(line)) for line in new}

    def astray(self) -> list[Path]:
        """Those that are neither in the library and the cache nor Python's and the kernel's own."""
        ours = [self.folder / name for name in ("voices", "cache", "state")]
        own = [*ours, PROJECT / "voices.json", *map(Path, (sys.prefix, sys.base_prefix, "/proc", "/sys", "/dev"))]
        code = [path for room in PROJECT.glob("*/__init__.py") for path in [room.parent]] + [FAKES]
        return [path for path in self.opened() if not any(path.is_relative_to(each) for each in own + code)]


@pytest.fixture(scope="module")
def traced(tmp_path_factory) -> Iterator[Traced]:
    folder = tmp_path_factory.mktemp("traced")
    settings = {
        "PYTHONPATH": os.pathsep.join(map(str, (TRACED, FAKES))),
        "TRACE": str(folder / "trace"),
        "VOICE_ASSET_DIR": str(folder / "voices"),
        "AUDIO_CACHE_DIR": str(folder / "cache"),
        "STATE_DIR": str(folder / "state"),
        "CACHE_TTL_MINUTES": "10",
    }
    with running_server(folder, TTS_BACKEND="tone_backend:make_cloning", **settings) as server:
        yield Traced(server, folder)


@pytest.fixture(scope="module")
def names(traced) -> list[str]:
    """Of a file that is there, spelled in every way that a careless server might follow."""
    way = f"../../elsewhere/{traced.secret.name}"
    plain = [
        str(traced.secret),
        str(traced.secret.with_suffix("")),
        way,
        way.removesuffix(".wav"),
        f"file://{traced.secret}",
    ]
    return [*plain, way.replace("/", "%2f"), way.replace("/", "\\"), f"anna.wav/../{way}", f"{way}\0.wav"]


def test_the_trace_sees_what_the_server_opens(traced):
    traced.opened()
    voices = traced.folder / "voices" / "elite"
    added = traced.server.http.post(
        "/v1/audio/voices", data={"name": "anna"}, files={"audio_sample": ("a.wav", recording())}
    )
    assert added.status_code == 200, added.text
    assert traced.server.speak("one two", voice="anna").status_code == 200
    opened = traced.opened()
    assert {voices / "anna.wav", voices / "anna.json"} < opened
    assert any(path.is_relative_to(traced.folder / "cache") for path in opened)


def test_no_name_of_a_voice_leads_to_a_file(traced, names):
    http = traced.server.http
    traced.astray()
    for name in names:
        assert traced.server.speak("one two", voice=name).status_code == 400
        assert http.post("/v1/audio/speech", data={"input": "one two", "voice": name}).status_code == 400
        files = {"audio_sample": ("a.wav", recording())}
        assert http.post("/v1/audio/voices", data={"name": name}, files=files).status_code == 422
    assert traced.astray() == []


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_no_id_of_a_voice_leads_to_a_file(traced, names, method):
    traced.astray()
    for name in names:
        quoted = "".join(f"%{byte:02x}" for byte in name.encode())
        assert traced.server.http.request(method, f"/v1/audio/voices/{quoted}").status_code in (404, 405)
    assert traced.astray() == []
    assert traced.secret.exists()


def test_no_name_and_no_content_of_an_upload_leads_to_a_file(traced, names):
    http = traced.server.http
    contents = [recording(), b"#EXTM3U\n#EXTINF:9,\nfile://%s\n" % bytes(traced.secret)]
    contents.append(b"ffconcat version 1.0\nfile '%s'\n" % bytes(traced.secret))
    traced.astray()
    for name in names:
        for content in contents:
            expected = 200 if content is contents[0] else 400
            for field in ("custom_voice_file", "speaker_wav"):
                answer = http.post("/v1/audio/speech", data={"input": "one"}, files={field: (name, content)})
                assert answer.status_code == expected
            files = {"audio_sample": (name, content)}
            assert http.post("/v1/audio/voices", data={"name": "bell"}, files=files).status_code == expected
    assert traced.astray() == []


# --- too much of everything


def peak_bytes(server: Server) -> int:
    """The most memory that the server has had so far."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def huge(form: bool) -> tuple[int, Iterator[bytes]]:
    """200 MB of a text, or of a file; and how many bytes that is."""
    disposition = b'Content-Disposition: form-data; name="audio_sample"; filename="a.wav"'
    begin = b"--x\r\n%s\r\n\r\n" % disposition if form else b'{"input": "'
    pieces = [begin, *[b"a" * 10**6] * 200]
    return sum(map(len, pieces)), iter(pieces)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/audio/speech", "application/json"),
        ("/v1/audio/speech", "multipart/form-data; boundary=x"),
        ("/v1/audio/voices", "multipart/form-data; boundary=x"),
    ],
)
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "in pieces"])
def test_a_body_of_200_mb_is_refused_and_not_held(traced, path, kind, declared):
    size, pieces = huge("form" in kind)
    before = psutil.Process(traced.server.process.pid).memory_info().rss
    headers = {"Content-Type": kind, **({"Content-Length": str(size)} if declared else {})}
    with httpx.Client(base_url=traced.server.url, timeout=60) as http:  # its connection is of no use behind this
        answer = http.post(path, headers=headers, content=pieces)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert peak_bytes(traced.server) - before < ROOM_BYTES
    assert traced.server.speak("one two").status_code == 200


def test_hours_of_silence_in_a_small_file_are_refused_in_no_time(traced):
    encoder = Encoder(AudioFormat.FLAC, source_rate=8_000, rate=8_000, streamed=False)
    minute = np.zeros(60 * 8_000, np.float32)
    data = b"".join([*(encoder.feed(minute) for _ in range(180)), encoder.finish()])
    before = psutil.Process(traced.server.process.pid).memory_info().rss
    began = time.monotonic()
    answer = traced.server.http.post("/v1/audio/speech", data={"input": "one"}, files={"speaker_wav": ("a.flac", data)})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_sample")
    assert "120 s at most" in answer.json()["error"]["message"]
    assert time.monotonic() - began < 3
    assert peak_bytes(traced.server) - before < ROOM_BYTES


def test_uploads_that_wait_for_their_turn_take_no_more_memory_than_they_may(tmp_path):
    data = recording(300.0, 119.0, rate=48_000)
    room = 64 * 2**20
    settings = {"TTS_BACKEND": "tone_backend:make_cloning", "MAX_UPLOAD_BYTES": str(room)}
    fields = {"input": "slow " * 60, "response_format": "pcm"}
    with running_server(tmp_path, **settings) as server:
        before = psutil.Process(server.process.pid).memory_info().rss

        def ask(number: int) -> int:
            files = {"speaker_wav": ("a.wav", data + bytes(2 * number))}  # others by content
            return server.http.post("/v1/audio/speech", data=fields, files=files).status_code

        with ThreadPoolExecutor(24) as threads:
            codes = list(threads.map(ask, range(24)))
        assert set(codes) == {200, 503}
        assert peak_bytes(server) - before < 2 * room + ROOM_BYTES
        assert server.speak("one two").status_code == 200
        assert server.http.post("/v1/audio/speech", data=fields, files={"speaker_wav": data}).status_code == 200
