"""make audit, with a database of our own: what it says of clean locks, of holes, and of no database at all."""

import http.server
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from core.environment import PROJECT
from harness.server import free_port

LOCKS = sorted(path.stem for path in (PROJECT / "requirements").glob("*.txt") if path.stem != "kokoro-model")

HOLE = {
    "id": "OSV-1",
    "summary": "A hole.",
    "affected": [
        {
            "package": {"name": "setuptools", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}],
            "versions": [],
        }
    ],
}


@contextmanager
def database(*known: dict) -> Iterator[tuple[str, set[str]]]:
    """Its address, and the names that it was asked for."""
    asked = set()

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.add(query["package"]["name"])
            body = json.dumps({"vulns": list(known)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", asked
        finally:
            server.shutdown()
            thread.join()


def audit(url: str, *locks: str) -> tuple[int, str]:
    words = ["make", "audit", f"OSV_URL={url}", *([f"LOCKS={' '.join(locks)}"] if locks else [])]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # of `make test`
    told = subprocess.run(words, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    return told.returncode, told.stdout + told.stderr


@pytest.mark.slow(file_s=15)
def test_every_lock_is_looked_up():
    with database() as (url, asked):
        code, told = audit(url)
    assert code == 0, told
    assert {"fastapi", "redis", "setuptools", "voxcpm", "coqui-tts", "pytest"} <= asked
    named = [line for line in told.splitlines() if line.startswith("requirements/")]
    assert sorted(named) == sorted(f"requirements/{lock}.txt" for lock in LOCKS)


def test_a_hole_fails_it_and_is_named():
    with database(HOLE) as (url, _):
        code, told = audit(url, "build")
    assert code != 0
    assert "OSV-1" in told
    assert "Not clean: build" in told


def test_a_database_that_is_not_there_is_said_plainly():
    code, told = audit(f"http://127.0.0.1:{free_port()}/", "build")
    assert code != 0
    assert "nothing was looked up" in told
    assert "Traceback" not in told
