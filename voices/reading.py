"""From the operator's files to voices. One bad entry is told, and takes no other one down."""

import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import BadSample
from core.files import Stamp, stamp_of
from core.speech import Voice
from voices.folder import FOLDER, STANDARD, Folder, read_file, spelled
from voices.library import folded
from voices.notes import FOR_ALL, BadEntry, Notes, notes_of, notes_with
from voices.sample import reference

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Custom:
    """A voice of the operator's own. path: of its recording."""

    voice: Voice
    path: Path
    notes: Notes


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found.

    standard: what the names that are others' are made from. failed: names with the reason why they are no voices.
    sound: the recordings that a voice can be made from, as they were when that was seen.
    """

    voices: Mapping[str, Custom] = field(default_factory=dict)
    standard: Mapping[str, Custom] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    sound: Mapping[Path, Stamp] = field(default_factory=dict)


class Reader:
    """Makes one reading."""

    def __init__(self, folder: Folder, before: Reading) -> None:
        """before: an earlier reading; recordings that have not changed since are not decoded again."""
        self._folder = folder
        self._before = before
        self._voices: dict[str, Custom] = {}
        self._standard: dict[str, Custom] = {}
        self._failed: dict[str, str] = {}
        self._sound: dict[Path, Stamp] = {}

    def read(self, *, standard: frozenset[str], taken: frozenset[str]) -> Reading:
        """Look at everything. standard: names to look for recordings of. taken: names that no entry may have."""
        entries: Mapping[str, object] = {}
        with self._telling(self._folder.manifest.name):
            entries = self._folder.entries()
        for name, entry in entries.items():
            self._take(name, entry, taken, twice=name)
        with self._telling(FOLDER):
            for path in self._folder.loose(entries):
                file = f"{FOLDER}/{path.name}"
                self._take(path.stem, {"file": file}, taken, twice=file)
        for name in sorted(standard):
            file = f"{STANDARD}/{name}.wav"
            with self._telling(file):
                if (self._folder.root / file).exists():
                    self._standard[name] = self._custom(name, name, {"file": file})
        return Reading(self._voices, self._standard, self._failed, self._sound)

    def _take(self, name: str, entry: object, taken: Container[str], *, twice: str) -> None:
        """twice: what to call it where another one has its name."""
        with self._telling(name):
            voice_id = voice_id_of(name, taken)
            if voice_id not in self._voices:
                self._voices[voice_id] = self._custom(voice_id, name, entry)
            else:
                self._failed[spelled(twice)] = f"Another recording is the voice {voice_id} already."

    @contextmanager
    def _telling(self, name: str) -> Iterator[None]:
        """Whatever goes wrong with one entry ends there, and is told under its name."""
        try:
            yield
        except (BadEntry, BadSample) as error:
            self._failed[spelled(name)] = str(error)
        except (OSError, ValueError, RecursionError):
            self._failed[spelled(name)] = "It cannot be read."

    def _custom(self, voice_id: str, name: str, entry: object) -> Custom:
        said = notes_of(entry)
        path = self._folder.locate(said.file)
        notes = notes_with(said, path, self._folder.root)
        self._check(path)
        return Custom(Voice(voice_id, name, notes.language, self._folder.shown(path)), path, notes)

    def _check(self, path: Path) -> None:
        """Raises BadSample where no voice can be made from a recording, OSError where it is gone."""
        stamp = stamp_of(path.stat())
        if self._before.sound.get(path) != stamp:
            reference(read_file(path))
        self._sound[path] = stamp


def voice_id_of(name: str, taken: Container[str]) -> str:
    """What clients call a voice of this name. Raises BadEntry where there can be none."""
    voice_id = folded(name)
    if not _ID.fullmatch(voice_id):
        raise BadEntry("A name has letters from a to z, digits, - and _, 64 at most.")
    if voice_id == FOR_ALL:
        raise BadEntry(f"{FOR_ALL}.json is what is written about all voices; choose another name.")
    if voice_id in taken:
        raise BadEntry("The name is that of another voice.")
    return voice_id
