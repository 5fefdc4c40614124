"""A request with all its names resolved: what exactly is to be spoken, and what it is called in the cache."""

from collections.abc import Hashable
from dataclasses import dataclass, fields
from functools import cache

from audio.formats import CONTAINERS, default_rate
from cache.key import key_of
from core.environment import PROJECT
from core.files import version_of
from core.speech import Params, Reference, SpeechRequest, Traits

RULES = ("text", "audio", "synthesis", "scheduler", "backends")
"""Rooms whose files decide, beside the model, how a text sounds; the scheduler's give each utterance its seed."""

PARAMS = tuple(field.name for field in fields(Params))

LEAST_CHARS_PER_S = 3
"""Nobody speaks slower than this at speed 1, in any language, where there are no digits."""

DIGIT_CHARS = 15
"""A digit, read out, is as long as so many letters more."""


@dataclass(frozen=True, slots=True)
class Order:
    """voice: as resolved. language: as asked for, None where the text is to tell, or else default_language.

    traits: of the engine that will speak. waited_s: for it to load, None where it had. speaker: id of the voice.
    """

    request: SpeechRequest
    voice: Reference
    language: str | None
    traits: Traits
    default_language: str = "en"
    waited_s: float | None = None
    speaker: str = ""

    def wait_s(self, deadline_s: float) -> float | None:
        """Seconds that the first sound may take from now on; None for no limit but the server's own, from now.

        deadline_s: of the server, from when the request came; 0 for none.
        """
        if self.waited_s is None:
            return self.request.max_wait_s
        bounds = [bound for bound in (deadline_s or None, self.request.max_wait_s) if bound is not None]
        return max(0.0, min(bounds) - self.waited_s) if bounds else None

    def key(self) -> str:
        """The same for two requests that sound the same, byte for byte."""
        request, traits = self.request, self.traits
        facts = {
            "rules": learn_rules(),
            "backend": traits.backend,
            "revision": traits.revision,
            "voice": self.voice.key,
            "transcript": self.voice.transcript,  # engines that read it speak otherwise for it
            "language": self.language or f"as told, or {self.default_language}",
            "text": request.text,
            "format": request.format.value,
            # Of these the whole file states its size; of the others a stream has the same bytes.
            "streamed": request.streamed and not CONTAINERS[request.format].is_streamed,
            "sample_rate": request.sample_rate or default_rate(request.format, traits.sample_rate),
            "speed": request.speed,
            "params": {name: getattr(request.params, name) for name in PARAMS},
            "seed": request.seed,
        }
        return key_of(facts)

    def flight(self, key: str, lead_s: float) -> Hashable:
        """The same for those who can hear one answer together while it is made.

        Not those who are ready to wait for other times; nor one who is only served as fast as it plays beside one who
        is not. All of them end with the error that one of them would have had. lead_s: how far ahead one is served.
        """
        weight = len(self.request.text) + DIGIT_CHARS * sum(char.isdigit() for char in self.request.text)
        is_held = self.request.paced and weight > lead_s * LEAST_CHARS_PER_S * self.request.speed
        return key, self.request.max_wait_s, is_held


@cache
def learn_rules() -> str:
    """Their version. The first call reads them all, which takes some milliseconds."""
    return version_of(PROJECT / room for room in RULES)
