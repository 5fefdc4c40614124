"""What is written about a voice: in voices.json, and in files beside its recording."""

import json
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.files import open_plain

MAX_JSON_BYTES = 4 * 2**20
"""More than the notes of a thousand voices have; beyond, a file is none of ours."""

MAX_NOTE_CHARS = 4096

FOR_ALL = "config"
"""Name of the file that speaks for all recordings beside it which have no notes of their own."""


class BadEntry(Exception):
    """It makes no voice; the message says why, to the operator."""


class Notes(BaseModel):
    """What is written about a voice. Other fields are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    file: str = Field(default="", max_length=1024)
    language: str | None = Field(default=None, pattern=r"^[A-Za-z]{2}([-_][A-Za-z\d]{2,8}){0,3}$")
    transcript: str = Field(default="", max_length=MAX_NOTE_CHARS)
    description: str = Field(default="", max_length=MAX_NOTE_CHARS)
    style: str = Field(default="", max_length=1024)
    consent: str = Field(default="", max_length=1024)
    """What says that the speaker agrees: OpenAI's clients name a recording of it."""
    created_at: int = 0

    @property
    def written(self) -> dict[str, object]:
        """Those fields that say something."""
        return self.model_dump(exclude_defaults=True)


def notes_of(fields: object) -> Notes:
    """An entry, checked. Raises BadEntry."""
    try:
        return Notes.model_validate(fields)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the entry"
        raise BadEntry(f"{where}: {error.errors()[0]['msg']}.") from None


def notes_with(notes: Notes, recording: Path, root: Path) -> Notes:
    """What an entry says, and what the files beside its recording say where it is silent; all of them lie below `root`.

    Raises BadEntry.
    """
    for_all = _beside(recording.with_name(f"{FOR_ALL}.json"), root)
    own = _beside(recording.with_suffix(".json"), root)
    return notes_of({**for_all, **own, **notes.written})


def notes_for_new(notes: Notes, recording: Path, root: Path) -> Notes:
    """The same for a recording that nothing is written about so far."""
    return notes_of({**_beside(recording.with_name(f"{FOR_ALL}.json"), root), **notes.written})


def read_json(path: Path) -> object:
    """What a file holds. Raises OSError where it cannot be read, ValueError where that is no JSON, or too much."""
    with open_plain(path, follows_links=True) as file:
        data = file.read(MAX_JSON_BYTES + 1)
    if len(data) > MAX_JSON_BYTES:
        raise ValueError(f"It has more than {MAX_JSON_BYTES} bytes.")
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("It is nested too deeply.") from None


def _beside(path: Path, root: Path) -> dict[str, object]:
    """What a file beside a recording says of it; nothing where it is none of ours, or a link that leads out of `root`:
    clients are told what is written about a voice.
    """
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        return {}
    try:
        fields = read_json(path)
    except (OSError, ValueError):
        return {}
    return {key: value for key, value in fields.items() if key != "file"} if isinstance(fields, dict) else {}
