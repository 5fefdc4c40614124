"""What a backend made of a voice, on disk: by content and revision, so that no other process makes it again.

    STATE_DIR/latents/<revision>/<recording>-<transcript>.safetensors

Only voices that somebody registered are kept here. Files are written by workers, several at once, each whole or not at
all; one that is damaged is as good as none. The least recently used go first.
"""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from backends.base import Prepared
from core.files import remove_left_behind, write_whole
from core.speech import Reference

MAX_FILES, MAX_BYTES = 1000, 256 * 2**20
"""Of all revisions together. XTTS-v2 needs 130 kB for a voice, VoxCPM2 about as much for each 10 s."""

GONE_S = 3600
"""Seconds for which nothing of a voice that was deleted is kept: a worker may be at it, and knows nothing of that."""

_SUFFIX, _GONE = ".safetensors", ".gone"


class Latents:
    """The files of one revision of one model."""

    def __init__(self, root: Path, revision: str) -> None:
        """root: the folder of all revisions. revision: of model and code, which other files would not fit."""
        self._root = root
        self._folder = root / hashlib.sha256(revision.encode()).hexdigest()[:16]

    def read(self, voice: Reference) -> Prepared | None:
        """What was made of a voice; None where nothing is there, or nothing that can be used."""
        path = self._path(voice)
        try:
            found = load_file(path)
            os.utime(path)
        except (OSError, SafetensorError):
            return None
        return found

    def write(self, voice: Reference, prepared: Prepared) -> None:
        """Keep it, if the disk lets us: without it a voice costs a second, and nothing else."""
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path := self._path(voice), [save(dict(prepared))], is_synced=False)
            if _is_gone(self._root / f"{_stem(voice.key)}{_GONE}"):
                path.unlink()
            remove_left_behind(self._folder)
            sweep(self._root)

    def _path(self, voice: Reference) -> Path:
        return self._folder / f"{_stem(voice.key)}-{_stem(voice.transcript)}{_SUFFIX}"


def forget(root: Path, key: str) -> None:
    """Delete what was made of a recording, by whatever model, and what is being made of it. Blocks."""
    with suppress(OSError):
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        (root / f"{_stem(key)}{_GONE}").touch()
    for path in root.glob(f"*/{_stem(key)}-*{_SUFFIX}"):
        with suppress(OSError):
            path.unlink()


def sweep(root: Path, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES) -> None:
    """Delete the least recently used files beyond the bounds, and what was noted of voices long gone. Blocks."""
    for path in root.glob(f"*{_GONE}"):
        if not _is_gone(path):
            path.unlink(missing_ok=True)
    found: list[tuple[float, int, Path]] = []
    for path in root.glob(f"*/*{_SUFFIX}"):
        with suppress(OSError):
            stat = path.stat()
            found.append((stat.st_mtime, stat.st_size, path))
    size = 0
    for number, (_, bytes_, path) in enumerate(sorted(found, reverse=True), 1):
        size += bytes_
        if number > max_files or size > max_bytes:
            with suppress(OSError):
                path.unlink()


def _is_gone(mark: Path) -> bool:
    """Whether there is a fresh mark of a deleted voice."""
    try:
        return time.time() - mark.stat().st_mtime < GONE_S
    except FileNotFoundError:
        return False


def _stem(text: str) -> str:
    """A name for a file that tells nothing of what it stands for."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]
