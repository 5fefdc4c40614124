"""weights.lock: what was downloaded into a folder, byte for byte, and under which licence."""

import hashlib
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from core.files import open_plain, write_whole

FILE_NAME = "weights.lock"

READABLE = 0o644
"""Mode of weights and of what is written about them: whoever serves need not be who fetched them."""

MAX_LOCK_BYTES = 2**20

_BLOCK_BYTES = 2**20

Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Commit: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
"""A commit, or the name that git has for a content."""

Size: TypeAlias = Annotated[int, Field(ge=0, le=2**50)]
"""Bytes of a file."""

FileName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.]*$")]
"""It names a file in the folder, and nothing outside of it."""


class Content(BaseModel):
    """What a file is to hold.

    sha256: None until the file came, where the hub does not tell. blob: git's name of the content.
    """

    model_config = ConfigDict(frozen=True)

    size: Size
    sha256: Sha256 | None = None
    blob: Commit | None = None

    def has_size_of(self, path: Path) -> bool:
        """Whether a file is there, and of this size."""
        try:
            return path.is_file() and path.stat().st_size == self.size
        except OSError:  # nothing there may be looked at
            return False

    def read(self, path: Path) -> "Content | None":
        """This content with its sha256, where a file is there and holds it; else None. Reads all of it.

        Raises OSError.
        """
        if not self.has_size_of(path):
            return None
        sha256, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                sha256.update(block)
                if self.sha256 is None:
                    blob.update(block)
        if self.sha256 is None:
            fits = self.blob is None or blob.hexdigest() == self.blob
        else:
            fits = sha256.hexdigest() == self.sha256
        return self.model_copy(update={"sha256": sha256.hexdigest()}) if fits else None


class Lock(BaseModel):
    """All files of a release, as they were when it was first fetched.

    licence_accepted: the one that somebody said yes to; None where it asks for no yes.
    """

    model_config = ConfigDict(frozen=True)

    repository: str
    commit: Commit
    licence_accepted: str | None = None
    files: dict[FileName, Content]

    def with_file(self, name: str, content: Content) -> "Lock":
        """The same with another content of one file."""
        return self.model_copy(update={"files": {**self.files, name: content}})

    def write(self, folder: Path) -> None:
        """Keep it. Raises OSError."""
        text = self.model_dump_json(indent=2, exclude_none=True)
        write_whole(folder / FILE_NAME, [text.encode(), b"\n"], mode=READABLE)


def read_lock(folder: Path) -> Lock | None:
    """What is remembered of a folder; None where nothing is, or nothing that can be read."""
    try:
        with open_plain(folder / FILE_NAME, follows_links=True) as file:
            return Lock.model_validate_json(file.read(MAX_LOCK_BYTES))
    except (OSError, ValidationError):
        return None
