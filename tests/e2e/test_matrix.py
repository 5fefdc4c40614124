"""Every way to answer, at every moment, and everything that can happen to it: the real model with one slot.

Whatever happens, a client has all of its audio, the beginning of it and then an end that it can tell from a good one,
or a status; the slots are free afterwards, and the next answer is right.
"""

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from itertools import count

import numpy as np
import pytest

from gauges.likeness import SAME, is_beginning, likeness, shape
from harness.server import Server, cached_server, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120), pytest.mark.alone]

TEXT = "Slow rivers. Cold days."
NEXT = "Good day."
KINDS = ["plain", "stream", "sse", "whole"]
MOMENTS = ["queued", "before audio", "mid", "stalled reader"]
SETTINGS = {"TTS_BACKEND": "kokoro", "KOKORO_SLOTS": "1"}
FREE_S = 1.0
SEEDS = count()


@dataclass
class Client:
    """One request, read piece by piece in a thread of its own, as far as it is let."""

    server: Server
    kind: str
    text: str = TEXT
    status: int = 0
    data: bytes = b""
    is_broken: bool = False
    has_error: bool = False
    sounded: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def start(self, *, is_stalled: bool = False) -> "Client":
        if not is_stalled:
            self.go_on.set()
        self._http = HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        self._http.connect()
        self._socket = self._http.sock
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        return self

    def wait(self, timeout_s: float = 60) -> "Client":
        self._thread.join(timeout_s)
        assert not self._thread.is_alive(), "the answer never ended"
        return self

    def leave(self) -> None:
        """Hang up, whatever it is waiting for."""
        self.gone.set()
        self.go_on.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # closing would not be told while a thread reads

    def _read(self) -> None:
        path = "/v1/audio/speech/stream" if self.kind == "stream" else "/v1/audio/speech"
        # Each has a seed of its own: the cache is on, as it is for everybody, and none of them is to be another's.
        body: dict[str, object] = {"input": self.text, "voice": "nova", "response_format": "pcm", "seed": next(SEEDS)}
        if self.kind == "sse":
            body["stream_format"] = "sse"
        if self.kind == "whole":
            body["stream"] = False
        try:
            self._http.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = self._http.getresponse()
            self.status = answer.status
            while piece := answer.read1(2**16):
                self.data += piece
                self.sounded.set()
                self.go_on.wait(60)
                if self.gone.is_set():
                    return
            self.is_broken = bool(answer.length)  # fewer bytes than were announced
        except (HTTPException, OSError):
            self.is_broken = True
        finally:
            self._http.close()

    @property
    def pcm(self) -> bytes:
        if self.kind != "sse":
            return self.data
        events = [
            json.loads(line[5:]) for line in self.data.split(b"\n") if line.startswith(b"data:") and line[-1:] == b"}"
        ]
        self.has_error = any(event.get("type") == "error" or "error" in event for event in events)
        return b"".join(base64.b64decode(event["audio"]) for event in events if event["type"] == "speech.audio.delta")


@pytest.fixture(scope="module")
def slow_server(tmp_path_factory) -> Iterator[Server]:
    with cached_server(tmp_path_factory.mktemp("matrix"), **SETTINGS) as server:
        yield server


@pytest.fixture(scope="module")
def hasty_server(tmp_path_factory) -> Iterator[Server]:
    """A server that gives up what has no sound within 0.3 s."""
    with cached_server(tmp_path_factory.mktemp("hasty"), **SETTINGS, DEADLINE_SECONDS="0.3") as server:
        yield server


@pytest.fixture(scope="module")
def curt_server(tmp_path_factory) -> Iterator[Server]:
    """A server that gives up clients who do not read for a second; its engine makes more at once than buffers hold."""
    folder = tmp_path_factory.mktemp("curt")
    with cached_server(folder, TTS_BACKEND="tone_backend:make", SEND_TIMEOUT_S="1", STREAM_LEAD_S="1000") as server:
        yield server


@pytest.fixture(scope="module")
def whole(slow_server) -> bytes:
    """What a client is to hear."""
    return Client(slow_server, "plain").start().wait().pcm


@pytest.fixture(scope="module")
def following(slow_server) -> np.ndarray:
    """What the next client is to hear."""
    return shape(Client(slow_server, "plain", NEXT).start().wait().pcm)


def is_told(clients: list[Client]) -> bool:
    """Whether one of them has an answer already."""
    return any(client.status for client in clients)


