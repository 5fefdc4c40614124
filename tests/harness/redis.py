"""A real redis-server on loopback, in a folder of its own, that can be killed and started again."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.server import free_port

PASSWORD = "open-sesame"

needs_redis = pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")


class Redis:
    """One server. It is asked in its own words, by a socket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = f"--port {self.port} --bind 127.0.0.1 --dir {self.folder} --requirepass {PASSWORD} --daemonize no"
        self._process = subprocess.Popen(
            ["redis-server", *words.split(), "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL
        )
        began = time.monotonic()
        while True:
            try:
                assert self.ask("PING") == "+PONG"
                return
            except OSError:
                assert time.monotonic() - began < 20, "redis-server does not start"
                time.sleep(0.02)

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def ask(self, *words: str) -> str:
        """The answer to one command: its line, or what it holds; "$-1" for nothing."""
        link = socket.create_connection(("127.0.0.1", self.port), timeout=5)
        with link, link.makefile("rb") as file:
            for command in (("AUTH", PASSWORD), words):
                parts = [b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in command]
                link.sendall(b"*%d\r\n%s" % (len(parts), b"".join(parts)))
                line = file.readline().decode().strip()
            return file.read(int(line[1:])).decode() if line[:1] == "$" and line != "$-1" else line

    def get(self, key: str) -> str | None:
        found = self.ask("GET", key)
        return None if found == "$-1" else found


@contextmanager
def own_redis(folder: Path) -> Iterator[Redis]:
    """Started by whoever wants it; gone in any case afterwards."""
    redis = Redis(folder)
    try:
        yield redis
    finally:
        redis.kill()
