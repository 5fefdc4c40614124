"""Files that are there whole or not at all, whenever the process or the power ends."""

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO

SCRATCH_PREFIX, SCRATCH_SUFFIX = ".uttera-", ".new"
"""Of a file that is not whole yet. One that nobody writes to any more belonged to a process that was killed."""


def open_plain(path: Path, *, follows_links: bool = False) -> BinaryIO:
    """A plain file, to read. Raises OSError for all else: opening a pipe would wait for somebody at its other end."""
    links = 0 if follows_links else getattr(os, "O_NOFOLLOW", 0)
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | links))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "This is no plain file.")
    return file


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Put `parts` in the place of a file, readable by its owner alone. Raises OSError, and then leaves nothing."""
    with NamedTemporaryFile(dir=path.parent, prefix=SCRATCH_PREFIX, suffix=SCRATCH_SUFFIX, delete=False) as file:
        try:
            file.writelines(parts)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(file.name)
            raise


def is_scratch(name: str) -> bool:
    """Whether a file of this name is one that was not whole."""
    return name.startswith(SCRATCH_PREFIX) and name.endswith(SCRATCH_SUFFIX)