@contextmanager
def at(moment: str, server: Server, *kinds: str) -> Iterator[list[Client]]:
    """Clients of these kinds that have come to a moment; those who block their way are gone afterwards."""
    server.wait_until_idle()
    with ExitStack() as stack:
        here = []
        if moment == "queued":
            blocker = Client(server, "plain").start()
            stack.callback(blocker.wait)
            stack.callback(blocker.leave)
            here.append(blocker)
            until(lambda: is_told(here) or server.health()["jobs"] == 1)
        clients = [Client(server, kind).start(is_stalled=moment == "stalled reader") for kind in kinds]
        here += clients
        if moment == "queued":
            until(lambda: is_told(here) or server.health()["jobs"] == 1 + len(kinds))
        elif moment == "before audio":
            until(lambda: server.health()["slots"]["busy"] == 1 and server.health()["jobs"] == len(kinds))
        else:
            for client in clients:
                assert client.kind == "whole" or client.sounded.wait(30)
            if moment == "stalled reader":
                time.sleep(0.5)
        yield clients


def assert_right(client: Client, whole: bytes) -> None:
    """All of it, or the beginning and an end that tells, or a status."""
    heard, reference = shape(client.pcm if client.status in (0, 200) else b""), shape(whole)
    if client.status >= 500:
        assert json.loads(client.data)["error"]["message"]
    elif client.is_broken or client.has_error or client.gone.is_set():
        assert is_beginning(heard, reference)
    else:
        assert likeness(heard, reference) > SAME


def assert_well(server: Server, following: np.ndarray) -> None:
    """Free slots, and a next answer that is right."""
    assert server.wait_until_idle() < FREE_S
    assert likeness(shape(Client(server, "plain", NEXT).start().wait().pcm), following) > SAME


each_moment = pytest.mark.parametrize("moment", MOMENTS)


@each_moment
def test_clients_that_leave_are_forgotten(slow_server, whole, following, moment):
    before = slow_server.health()["metrics"]["total_errors"]
    with at(moment, slow_server, *KINDS) as clients:
        for client in clients:
            client.leave()
        for client in clients:
            assert_right(client.wait(), whole)
    assert_well(slow_server, following)
    assert slow_server.health()["metrics"]["total_errors"] == before


@pytest.mark.parametrize("moment", ["queued", "before audio"])
def test_the_time_for_a_first_sound_runs_out(hasty_server, whole, moment):
    with at(moment, hasty_server, *KINDS) as clients:
        for client in clients:
            assert_right(client.wait(), whole)
        given_up = [client for client in clients if client.status == 504]
        # A fast machine may just make it for those who are near; those who are behind others cannot be in time.
        assert given_up
        assert {json.loads(client.data)["error"]["code"] for client in given_up} == {"deadline_exceeded"}
    assert hasty_server.wait_until_idle() < FREE_S


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_that_stalls_for_too_long_is_let_go(curt_server, kind):
    before = curt_server.health()["metrics"]["total_cancelled"]
    client = Client(curt_server, kind, "tone " * 6000)
    client.start(is_stalled=True)
    until(lambda: curt_server.health()["metrics"]["total_cancelled"] == before + 1, 10)
    # Though nobody takes what it holds: one that stays open would also keep the server from ending.
    until(lambda: client.port not in curt_server.clients, 1)
    client.go_on.set()
    client.wait()
    assert client.is_broken
    assert curt_server.wait_until_idle() < FREE_S


@each_moment
def test_the_worker_is_killed(slow_server, whole, following, moment):
    with at(moment, slow_server, *KINDS) as clients:
        for worker in slow_server.workers:
            worker.kill()
        for client in clients:
            client.go_on.set()
        for client in clients:
            assert_right(client.wait(), whole)
            if moment in ("queued", "before audio") or client.kind == "whole":
                assert client.status == 200  # nothing had left: it was spoken again
                assert not client.is_broken
    assert_well(slow_server, following)


@each_moment
def test_the_server_is_told_to_stop(tmp_path, whole, moment):
    with cached_server(tmp_path, **SETTINGS) as server, at(moment, server, *KINDS) as clients:
        began = time.monotonic()
        server.process.terminate()
        time.sleep(0.3)
        for client in clients:
            client.go_on.set()
        for client in clients:
            assert_right(client.wait(), whole)
            assert client.status == 200
            assert not client.is_broken
        if moment != "queued":  # there, those who block the way are still at it
            assert server.process.wait(10) == 0
            assert time.monotonic() - began < 30
