"""The operator's files as they are on disk now: recordings in a folder, and voices.json, which names some of them."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from core.errors import BadSample
from core.files import open_plain, remove_left_behind
from voices.library import folded
from voices.notes import BadEntry, read_json

FOLDER = "elite"
STANDARD = "standard"

SUFFIXES = (".wav", ".flac", ".mp3", ".ogg", ".m4a", ".webm", ".aac")

MAX_FILE_BYTES = 25 * 2**20

MAX_ENTRIES = 10_000
"""In voices.json. Each of them is looked for on disk, which takes a second for all of these."""

_ASTRAY = "Its file should be a plain one, and lie below VOICE_ASSET_DIR."


class Folder:
    """Where everything lies. Knows no voices, only files; everything here blocks."""

    def __init__(self, root: Path, manifest: Path) -> None:
        """root: VOICE_ASSET_DIR. manifest: voices.json."""
        self.root = root
        self.manifest = manifest

    def entries(self) -> dict[str, object]:
        """What voices.json says of each name. Raises BadEntry where nobody can tell."""
        try:
            entries = read_json(self.manifest)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise BadEntry("It is no JSON that can be read.") from None
        if not isinstance(entries, dict):
            raise BadEntry("It should be an object of names.")
        if len(entries) > MAX_ENTRIES:
            raise BadEntry(f"It has {len(entries)} names; {MAX_ENTRIES} are looked at.")
        return {name: {"file": entry} if isinstance(entry, str) else entry for name, entry in entries.items()}

    def named(self, entries: Mapping[str, object]) -> set[str]:
        """Where the files that voices.json names really lie."""
        files = (entry.get("file") for entry in entries.values() if isinstance(entry, dict))
        return {os.path.realpath(self.root / file) for file in files if isinstance(file, str) and "\0" not in file}

    def loose(self, entries: Mapping[str, object]) -> list[Path]:
        """Recordings that voices.json does not name, by name. Raises OSError where the folder cannot be read."""
        named = self.named(entries)
        return [
            path for path in self._listed() if path.suffix.lower() in SUFFIXES and os.path.realpath(path) not in named
        ]

    def files_of(self, voice_id: str) -> list[Path]:
        """Recordings of a voice, and what is written beside them, however the files are spelled. Raises OSError."""
        kinds = (*SUFFIXES, ".json")
        found = [path for path in self._listed() if folded(path.stem) == voice_id and path.suffix.lower() in kinds]
        return [path for path in found if not path.is_dir()]

    def _listed(self) -> list[Path]:
        try:
            return sorted(path for path in (self.root / FOLDER).iterdir() if not path.name.startswith("."))
        except FileNotFoundError:
            return []

    def locate(self, file: str) -> Path:
        """Where a recording lies, if it does below the folder. Raises BadEntry."""
        if not file or "\0" in file:
            raise BadEntry("It names no file.")
        path = self.root / file
        self.shown(path)
        try:
            is_plain = stat.S_ISREG(path.stat().st_mode)
        except OSError:
            raise BadEntry("Its file is not there.") from None
        if not is_plain:
            raise BadEntry(_ASTRAY)
        return path

    def shown(self, path: Path) -> str:
        """Where a file really lies, seen from the folder. Raises BadEntry where that is not below it."""
        real, root = Path(os.path.realpath(path)), os.path.realpath(self.root)
        if not real.is_relative_to(root):
            raise BadEntry(_ASTRAY)
        return spelled(real.relative_to(root).as_posix())

    def tidy(self) -> None:
        """Remove recordings that killed processes left half written."""
        for name in (FOLDER, STANDARD):
            remove_left_behind(self.root / name)


def read_file(path: Path) -> bytes:
    """A recording. Raises BadSample where it cannot be read, or is too large."""
    try:
        with open_plain(path, follows_links=True) as file:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > MAX_FILE_BYTES else file.read(MAX_FILE_BYTES + 1)  # it may be growing
    except OSError:
        raise BadSample("The recording cannot be read.") from None
    if max(size, len(data)) > MAX_FILE_BYTES:
        raise BadSample(f"The recording should have {MAX_FILE_BYTES // 2**20} MiB at most.")
    return data


def spelled(name: str) -> str:
    """A name that everybody can be told: of a file, it may be bytes that are no text."""
    return name.encode(errors="backslashreplace").decode()
