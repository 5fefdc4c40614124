"""Whole answers on disk, a file each; what is not whole, not ours, too old or too much is as good as not there.

A file is a line that says what it is, a line of JSON (`Label`, size and digest of the audio), and the audio. It is
written under another name and renamed when it is whole; another server may use the same folder. All calls block.
"""

import errno
import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import TypeAdapter

from core.errors import place_of
from core.files import Stamp, is_left_behind, open_plain, stamp_of, write_whole

MAGIC = b"uttera-tts audio 1\n"

MAX_LABEL_BYTES = 4096

PIECE_BYTES = 2**17
"""How much of a file is read at a time."""

SMALL_BYTES = 2**20
"""Audio up to this size is handed over whole; of larger ones, pieces are read as they are asked for."""

KEPT_SHARE = 0.9
"""How full the cache is after the least recently used answers have gone."""

_NAME = re.compile(r"[0-9a-f]{32}\.audio")


@dataclass(frozen=True, slots=True)
class Label:
    """What has to be told of an answer beside its bytes. sample_rate: Hz. audio_s: seconds. chars: of its text."""

    mime: str
    sample_rate: int
    audio_s: float
    chars: int


@dataclass(frozen=True, slots=True)
class _Head(Label):
    """voice: id of the one who speaks, so that what was spoken can go with it."""

    size: int
    digest: str
    voice: str = ""


_HEAD = TypeAdapter(_Head)


@dataclass(frozen=True, slots=True)
class Usage:
    """How full the cache is."""

    answers: int = 0
    bytes: int = 0


class Hit:
    """An answer that was found. Its pieces can be read once; close it in any case."""

    def __init__(self, head: _Head, stamp: Stamp, pieces: list[bytes], file: BinaryIO | None) -> None:
        """pieces: all of it, where file is None; else `file` stands at its beginning."""
        self.label: Label = head
        self.size = head.size
        self.digest = head.digest
        self.stamp = stamp
        self._left = head.size
        self._head = head
        self._all = pieces
        self._pieces = iter(pieces)
        self._file = file

    def again(self) -> "Hit":
        """The same, to be read by another one. Only where it is at hand."""
        return Hit(self._head, self.stamp, self._all, None)

    @property
    def is_at_hand(self) -> bool:
        """Whether the next piece is in memory, so that `next` does not block."""
        return self._file is None

    def next(self) -> bytes:
        """The next piece; empty after the last. Raises OSError where the disk fails, or somebody has cut the file."""
        if self._file is None:
            return next(self._pieces, b"")
        piece = self._file.read(PIECE_BYTES)
        self._left -= len(piece)
        if not piece and self._left:
            raise OSError(errno.EIO, "The file is shorter than it was.")
        return piece

    def close(self) -> None:
        """Let go of the file. Safe more than once."""
        if self._file is not None:
            self._file.close()


