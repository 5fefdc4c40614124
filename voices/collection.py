"""The operator's own voices: recordings in a folder, and what is written about them.

    VOICE_ASSET_DIR/
        standard/alloy.wav      what an engine that can clone makes OpenAI's alloy from
        elite/anna.wav          a voice called anna
        elite/anna.json         what there is to say of it; a config.json beside it says it for all that have no own
    voices.json                 "anna": "elite/anna.wav", or an object with `file` and the same; this one wins

One bad entry is told, and takes no other one down. Everything here blocks.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from audio.decode import kind_of
from core.errors import BadSample, InvalidValue
from core.files import open_plain, write_whole
from core.speech import Voice
from voices.sample import reference

FOLDER = "elite"
STANDARD = "standard"

SUFFIXES = (".wav", ".flac", ".mp3", ".ogg", ".m4a", ".webm", ".aac")

MAX_FILE_BYTES = 25 * 2**20

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class Notes(BaseModel):
    """What is written about a voice. Other fields are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    file: str = Field(default="", max_length=1024)
    language: str | None = Field(default=None, pattern=r"^[A-Za-z]{2}([-_][A-Za-z\d]{2,8}){0,3}$")
    transcript: str = Field(default="", max_length=4096)
    description: str = Field(default="", max_length=4096)
    style: str = Field(default="", max_length=1024)
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class Custom:
    """A voice of the operator's own. path: of its recording. is_manifested: voices.json names it."""

    voice: Voice
    path: Path
    notes: Notes
    is_manifested: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found. standard: of the names that are others'. failed: names with the reason why they are no voices."""

    voices: Mapping[str, Custom]
    standard: Mapping[str, Custom]
    failed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """What a new reading made different: names that there are now, that are none for a reason, that are gone."""

    loaded: tuple[str, ...]
    failed: Mapping[str, str]
    removed: tuple[str, ...]


class BadEntry(Exception):
    """It makes no voice; the message says why, to the operator."""


