"""Files that are there whole or not at all, whenever the process or the power ends."""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO, TypeAlias

SCRATCH_PREFIX, SCRATCH_SUFFIX = ".uttera-", ".new"
"""Of a file that is not whole yet. One that nobody writes to any more belonged to a process that was killed."""

STALE_S = 3600.0
"""A file under such a name that was not renamed by then belongs to a process that was killed."""

Stamp: TypeAlias = tuple[int, int, int]
"""What tells a file from another one of its name: inode, time of writing in ns, size."""


def stamp_of(status: os.stat_result) -> Stamp:
    """Of a file."""
    return status.st_ino, status.st_mtime_ns, status.st_size


def open_plain(path: Path, *, follows_links: bool = False) -> BinaryIO:
    """A plain file, to read. Raises OSError for all else: opening a pipe would wait for somebody at its other end."""
    links = 0 if follows_links else getattr(os, "O_NOFOLLOW", 0)
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | links))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "This is no plain file.")
    return file


def write_whole(path: Path, parts: Iterable[bytes], *, is_synced: bool = True, mode: int = 0o600) -> None:
    """Put `parts` in the place of a file, by default readable by its owner alone. Raises OSError, and leaves nothing.

    is_synced: wait until they are on the disk. Without that, a file may be empty after the power was cut, which is
    good enough for one that is checked when it is read.
    """
    with NamedTemporaryFile(dir=path.parent, prefix=SCRATCH_PREFIX, suffix=SCRATCH_SUFFIX, delete=False) as file:
        try:
            with suppress(PermissionError):  # a disk that knows no modes
                os.fchmod(file.fileno(), mode)
            file.writelines(parts)
            if is_synced:
                file.flush()
                os.fsync(file.fileno())
            file.close()
            os.replace(file.name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(file.name)
            raise


def is_left_behind(name: str, written_at: float) -> bool:
    """Whether a file is one that was not whole, and that nobody writes to any more. written_at: s since 1970."""
    is_scratch = name.startswith(SCRATCH_PREFIX) and name.endswith(SCRATCH_SUFFIX)
    return is_scratch and time.time() - written_at > STALE_S


def remove_left_behind(folder: Path) -> None:
    """Remove what killed processes left in a folder. What cannot be removed stays."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if is_left_behind(entry.name, entry.stat(follow_symlinks=False).st_mtime):
                    os.unlink(entry.path)


def version_of(folders: Iterable[Path]) -> str:
    """One name for our own rules: the bytes of all files in these folders, in any order on disk.

    Nobody has to remember to count a version up: a rule that reads otherwise makes other keys.
    """
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".json", ".npz"))
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
