"""Who can speak with the engine that runs: names to voices, and voices to what they are made from."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from backends.latents import forget
from core.errors import BadSample, CloningNotSupported, NotFound, Unavailable, VoiceNotRecorded, place_of
from core.events import Events
from core.speech import Reference, SpeechRequest, Traits, Voice
from core.threads import in_thread
from voices.collection import Change, Collection
from voices.library import Library, folded
from voices.notes import Notes
from voices.reading import Custom
from voices.recordings import Recordings
from voices.uploads import SAMPLE_FIELD


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
        desk: Executor,
        latents: Path | None = None,
    ) -> None:
        """library: OpenAI's names. traits: of the engine, None as long as it loads. latents: where engines keep voices.

        threads: where a voice is read when it is spoken in. desk: where the operator's voices are read and changed,
        which takes seconds where there are many; nobody who speaks should wait behind it.
        """
        self._library = library
        self._collection = collection
        self._recordings = Recordings()
        self._traits = traits
        self._events = events
        self._threads = threads
        self._desk = desk
        self._latents = latents
        self._opening: asyncio.Task[None] | None = None
        self._known: tuple[Traits, Library, Mapping[str, Custom]] | None = None
        self.changed = asyncio.Event()
        """Set when the operator's voices were read, or one was added; cleared by who acts on it."""

    def open(self) -> None:
        """Begin to read the operator's voices."""
        self._opening = asyncio.create_task(self._read_first())

    async def _read_first(self) -> None:
        try:
            await self.reload()
        except Exception as error:  # the edge of a task of its own: everybody still speaks in the other voices
            self._events.voices_lost(reason=place_of(error))

    async def close(self) -> None:
        """Wait until nothing is read any more."""
        await self.wait()

    @property
    def is_read(self) -> bool:
        """Whether the operator's voices have been looked at for the first time."""
        return self._opening is None or self._opening.done()

    async def wait(self) -> None:
        """Until the operator's voices have been looked at for the first time, whatever was found."""
        if self._opening:
            await asyncio.wait({self._opening})

    @property
    def all(self) -> tuple[Voice, ...]:
        """All voices that a request can name, the default first."""
        return self._at_hand(self._traits())[0].all

    def _at_hand(self, traits: Traits | None) -> tuple[Library, Mapping[str, Custom]]:
        """All names, and those of them that are the operator's, of one moment: a thread may change them meanwhile.

        Put together anew only where the engine or the operator's voices are others than last time.
        """
        if traits is None:
            return self._library, {}
        customs = self._collection.voices
        if self._known is None or self._known[0] is not traits or self._known[2] is not customs:
            own = [custom.voice for custom in customs.values()] if traits.can_clone else []
            self._known = traits, self._library.with_more([*traits.voices, *own]), customs
        return self._known[1:]

    async def resolve(self, request: SpeechRequest, traits: Traits) -> tuple[Voice, Reference]:
        """The voice of a request, and what it is made from. Raises UnknownVoice, CloningNotSupported, BadSample."""
        library, customs = self._at_hand(traits)
        voice = library.resolve(request.voice)
        if request.sample is not None:
            _check_cloning(traits, SAMPLE_FIELD)
            return voice, _checked(traits, await request.sample.read(request.transcript), param="transcript")
        custom = customs.get(voice.id)
        if custom is None or custom.voice != voice:
            custom = self._collection.standard.get(voice.id) if traits.can_clone else None
        if custom is not None:
            return voice, _checked(traits, await self._reference(custom), param="voice")
        if traits.can_clone and all(voice.id != own.id for own in traits.voices):
            raise VoiceNotRecorded(
                f"The {traits.backend} backend has no recording of this voice. ./setup_assets.sh makes those of "
                "OpenAI's names; POST /v1/audio/voices adds others.",
                param="voice",
            )
        return voice, Reference(voice.id)

    @property
    def recorded(self) -> tuple[str, ...]:
        """Ids of the voices that have a recording here, as last read."""
        return tuple({**self._collection.standard, **self._collection.voices})

    async def reference(self, voice_id: str) -> Reference:
        """What a recorded voice is made from. Raises KeyError where it is gone, BadSample where it is no good."""
        return await self._reference({**self._collection.standard, **self._collection.voices}[voice_id])

    async def _reference(self, custom: Custom) -> Reference:
        found = await in_thread(self._threads, self._recordings.get, custom)
        return replace(found, is_kept=True)

    async def find(self, name: str) -> tuple[Voice, Notes]:
        """A voice, and what is written about it; one of the operator's even where the engine cannot speak in it.

        Raises NotFound.
        """
        await self.wait()
        voice_id = folded(name)
        custom = self._collection.voices.get(voice_id)
        known = next((voice for voice in self.all if folded(voice.id) == voice_id), None)
        voice = known or (custom.voice if custom else None)
        if voice is None:
            raise NotFound("No such voice.", param="id")
        return voice, custom.notes if custom is not None and custom.voice == voice else Notes()

    async def reload(self) -> Change:
        """Read the operator's voices again."""
        change = await in_thread(self._desk, self._collection.reload, taken=_own_names(self._traits()))
        self._events.voices_read(loaded=len(change.loaded), failed=len(change.failed))
        self.changed.set()
        return change

    async def add(self, name: str, sample: bytes, notes: Notes) -> Custom:
        """Keep a recording as a voice. Raises CloningNotSupported, BadSample, InvalidValue, TooLarge, Unavailable."""
        traits = self._traits()
        if traits is None:
            raise Unavailable("The speech engine is still loading; whether it can clone voices is not known yet.")
        _check_cloning(traits, "audio_sample")
        await self.wait()
        custom = await in_thread(self._desk, self._collection.add, name, sample, notes, taken=_own_names(traits))
        self.changed.set()
        return custom

    async def remove(self, name: str) -> None:
        """Delete one of the operator's voices, and what engines made of it.

        Raises NotFound, InvalidValue where it is not the server's to delete.
        """
        await self.wait()
        try:
            await in_thread(self._desk, self._remove, name)
        except KeyError:
            raise NotFound("There is no voice of this name that was added.", param="id") from None

    def _remove(self, name: str) -> None:
        custom = self._collection.voices.get(folded(name))
        key = ""
        with suppress(BadSample):  # a recording that is gone, or no good any more
            key = self._recordings.get(custom).key if custom else ""
        self._collection.remove(name)
        if self._latents and key:
            forget(self._latents, key)


def _own_names(traits: Traits | None) -> frozenset[str]:
    """Of the engine's own voices, as far as they are known."""
    return frozenset(folded(voice.id) for voice in traits.voices) if traits else frozenset()


def _checked(traits: Traits, made: Reference, *, param: str) -> Reference:
    """A voice that the engine can speak in. Raises VoiceNotRecorded."""
    if traits.needs_transcript and not made.transcript:
        raise VoiceNotRecorded(
            f"The {traits.model} model must know what is said in a voice's recording: its transcript is missing.",
            param=param,
        )
    return made


def _check_cloning(traits: Traits, param: str) -> None:
    if not traits.can_clone:
        raise CloningNotSupported(
            f"The {traits.backend} backend cannot clone voices; coqui, voxcpm and voxcpm-vllm can (TTS_BACKEND).",
            param=param,
        )
