"""Files that are there whole or not at all, whenever the process or the power ends."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

SCRATCH_PREFIX, SCRATCH_SUFFIX = ".uttera-", ".new"
"""Of a file that is not whole yet. One that nobody writes to any more belonged to a process that was killed."""


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
