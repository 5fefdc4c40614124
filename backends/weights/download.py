"""One file over a bad line: its bytes go to `*.part`, and get their name when they are all there, and the right ones.

No `If-Range`: storage behind a hub has other tags than the hub. Whatever was resumed is proved by its digest, and is
fetched once more from its first byte where that does not fit.
"""

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from backends.base import BackendError
from backends.weights.hub import LEAST_BYTES, BeyondEnd, Passing, blocks
from backends.weights.lock import READABLE, Content

PART = ".part"

Done = TypeVar("Done")

_RANGE = re.compile(r"bytes (\d{1,15})-\d+/(\d{1,15}|\*)")
_PARTIAL = 206


class Listener(Protocol):
    """Somebody who watches a download."""

    def say(self, line: str) -> None:
        """Something that a person should know."""

    def progress(self, name: str, done: int, total: int) -> None:
        """So many bytes of a file are there. Called often, and with less than before where it begins anew."""


@dataclass(frozen=True, slots=True)
class Persistence:
    """How often and how long. tries: in a row that bring less than LEAST_BYTES. wait_s: before the second; doubled for
    each more. longest_wait_s: also of what a server may ask for. sleep: waits. clock: tells seconds.
    """

    tries: int = 6
    wait_s: float = 1.0
    longest_wait_s: float = 120.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic


class Tries:
    """Decides whether it is worth another try, and waits before it."""

    def __init__(self, persistence: Persistence, listener: Listener) -> None:
        self._persistence = persistence
        self._listener = listener
        self._failed = 0
        self._best = 0

    def wait(self, trouble: Passing, reached: int = 0) -> None:
        """Wait after a failure. reached: bytes that are there; many more than ever before make it a fresh start.

        Raises BackendError where it was the last try.
        """
        if reached >= self._best + LEAST_BYTES:
            self._failed = 0
        self._best = max(self._best, reached)
        self._failed += 1
        how = self._persistence
        if self._failed >= how.tries:
            raise BackendError(f"{trouble}. After {self._failed} tries it is left at that: run this again later.")
        asked_s = trouble.wait_s if trouble.wait_s is not None else how.wait_s * 2 ** (self._failed - 1)
        wait_s = min(asked_s, how.longest_wait_s)
        self._listener.say(f"{trouble}. Once more in {wait_s:.0f} s.")
        how.sleep(wait_s)


def persist(step: Callable[[], Done], persistence: Persistence, listener: Listener, part: Path | None = None) -> Done:
    """Take a step again and again until it works. part: the file that grows by it. Raises BackendError."""
    tries = Tries(persistence, listener)
    while True:
        try:
            return step()
        except Passing as trouble:
            tries.wait(trouble, _size(part) if part else 0)


def fetch(
    source: Callable[[int], HTTPResponse], path: Path, wanted: Content, persistence: Persistence, listener: Listener
) -> Content:
    """Bring a file, and say what it holds. source: its bytes from an offset on. A `.part` that is there is continued.

    Raises BackendError where it cannot be had or holds something else, and then nothing is replaced.
    """
    part = path.with_name(path.name + PART)
    opened: list[int] = []

    def progress(done: int) -> None:
        listener.progress(path.name, done, wanted.size)

    def receive() -> None:
        offset = _size(part)
        opened.append(offset)
        if offset < wanted.size or not offset:
            _receive(source, part, offset=offset, size=wanted.size, progress=progress, clock=persistence.clock)

    try:
        for _ in range(2):
            opened.clear()
            persist(receive, persistence, listener, part)
            if content := wanted.read(part):
                _finish(part, path)
                return content
            part.unlink()
            if opened == [0]:  # it came in one piece
                break
            listener.say(f"The parts of {path.name} do not fit together. It is fetched from its beginning.")
    except OSError as error:
        raise BackendError(
            f"{part} cannot be written: {error.strerror}. What is there stays; the same command goes on from it."
        ) from None
    raise _unlike(path.name)


def _size(part: Path) -> int:
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


def _unlike(name: str) -> BackendError:
    return BackendError(f"The hub has other bytes for {name} than it said: nothing was replaced.")


def _receive(
    source: Callable[[int], HTTPResponse],
    part: Path,
    *,
    offset: int,
    size: int,
    progress: Callable[[int], None],
    clock: Callable[[], float],
) -> None:
    """Append what is missing, as far as the connection holds. Raises Passing, BackendError, and OSError of the disk."""
    try:
        answer = source(offset)
    except BeyondEnd:
        part.unlink(missing_ok=True)
        raise
    with answer, part.open("ab", buffering=0) as file:
        start, total = _extent(answer)
        if total not in (None, size):
            raise _unlike(part.name.removesuffix(PART))
        if start not in (0, offset):
            file.truncate(0)
            raise Passing("The hub sends another piece than was asked for")
        file.truncate(start)  # to nothing where the server begins at the first byte in spite of what it was asked
        done = start
        progress(done)
        for block in blocks(answer, clock):
            done += len(block)
            if done > size:
                file.truncate(0)
                raise _unlike(part.name.removesuffix(PART))
            _write(file, block)
            progress(done)
        os.fsync(file.fileno())
    if done < size:
        raise Passing("The connection to the hub broke")


def _extent(answer: HTTPResponse) -> tuple[int, int | None]:
    """Where an answer begins, and how long its file is if it says so."""
    if answer.status == _PARTIAL:
        found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if not found:
            raise Passing("The hub does not say which piece it sends")
        return int(found[1]), None if found[2] == "*" else int(found[2])
    return 0, answer.length


def _write(file: BinaryIO, block: bytes) -> None:
    """All of it: a disk that is nearly full takes a piece, and refuses the rest. Raises OSError."""
    left = memoryview(block)
    while left:
        left = left[file.write(left) :]


def _finish(part: Path, path: Path) -> None:
    """Give a whole file its name, so that it keeps it even if the power goes now."""
    with suppress(PermissionError):  # a disk that knows no modes
        part.chmod(READABLE)
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
