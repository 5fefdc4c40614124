"""The words of the field, as frozen values: what is asked for, what is spoken, who speaks, what an engine can do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Samples: TypeAlias = npt.NDArray[np.float32]
"""Mono float32 in [-1, 1], shape (n,); the sample rate travels beside it."""

OPENAI_SAMPLE_RATE = 24_000
"""Hz. What OpenAI's clients assume of headerless pcm, whatever the model makes."""


REFERENCE_RATE = 24_000
"""Hz of the recording that a voice is made from."""


class AudioFormat(StrEnum):
    """The containers that OpenAI's `response_format` names."""

    MP3 = "mp3"
    OPUS = "opus"
    AAC = "aac"
    FLAC = "flac"
    WAV = "wav"
    PCM = "pcm"


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice that a request can name.

    id: lower case, what clients send. language: ISO 639-1, None where the voice speaks whatever the text is in.
    path: sample below the voice folder, as clients of the original servers expect it; empty for a built-in voice.
    """

    id: str
    name: str
    language: str | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a voice is made from: a built-in voice, or a recording of somebody.

    key: the built-in voice's id, or a hash of the recording. transcript: what is said in it, where that is known.
    sample: the recording at REFERENCE_RATE; None for a built-in voice, and where the key alone tells which it is.
    is_kept: whether what an engine makes of it may be written to disk: never for one that a request brought.
    """

    key: str
    transcript: str = ""
    sample: Samples | None = field(default=None, compare=False, repr=False)
    is_kept: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Params:
    """What changes the sound beyond text and voice. None leaves the choice to the backend.

    speed: the backend's own share of the requested speed, 1.0 where it has none. lora: name of an adapter.
    """

    speed: float = 1.0
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float | None = None
    length_penalty: float | None = None
    cfg_value: float | None = None
    lora: str | None = None


OPENING_UTTERANCES = 3
"""Until then a listener has too little ahead to wait for a machine that does several things at once."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """A few words spoken in one breath: the unit of work of a slot.

    text: spoken form, ready for the backend. language: ISO 639-1.
    pause_after_s: silence to put behind it, in seconds at speed 1; 0 for the last one.
    """

    index: int
    text: str
    language: str
    pause_after_s: float = 0.0

    @property
    def is_opening(self) -> bool:
        """One of the first few: sound starts with the first, and runs dry where one of the next is late."""
        return self.index < OPENING_UTTERANCES


@dataclass(frozen=True, slots=True)
class Task:
    """One slot's work: one utterance of one job, in one voice. seed: already derived for this utterance."""

    id: int
    job: int
    utterance: Utterance
    voice: Reference
    params: Params = Params()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Priors:
    """What a backend promises of itself, until the server has seen it.

    rates: seconds of audio a second with 1, 2, ... slots of the device busy. start_s: from spawn to ready.
    memory_bytes: that a worker holds.
    """

    rates: tuple[float, ...] = (1.0,)
    start_s: float = 10.0
    memory_bytes: int = 2 * 10**9


@dataclass(frozen=True, slots=True)
class Traits:
    """What a loaded backend says of itself, once, when it is ready.

    revision: of the weights; part of cache keys. sample_rate: Hz of what `speak` yields. slots: utterances at once.
    languages: ISO 639-1 to the characters that one utterance may hold; the backend cuts its own units where this
        estimate was too high. missing: languages that it could speak, and the sentence that says what to install.
    first_chars: about how long the first utterance should be for sound to start early.
    native_speed: the range in which the backend's own speed sounds right; (1, 1) where it has none.
    can_clone: whether it makes a voice of a recording. needs_transcript: and must know what is said in it.
    gains_from_processes: whether a second process on the same device makes more audio.
    is_sampled: whether what it says is drawn by lot, so that it may go wrong, and come out right with another seed.
    batches: whether its slots are sequences of one engine, each of which makes all others slower.
    loras: names of the adapters that a request may ask for.
    priors: how fast it is, before anything was measured. model, precision: for people.
    """

    backend: str
    revision: str
    sample_rate: int
    slots: int
    languages: Mapping[str, int]
    missing: Mapping[str, str] = field(default_factory=dict)
    voices: tuple[Voice, ...] = ()
    first_chars: int = 20
    native_speed: tuple[float, float] = (1.0, 1.0)
    can_clone: bool = False
    needs_transcript: bool = False
    gains_from_processes: bool = False
    is_sampled: bool = False
    batches: bool = False
    loras: tuple[str, ...] = ()
    priors: Priors = Priors()
    model: str = ""
    precision: str = ""


class Sample(Protocol):
    """A recording that came with a request, for as long as it may take memory."""

    async def read(self, transcript: str = "") -> Reference:
        """The voice of it. Raises BadSample, Overloaded."""

    def close(self) -> None:
        """Let go of it; safe more than once."""


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """What one client wants spoken, checked for type and range; names are resolved later.

    text: as the client sent it. voice: as sent, None for the default. language: as sent (BCP 47 or an engine's code).
    speed: 0.25 to 4. sample_rate: Hz, None for the format's own default.
    streamed: bytes leave while later ones are still being made; otherwise the answer is whole and carries exact sizes.
    paced: the client plays as it reads, so audio need not run far ahead of real time.
    sample: a recording of the voice that came with the request. transcript: what is said in it.
    client: whose request it is: clients share the engine fairly. max_wait_s: refuse rather than start sound later.
    cached: an answer that was made before will do, and this one may be kept.
    """

    text: str
    voice: str | None = None
    language: str | None = None
    format: AudioFormat = AudioFormat.MP3
    speed: float = 1.0
    sample_rate: int | None = None
    streamed: bool = True
    paced: bool = False
    params: Params = Params()
    seed: int | None = None
    sample: Sample | None = field(default=None, repr=False)
    transcript: str = field(default="", repr=False)
    client: str = ""
    max_wait_s: float | None = None
    cached: bool = True
