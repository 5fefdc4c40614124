"""The voices that a request can name."""

from collections.abc import Iterable
from typing import Self

from core.errors import UnknownVoice
from core.speech import Voice

OPENAI_NAMES = (
    "alloy",
    "ash",
    "ballad",
    "cedar",
    "coral",
    "echo",
    "fable",
    "marin",
    "nova",
    "onyx",
    "sage",
    "shimmer",
    "verse",
)
"""Every backend speaks with these, whatever voices of its own it has besides."""


class Library:
    """Voices by name. Immutable: a library with more voices is another one."""

    def __init__(self, default: str, voices: Iterable[Voice] | None = None) -> None:
        """default: the voice of a request that names none. voices: OpenAI's names where not given."""
        found = openai_voices() if voices is None else tuple(voices)
        self._default = folded(default)
        self._voices = {folded(voice.id): voice for voice in found}

    @property
    def all(self) -> tuple[Voice, ...]:
        """Every voice, the default first."""
        return tuple(sorted(self._voices.values(), key=lambda voice: folded(voice.id) != self._default))

    def with_more(self, voices: Iterable[Voice]) -> Self:
        """A library that has these voices too; a name that is taken keeps its voice."""
        known = dict(self._voices)
        for voice in voices:
            known.setdefault(folded(voice.id), voice)
        return type(self)(self._default, known.values())

    def resolve(self, name: str | None) -> Voice:
        """The voice of a name, however it is spelled (`folded`); the default for None. Raises UnknownVoice."""
        voice = self._voices.get(self._default if name is None else folded(name))
        if voice is None:
            raise UnknownVoice(tuple(voice.id for voice in self._voices.values()), is_default=name is None)
        return voice


def openai_voices() -> tuple[Voice, ...]:
    """OpenAI's names: they speak whatever language the text is in."""
    return tuple(Voice(name, name.title(), path=f"standard/{name}.wav") for name in OPENAI_NAMES)


def folded(name: str) -> str:
    """One spelling of a name: lower case, no spaces around it, - for those within."""
    return name.strip().casefold().replace(" ", "-")
