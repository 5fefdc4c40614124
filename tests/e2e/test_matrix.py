"""Every way to answer, at every moment, and everything that can happen to it: the real model with one slot.

Whatever happens, a client has all of its audio, the beginning of it and then an end that it can tell from a good one,
or a status; the slots are free afterwards, and the next answer is right.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

import httpx
import numpy as np
import pytest

from gauges.likeness import SAME, is_beginning, likeness, shape
from harness.server import Server, running_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

TEXT = "The river was wide and slow. Nobody on the bank knew where it came from."
NEXT = "Good morning."
KINDS = ["plain", "stream", "sse"]
MOMENTS = ["queued", "before audio", "mid", "stalled reader"]
SETTINGS = {"TTS_BACKEND": "kokoro", "KOKORO_SLOTS": "1"}
FREE_S = 1.0


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

    def start(self) -> "Client":
        self.go_on.set()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        return self

    def wait(self, timeout_s: float = 60) -> "Client":
        self._thread.join(timeout_s)
        assert not self._thread.is_alive(), "the answer never ended"
        return self

    def leave(self) -> None:
        """Close the connection, whatever it is waiting for."""
        self.gone.set()
        self.go_on.set()
        with suppress(Exception):
            self._http.close()

    def _read(self) -> None:
        path = "/v1/audio/speech/stream" if self.kind == "stream" else "/v1/audio/speech"
        body = {"input": self.text, "voice": "nova", "response_format": "pcm"}
        if self.kind == "sse":
            body["stream_format"] = "sse"
        with httpx.Client(base_url=self.server.url, timeout=60) as self._http, suppress(httpx.StreamError):
            try:
                with self._http.stream("POST", path, json=body) as answer:
                    self.status = answer.status_code
                    for piece in answer.iter_raw():
                        self.data += piece
                        self.sounded.set()
                        self.go_on.wait(60)
                        if self.gone.is_set():
                            return
            except httpx.TransportError:
                self.is_broken = True

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
    with running_server(tmp_path_factory.mktemp("matrix"), **SETTINGS) as server:
        yield server


@pytest.fixture(scope="module")
def hasty_server(tmp_path_factory) -> Iterator[Server]:
    """A server that gives up what has no sound within 0.3 s, and clients that do not read for a second."""
    patience = {"DEADLINE_SECONDS": "0.3", "SEND_TIMEOUT_S": "1"}
    with running_server(tmp_path_factory.mktemp("hasty"), **SETTINGS, **patience) as server:
        yield server


@pytest.fixture(scope="module")
def whole(slow_server) -> bytes:
    """What a client is to hear."""
    return Client(slow_server, "plain").start().wait().pcm


@pytest.fixture(scope="module")
def following(slow_server) -> np.ndarray:
    """What the next client is to hear."""
    return shape(Client(slow_server, "plain", NEXT).start().wait().pcm)


def until(claim: Callable[[], bool], timeout_s: float = 20.0) -> None:
    began = time.monotonic()
    while not claim():
        assert time.monotonic() - began < timeout_s, "it never came to hold"
        time.sleep(0.005)


@contextmanager
def at(moment: str, server: Server, *kinds: str) -> Iterator[list[Client]]:
    """Clients of these kinds that have come to a moment; those who block their way are gone afterwards."""
    server.wait_until_idle()
    with ExitStack() as stack:
        if moment == "queued":
            for _ in range(2):
                blocker = Client(server, "plain").start()
                stack.callback(blocker.wait)
                stack.callback(blocker.leave)
            until(lambda: server.health()["jobs"] == 2)
        clients = [Client(server, kind).start() for kind in kinds]
        if moment == "queued":
            until(lambda: server.health()["jobs"] == 2 + len(kinds))
        elif moment == "before audio":
            until(lambda: server.health()["slots"]["busy"] == 1 and server.health()["jobs"] == len(kinds))
        else:
            if moment == "stalled reader":
                for client in clients:
                    client.go_on.clear()
            for client in clients:
                assert client.sounded.wait(30)
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


each_kind = pytest.mark.parametrize("kind", KINDS)
each_moment = pytest.mark.parametrize("moment", MOMENTS)


@each_kind
@each_moment
def test_a_client_that_leaves_is_forgotten(slow_server, whole, following, kind, moment):
    before = slow_server.health()["metrics"]["total_errors"]
    with at(moment, slow_server, kind) as (client,):
        client.leave()
        client.wait()
    assert_right(client, whole)
    assert_well(slow_server, following)
    assert slow_server.health()["metrics"]["total_errors"] == before


@each_kind
@each_moment
def test_time_runs_out(hasty_server, whole, kind, moment):
    with at(moment, hasty_server, kind) as (client,):
        if moment == "mid":  # the client's own patience
            client.leave()
        elif moment == "stalled reader":
            time.sleep(1.5)
            client.go_on.set()
        client.wait()
    assert_right(client, whole)
    if moment in ("queued", "before audio"):
        assert client.status == 504 or client.pcm
        assert client.status == 504 or moment != "queued"
    assert hasty_server.wait_until_idle() < 2


@each_kind
@each_moment
def test_the_worker_is_killed(slow_server, whole, following, kind, moment):
    with at(moment, slow_server, kind) as (client,):
        for worker in slow_server.workers:
            worker.kill()
        client.go_on.set()
        client.wait()
    assert_right(client, whole)
    if moment in ("queued", "before audio"):
        assert client.status == 200  # nothing had left: it was spoken again
        assert not client.is_broken
    assert_well(slow_server, following)


@each_moment
def test_the_server_is_told_to_stop(tmp_path, whole, moment):
    with running_server(tmp_path, **SETTINGS) as server, at(moment, server, *KINDS) as clients:
        began = time.monotonic()
        server.process.terminate()
        time.sleep(0.3)
        for client in clients:
            client.go_on.set()
        for client in clients:
            client.wait()
            assert_right(client, whole)
            assert client.status == 200
            assert not client.is_broken
        if moment != "queued":  # there, those who block the way are still at it
            assert server.process.wait(10) == 0
            assert time.monotonic() - began < 30