class Store:
    """A folder of answers."""

    def __init__(self, folder: Path, *, ttl_s: float, max_bytes: int, on_trouble: Callable[[str], None]) -> None:
        """ttl_s, max_bytes: age and size beyond which answers go.

        on_trouble: told kind and place of what hinders the cache, from any thread; nothing raises for it.
        """
        self._folder = folder
        self._ttl_s = ttl_s
        self._max_bytes = max_bytes
        self._on_trouble = on_trouble
        self._usage = Usage()
        self._lock = threading.Lock()

    @property
    def usage(self) -> Usage:
        """As last counted, with what was put since."""
        return self._usage

    def get(self, key: str) -> Hit | None:
        """The answer of a key, checked to the last byte; None where there is none."""
        path = self._path(key)
        try:
            file = open_plain(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._on_trouble(place_of(error))
            return None
        hit = None
        try:
            stamp = stamp_of(os.fstat(file.fileno()))
            if self._is_young(stamp):
                hit = self._opened(file, key, stamp)
                with suppress(OSError):  # a folder that can only be read
                    self._touch(key, stamp)
        except (OSError, ValueError) as error:
            self._on_trouble(place_of(error))
        if hit is None or hit.is_at_hand:
            file.close()
        return hit

    def use(self, key: str) -> Stamp | None:
        """Say that the file of a key is used, and which one it is now; None where it is gone or too old."""
        try:
            stamp = stamp_of(os.stat(self._path(key), follow_symlinks=False))
            if self._is_young(stamp):
                self._touch(key, stamp)
                return stamp
        except OSError:
            pass
        return None

    def _touch(self, key: str, stamp: Stamp) -> None:
        """It is used now, and not younger for it."""
        os.utime(self._path(key), ns=(time.time_ns(), stamp[1]))

    def _is_young(self, stamp: Stamp) -> bool:
        return time.time() - stamp[1] / 1e9 <= self._ttl_s

    def _opened(self, file: BinaryIO, key: str, stamp: Stamp) -> Hit:
        """What an open file holds. Raises ValueError where that is not what was written."""
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError("This is no answer.")
        head = _HEAD.validate_json(file.readline(MAX_LABEL_BYTES))
        begin = file.tell()
        digest, size, pieces = _digest(key, head), 0, []
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
            size += len(piece)
            if size <= SMALL_BYTES:
                pieces.append(piece)
        if (size, digest.hexdigest()) != (head.size, head.digest):
            raise ValueError("This answer is damaged.")
        if size <= SMALL_BYTES:
            return Hit(head, stamp, pieces, None)
        file.seek(begin)
        return Hit(head, stamp, [], file)

    def put(self, key: str, label: Label, pieces: Iterable[bytes], *, voice: str = "") -> bool:
        """Keep an answer in a voice; whether it is kept. One that is larger than the whole cache is not."""
        audio = b"".join(pieces)
        if len(audio) > self._max_bytes:
            return False
        digest = _digest(key, label)
        digest.update(audio)
        head = _Head(**asdict(label), size=len(audio), digest=digest.hexdigest(), voice=voice)
        try:
            # Nobody but its owner looks into a folder of ours: a sound is as private as its text. One that was there
            # before keeps its mode, for it may be anybody's; the files are private in any case.
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._path(key)
            before = path.stat().st_size if path.exists() else None
            write_whole(path, [MAGIC, _HEAD.dump_json(head), b"\n", audio], is_synced=False)
            size = path.stat().st_size
        except OSError as error:
            self._on_trouble(place_of(error))
            return False
        with self._lock:
            usage = self._usage
            self._usage = Usage(usage.answers + (before is None), usage.bytes + size - (before or 0))
        if self._usage.bytes > self._max_bytes:
            self.sweep()
        return True

    def sweep(self) -> None:
        """Remove what is too old or too much, and what killed servers left behind; count the rest."""
        found = sorted(self._files(), key=lambda each: each.used_at)
        size = sum(each.size for each in found)
        kept = int(self._max_bytes * KEPT_SHARE) if size > self._max_bytes else size
        count, now = len(found), time.time()
        for each in found:
            if (size > kept or now - each.made_at > self._ttl_s) and self._remove(each.path):
                size, count = size - each.size, count - 1
        with self._lock:
            self._usage = Usage(count, size)

    def forget(self, voice: str) -> None:
        """Remove all answers in a voice. Takes about a second for twenty thousand of them."""
        for each in self._files():
            with suppress(ValueError):
                if _HEAD.validate_json(_head_line(each.path)).voice == voice:
                    self._remove(each.path)
        self.sweep()

    def drop(self, key: str) -> None:
        """Remove one answer."""
        self._remove(self._path(key))

    def clear(self) -> None:
        """Remove all answers, and nothing else that may lie in the folder."""
        for each in self._files():
            if _head_line(each.path):
                self._remove(each.path)

    @property
    def is_exposed(self) -> bool:
        """Whether others may look into the folder. It was not made by us then, and stays as it is."""
        try:
            return bool(self._folder.stat().st_mode & 0o077)
        except OSError:
            return False

    def _files(self) -> Iterator["_File"]:
        """All answers in the folder; scratch files that nobody writes to any more are removed on the way."""
        try:
            entries = list(os.scandir(self._folder))
        except FileNotFoundError:
            return
        except OSError as error:
            self._on_trouble(place_of(error))
            return
        for entry in entries:
            with suppress(OSError):  # another server has just removed it
                stat = entry.stat(follow_symlinks=False)
                if _NAME.fullmatch(entry.name):
                    yield _File(Path(entry.path), stat.st_size, stat.st_mtime, stat.st_atime)
                elif is_left_behind(entry.name, stat.st_mtime):
                    self._remove(Path(entry.path))

    def _remove(self, path: Path) -> bool:
        """Whether it is gone."""
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._on_trouble(place_of(error))
            return False
        return True

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.audio"


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    size: int
    made_at: float
    used_at: float


def _head_line(path: Path) -> bytes:
    """What is told of an answer, as it is written; empty where a file is none."""
    with suppress(OSError), open_plain(path) as file:
        if file.read(len(MAGIC)) == MAGIC:
            return file.readline(MAX_LABEL_BYTES)
    return b""


def _digest(key: str, label: Label) -> "hashlib.blake2b":
    """Of an answer, its key and label taken in: what is told of it is as true as its bytes."""
    spelled = f"{key} {label.mime} {label.sample_rate} {label.audio_s} {label.chars}"
    return hashlib.blake2b(spelled.encode(), digest_size=16)
