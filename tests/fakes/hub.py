"""A hub of weights that answers as the real one does, or as badly as a test asks for.

A fault is a function that answers one request for a file in the place of the hub.
"""

import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

COMMIT = "c" * 40


class Hub:
    """Its files, what it lists of them, what was asked of it, and what goes wrong next."""

    def __init__(self, repository: str, files: dict[str, bytes]) -> None:
        self.repository = repository
        self.commit = COMMIT
        self.files = dict(files)
        self.listed = dict(files)
        self.faults: defaultdict[str, list[Fault]] = defaultdict(list)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.port = 0
        self.is_over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ranges(self, name: str) -> list[str]:
        """What was asked of a file, request by request."""
        return [headers.get("Range", "all") for path, headers in self.asked if path.endswith(f"/{name}")]

    def listing(self) -> dict:
        return {"id": self.repository, "sha": self.commit, "siblings": [self._sibling(name) for name in self.listed]}

    def _sibling(self, name: str) -> dict:
        content = self.listed[name]
        entry = {"rfilename": name, "size": len(content), "blobId": hashlib.sha1(b"pointer").hexdigest()}
        if name.endswith((".pth", ".safetensors")):
            return {**entry, "lfs": {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}}
        return {**entry, "blobId": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()}


class Answering(BaseHTTPRequestHandler):
    """One request of it."""

    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_GET(self) -> None:
        hub, path = self.hub, urlsplit(self.path).path
        hub.asked.append((path, dict(self.headers)))
        name = path.rpartition("/")[2]
        if path == f"/api/models/{hub.repository}/revision/main":
            name = "listing"
        content = json.dumps(hub.listing()).encode() if name == "listing" else hub.files.get(name)
        offset = int(self.headers.get("Range", "bytes=0-")[6:-1])
        if hub.faults[name]:
            hub.faults[name].pop(0)(self, content or b"", offset)
        elif content is None:
            self.head(404, 0)
        elif offset and offset >= len(content):
            self.head(416, 0)
        else:
            self.piece(content, offset)

    def head(self, status: int, length: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(length), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def piece(self, content: bytes, offset: int, most: int | None = None) -> None:
        """Promise all from an offset on, and send as much of it as `most`."""
        total = len(content)
        kind = {"Content_Range": f"bytes {offset}-{total - 1}/{total}"} if offset else {}
        self.head(206 if offset else 200, total - offset, **kind)
        self.wfile.write(content[offset:][:most])

    def log_message(self, *_: object) -> None:
        pass


Fault = Callable[[Answering, bytes, int], None]


def cut(after: int) -> Fault:
    """The line breaks after so many bytes."""

    def answer(to: Answering, content: bytes, offset: int) -> None:
        to.piece(content, offset, after)
        to.close_connection = True

    return answer


def stall(after: int) -> Fault:
    """Nothing comes after so many bytes, and the line stays open."""

    def answer(to: Answering, content: bytes, offset: int) -> None:
        to.piece(content, offset, after)
        to.wfile.flush()
        to.hub.is_over.wait(30)
        to.close_connection = True

    return answer


def status(code: int, **headers: str) -> Fault:
    return lambda to, content, offset: to.head(code, 0, **headers)


def whole(to: Answering, content: bytes, offset: int) -> None:
    """All of it, whatever was asked for."""
    to.piece(content, 0)


def elsewhere(to: Answering, content: bytes, offset: int) -> None:
    """Another piece than was asked for."""
    to.piece(content, offset + 1)


def longer(to: Answering, content: bytes, offset: int) -> None:
    """More than was listed, without a length."""
    to.send_response(200)
    to.end_headers()
    to.wfile.write(content + b"more")
    to.close_connection = True


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub at a port of this machine, for as long as the context is open."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("At", (Answering,), {"hub": hub}))
    hub.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()
