"""The operator's own voices: recordings in a folder, and what is written about them.

    VOICE_ASSET_DIR/
        standard/alloy.wav      what an engine that can clone makes OpenAI's alloy from
        elite/anna.wav          a voice called anna
        elite/anna.json         what there is to say of it; a config.json beside it says it for all that have no own
    voices.json                 "anna": "elite/anna.wav", or an object with `file` and the same; this one wins

`folder` knows the files, `notes` what is written in them, `reading` makes voices of both. Everything here blocks.
"""

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from audio.decode import kind_of
from core.environment import PROJECT
from core.errors import InvalidValue, TooLarge
from core.files import stamp_of, write_whole
from core.settings import SpeechSettings
from core.speech import Voice
from voices.folder import FOLDER, MAX_FILE_BYTES, Folder
from voices.library import OPENAI_NAMES, folded
from voices.notes import BadEntry, Notes, notes_for_new
from voices.reading import Custom, Reader, Reading, voice_id_of
from voices.sample import reference

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """What a new reading made different: names that there are now, that are none for a reason, that are gone."""

    loaded: tuple[str, ...]
    failed: Mapping[str, str]
    removed: tuple[str, ...]


class Collection:
    """Owner of the folder. One change at a time; a reading is replaced as a whole, so that nobody sees half of one.

    Where a method takes `taken`, those are names of further voices that are not the operator's.
    """

    def __init__(self, root: Path, manifest: Path, *, standard: frozenset[str]) -> None:
        """root: VOICE_ASSET_DIR. manifest: voices.json. standard: names that are others' voices', whose recordings
        may lie here too.
        """
        self._folder = Folder(root, manifest)
        self._standard = standard
        self._reading = Reading()
        self._lock = threading.Lock()

    @property
    def voices(self) -> Mapping[str, Custom]:
        """By id, as last read or changed; each time another object."""
        return self._reading.voices

    @property
    def standard(self) -> Mapping[str, Custom]:
        """What the names that are others' are made from, by id, as last read."""
        return self._reading.standard

    def reload(self, *, taken: frozenset[str] = NOBODY) -> Change:
        """Read everything again."""
        with self._lock:
            self._folder.tidy()
            before = self._reading
            after = Reader(self._folder, before).read(standard=self._standard, taken=self._standard | taken)
            self._reading = after
        gone = tuple(name for name in before.voices if name not in after.voices)
        return Change(tuple(after.voices), after.failed, gone)

    def holds(self, file: Path) -> bool:
        """Whether a file lies in the folder already, so that adding it would replace it by itself."""
        return os.path.dirname(os.path.realpath(file)) == os.path.realpath(self._folder.root / FOLDER)

    def add(self, name: str, data: bytes, notes: Notes, *, taken: frozenset[str] = NOBODY) -> Custom:
        """Keep a recording as a voice, in place of an earlier one of that name.

        Raises BadSample, InvalidValue, TooLarge; OSError where it cannot be written, and nothing new is there then.
        """
        try:
            voice_id = voice_id_of(name, self._standard | taken)
        except BadEntry as error:
            raise InvalidValue(f"Invalid 'name': {error}", param="name") from None
        if len(data) > MAX_FILE_BYTES:
            raise TooLarge(f"A recording may have {MAX_FILE_BYTES // 2**20} MiB at most.", param="audio_sample")
        reference(data, param="audio_sample")
        notes = notes.model_copy(update={"created_at": int(time.time())})
        with self._lock:
            earlier = self._own_files(voice_id, param="name")
            custom = self._new(voice_id, kind_of(data).name, notes)
            written = {custom.path, custom.path.with_suffix(".json")}
            _write(custom.path, data, notes)
            sound = {**self._reading.sound, custom.path: stamp_of(custom.path.stat())}
            self._reading = replace(self._reading, voices={**self.voices, voice_id: custom}, sound=sound)
            for path in earlier:
                if path not in written:
                    path.unlink(missing_ok=True)
        return custom

    def remove(self, name: str) -> None:
        """Delete a voice and what is written about it.

        Raises KeyError where there is none, InvalidValue where the operator's voices.json names it.
        """
        voice_id = folded(name)
        with self._lock:
            left = {known: custom for known, custom in self.voices.items() if known != voice_id}
            if len(left) == len(self.voices):
                raise KeyError(voice_id)
            for path in self._own_files(voice_id, param="id"):
                path.unlink(missing_ok=True)
            self._reading = replace(self._reading, voices=left)

    def _own_files(self, voice_id: str, *, param: str) -> list[Path]:
        """What there is of a voice in the folder. Raises InvalidValue where it is voices.json that speaks of it."""
        try:
            entries = self._folder.entries()
        except BadEntry as error:
            raise InvalidValue(f"The server's voices.json: {error}", param=param) from None
        files, named = self._folder.files_of(voice_id), self._folder.named(entries)
        if voice_id in map(folded, entries) or any(os.path.realpath(path) in named for path in files):
            raise InvalidValue("voices.json names this voice, or its recording; change it there.", param=param)
        return files

    def _new(self, voice_id: str, kind: str, notes: Notes) -> Custom:
        """A voice as a reading would find it once it is written. Raises InvalidValue where none would."""
        folder = self._folder.root / FOLDER
        path = folder / f"{voice_id}.{kind}"
        try:
            shown = f"{self._folder.shown(folder)}/{path.name}"
            known = notes_for_new(notes.model_copy(update={"file": f"{FOLDER}/{path.name}"}), path, self._folder.root)
        except BadEntry as error:
            raise InvalidValue(f"The server's folder of voices does not take it: {error}") from None
        return Custom(Voice(voice_id, voice_id, known.language, shown), path, known)


def open_collection(settings: SpeechSettings) -> Collection:
    """The operator's voices as settings place them; nothing has been read yet."""
    root = PROJECT / settings.voice_asset_dir
    return Collection(root, PROJECT / "voices.json", standard=frozenset(OPENAI_NAMES))


def _write(path: Path, data: bytes, notes: Notes) -> None:
    """A recording, and then what is written about it. Raises OSError, and then leaves no new recording."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    try:
        write_whole(path, [data])
        write_whole(path.with_suffix(".json"), [notes.model_dump_json(exclude_defaults=True).encode()])
    except OSError:
        if is_new:
            path.unlink(missing_ok=True)
        raise
