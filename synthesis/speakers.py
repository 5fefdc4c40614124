"""Who can speak with the engine that runs: names to voices, and voices to what they are made from."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace

from core.errors import CloningNotSupported, NotFound
from core.events import Events
from core.speech import Reference, SpeechRequest, Traits, Voice
from core.threads import in_thread
from voices.collection import Change, Collection, Custom, Notes
from voices.library import Library
from voices.recordings import Recordings
from voices.sample import reference

SAMPLE_FIELD = "custom_voice_file"
"""What errors call the recording that came with a request."""


class Speakers:
    """OpenAI's names and the engine's own voices; where it can clone, the operator's and one that a request brings."""

    def __init__(
        self,
        library: Library,
        collection: Collection,
        *,
        traits: Callable[[], Traits | None],
        events: Events,
        threads: Executor,
    ) -> None:
        """library: OpenAI's names. traits: of the engine, None as long as it loads. threads: where files are read."""
        self._library = library
        self._collection = collection
        self._recordings = Recordings()
        self._traits = traits
        self._events = events
        self._threads = threads
        self._opening: asyncio.Task[Change] | None = None

    def open(self) -> None:
        """Begin to read the operator's voices."""
        self._opening = asyncio.create_task(self.reload())

    async def close(self) -> None:
        """Wait until nothing is read any more."""
        if self._opening:
            await asyncio.wait({self._opening})

    @property
    def all(self) -> tuple[Voice, ...]:
        """All voices that a request can name, the default first."""
        return self._names(self._traits()).all

    def _names(self, traits: Traits | None) -> Library:
        if traits is None:
            return self._library
        own = [custom.voice for custom in self._collection.voices.values()] if traits.can_clone else []
        return self._library.with_more([*traits.voices, *own])

    async def resolve(self, request: SpeechRequest, traits: Traits) -> tuple[Voice, Reference]:
        """The voice of a request, and what it is made from. Raises UnknownVoice, CloningNotSupported, BadSample."""
        if traits.can_clone and self._opening:
            await asyncio.shield(self._opening)
        voice = self._names(traits).resolve(request.voice)
        if request.sample is not None:
            _check_cloning(traits, SAMPLE_FIELD)
            return voice, await in_thread(self._threads, reference, request.sample, param=SAMPLE_FIELD)
        custom = self._collection.voices.get(voice.id)
        if custom is None or custom.voice != voice:
            custom = self._collection.standard.get(voice.id) if traits.can_clone else None
        if custom is not None:
            found = await in_thread(self._threads, self._recordings.get, custom)
            return voice, replace(found, is_kept=True)
        return voice, Reference(voice.id)

    def find(self, voice_id: str) -> tuple[Voice, Notes]:
        """A voice by its id, and what is written about it. Raises NotFound."""
        voice = next((voice for voice in self.all if voice.id == voice_id), None)
        if voice is None:
            raise NotFound("No such voice.", param="id")
        custom = self._collection.voices.get(voice_id)
        return voice, custom.notes if custom is not None and custom.voice == voice else Notes()

    async def reload(self) -> Change:
        """Read the operator's voices again."""
        change = await in_thread(self._threads, self._collection.reload)
        self._events.voices_read(loaded=len(change.loaded), failed=len(change.failed))
        return change

    async def add(self, name: str, sample: bytes, notes: Notes) -> Custom:
        """Keep a recording as a voice. Raises CloningNotSupported, BadSample, InvalidValue."""
        if traits := self._traits():
            _check_cloning(traits, "audio_sample")
        notes = notes.model_copy(update={"created_at": int(time.time())})
        return await in_thread(self._threads, self._collection.add, name, sample, notes)

    async def remove(self, voice_id: str) -> None:
        """Delete one of the operator's voices. Raises NotFound, InvalidValue where it is not the server's to delete."""
        self.find(voice_id)
        try:
            await in_thread(self._threads, self._collection.remove, voice_id)
        except KeyError:
            raise NotFound("This voice is not one that was added.", param="id") from None


def _check_cloning(traits: Traits, param: str) -> None:
    if not traits.can_clone:
        raise CloningNotSupported(
            f"The {traits.backend} backend cannot clone voices; coqui, voxcpm and voxcpm-vllm can (TTS_BACKEND).",
            param=param,
        )
