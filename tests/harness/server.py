"""The real server in its own process, as a user starts it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

PROJECT = Path(__file__).resolve().parent.parent.parent
FAKES = PROJECT / "tests" / "fakes"


PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
"""Of this process's environment; nothing else of the developer's shell shall change what is tested."""


class Server:
    """A running server. Its log is kept in a file."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"server-{self.port}.log"
        inherited = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(PROJECT / "main_tts.py"), "serve", "--port", str(self.port)],
                env={
                    **inherited,
                    "PYTHONPATH": str(FAKES),
                    "STATE_DIR": str(folder),
                    "AUDIO_CACHE_DIR": str(folder / "cache"),
                    "CACHE_TTL_MINUTES": "0",
                    **environment,
                },
                cwd=folder,
                stdout=log,
                stderr=log,
            )
        self.http = httpx.Client(base_url=self.url, timeout=600)

    def wait_until(self, path: str = "/ready", timeout_s: float = 60) -> float:
        """Wait for a 200; seconds that it took."""
        began = time.monotonic()
        while time.monotonic() - began < timeout_s:
            assert self.process.poll() is None, self.log.read_text()
            try:
                if self.http.get(path).status_code == 200:
                    return time.monotonic() - began
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        raise TimeoutError(self.log.read_text())

    @property
    def workers(self) -> list[psutil.Process]:
        """Its worker processes, zombies not counted."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]

    @property
    def clients(self) -> set[int]:
        """Ports of those that it is connected with."""
        connections = psutil.Process(self.process.pid).net_connections("tcp")
        return {found.raddr.port for found in connections if found.status == psutil.CONN_ESTABLISHED}

    def health(self) -> dict:
        return self.http.get("/health").json()

    def wait_until_idle(self, timeout_s: float = 30) -> float:
        """Wait until no slot is busy and nothing is queued; seconds that it took."""
        began = time.monotonic()
        while time.monotonic() - began < timeout_s:
            health = self.health()
            if not health["slots"]["busy"] and not health["jobs"]:
                return time.monotonic() - began
            time.sleep(0.005)
        raise TimeoutError(str(health))

    def speak(self, text: str, path: str = "/v1/audio/speech", **fields) -> httpx.Response:
        return self.http.post(path, json={"input": text, **fields})

    def leave(self, text: str) -> None:
        """Ask for a stream, and go with its first bytes."""
        with self.http.stream("POST", "/v1/audio/speech", json={"input": text, "response_format": "pcm"}) as answer:
            next(answer.iter_bytes())

    def stop(self) -> None:
        """End it as a supervisor does; it must go by itself, and take its workers along."""
        workers = psutil.Process(self.process.pid).children(recursive=True) if self.process.poll() is None else []
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait()
            self.http.close()
            _, alive = psutil.wait_procs(workers, timeout=5)
            for child in alive:
                child.kill()
        assert not alive, "the server left a worker behind"


@contextmanager
def running_server(folder: Path, timeout_s: float = 60, **environment: str) -> Iterator[Server]:
    """A server that is ready."""
    server = Server(folder, **environment)
    try:
        server.wait_until(timeout_s=timeout_s)
        yield server
    finally:
        server.stop()


@contextmanager
def cached_server(folder: Path, **environment: str) -> Iterator[Server]:
    """The same with a cache of its own, which the others do without: most tests ask for the same again and again."""
    with running_server(folder, CACHE_TTL_MINUTES="10", AUDIO_CACHE_DIR=str(folder / "cache"), **environment) as server:
        yield server


def until(claim: Callable[[], bool], timeout_s: float = 40.0) -> None:
    """Wait until `claim()` holds."""
    began = time.monotonic()
    while not claim():
        assert time.monotonic() - began < timeout_s, "it never came to hold"
        time.sleep(0.005)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