class Collection:
    """Owner of the folder. A reading is replaced as a whole, so that nobody sees half of one."""

    def __init__(self, root: Path, manifest: Path, *, taken: frozenset[str]) -> None:
        """root: VOICE_ASSET_DIR. manifest: voices.json. taken: names that are other voices'."""
        self._root = root
        self._manifest = manifest
        self._taken = taken
        self._reading = Reading({}, {}, {})

    @property
    def voices(self) -> Mapping[str, Custom]:
        """By id, as last read."""
        return self._reading.voices

    @property
    def standard(self) -> Mapping[str, Custom]:
        """What the names that are others' are made from, by id, as last read."""
        return self._reading.standard

    def reload(self) -> Change:
        """Read everything again."""
        before, self._reading = self._reading, self._read()
        gone = tuple(name for name in before.voices if name not in self._reading.voices)
        return Change(tuple(self._reading.voices), self._reading.failed, gone)

    def add(self, name: str, data: bytes, notes: Notes) -> Custom:
        """Keep a recording as a voice, in place of an earlier one of that name. Raises BadSample, InvalidValue."""
        try:
            voice_id = self._id(name)
        except BadEntry as error:
            raise InvalidValue(f"Invalid 'name': {error}", param="name") from None
        known = self.voices.get(voice_id)
        if known is not None and known.is_manifested:
            raise InvalidValue("Invalid 'name': voices.json names this voice; change it there.", param="name")
        reference(data, param="audio_sample")
        folder = self._root / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{voice_id}.json", [notes.model_dump_json(exclude_defaults=True).encode()])
        path = folder / f"{voice_id}.{kind_of(data).name}"
        write_whole(path, [data])
        for suffix in SUFFIXES:  # of an earlier one
            if suffix != path.suffix:
                path.with_suffix(suffix).unlink(missing_ok=True)
        self.reload()
        return self.voices[voice_id]

    def remove(self, voice_id: str) -> None:
        """Delete a voice and what is written about it. Raises KeyError where there is none, InvalidValue where the
        operator's voices.json names it.
        """
        custom = self.voices[voice_id]
        if custom.is_manifested:
            raise InvalidValue("voices.json names this voice; remove it there.", param="id")
        custom.path.unlink(missing_ok=True)
        custom.path.with_suffix(".json").unlink(missing_ok=True)
        self.reload()

    # --- reading

    def _read(self) -> Reading:
        voices: dict[str, Custom] = {}
        failed: dict[str, str] = {}
        try:
            manifested = self._manifested()
        except BadEntry as error:
            manifested, failed = {}, {self._manifest.name: str(error)}
        for name, entry in [*manifested.items(), *self._in_folder(manifested)]:
            try:
                voice_id = self._id(name)
                if voice_id not in voices:
                    voices[voice_id] = self._custom(voice_id, name, entry, is_manifested=name in manifested)
            except (BadEntry, BadSample) as error:
                failed[name] = str(error)
        return Reading(voices, self._standard(failed), failed)

    def _standard(self, failed: dict[str, str]) -> dict[str, Custom]:
        standard = {}
        for name in sorted(self._taken):
            file = f"{STANDARD}/{name}.wav"
            if (self._root / file).exists():
                try:
                    standard[name] = self._custom(name, name, {"file": file}, is_manifested=False)
                except (BadEntry, BadSample) as error:
                    failed[file] = str(error)
        return standard

    def _manifested(self) -> dict[str, object]:
        """What voices.json says."""
        try:
            entries = json.loads(self._manifest.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise BadEntry("It is no JSON that can be read.") from None
        if not isinstance(entries, dict):
            raise BadEntry("It should be an object of names.")
        return {name: {"file": entry} if isinstance(entry, str) else entry for name, entry in entries.items()}

    def _in_folder(self, manifested: Mapping[str, object]) -> Iterator[tuple[str, object]]:
        """Recordings that voices.json does not name."""
        named = {str(entry.get("file")) for entry in manifested.values() if isinstance(entry, dict)}
        with suppress(OSError):
            for path in sorted((self._root / FOLDER).iterdir()):
                file = f"{FOLDER}/{path.name}"
                if path.suffix.lower() in SUFFIXES and file not in named and not path.name.startswith("."):
                    yield path.stem, {"file": file}

    def _custom(self, voice_id: str, name: str, entry: object, *, is_manifested: bool) -> Custom:
        notes = _notes(entry)
        path = self._path(notes.file)
        beside = {**_beside(path.with_name("config.json")), **_beside(path.with_suffix(".json"))}
        told = notes.model_dump(exclude_defaults=True)
        notes = _notes({**beside, **told})
        reference(read_file(path))
        shown = path.relative_to(self._root).as_posix()
        return Custom(Voice(voice_id, name, language=notes.language, path=shown), path, notes, is_manifested)

    def _path(self, file: str) -> Path:
        """Where a recording lies, if it does below the folder."""
        if not file or "\0" in file:
            raise BadEntry("It names no file.")
        path = self._root / file
        try:
            if not path.resolve(strict=True).is_relative_to(self._root.resolve()) or not path.is_file():
                raise BadEntry("Its file should lie below VOICE_ASSET_DIR.")
        except (OSError, RuntimeError):
            raise BadEntry("Its file is not there.") from None
        return path

    def _id(self, name: str) -> str:
        voice_id = name.strip().casefold().replace(" ", "-")
        if not _ID.fullmatch(voice_id):
            raise BadEntry("A name has letters from a to z, digits, - and _, 64 at most.")
        if voice_id in self._taken:
            raise BadEntry("The name is that of another voice.")
        return voice_id


def read_file(path: Path) -> bytes:
    """A recording. Raises BadSample where it cannot be read, or is too large."""
    try:
        with open_plain(path, follows_links=True) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError:
        raise BadSample("The recording cannot be read.") from None
    if len(data) > MAX_FILE_BYTES:
        raise BadSample(f"The recording should have {MAX_FILE_BYTES // 2**20} MiB at most.")
    return data


def _notes(fields: object) -> Notes:
    try:
        return Notes.model_validate(fields)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the entry"
        raise BadEntry(f"{where}: {error.errors()[0]['msg']}.") from None


def _beside(path: Path) -> dict[str, object]:
    """What a file beside a recording says of it; nothing where it is none of ours."""
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return {key: value for key, value in fields.items() if key != "file"} if isinstance(fields, dict) else {}
