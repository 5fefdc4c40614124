"""The server at one moment, for whoever asks."""

from collections.abc import Mapping
from dataclasses import dataclass

from cache.cache import CacheView
from core.speech import Traits, Voice
from scheduler.messages import View


@dataclass(frozen=True, slots=True)
class Status:
    """The synthesizer at one moment. state: loading, ready, saturated, degraded, failed or stopping.

    load_score: 0 idle, 1 full. accepts_requests: whether one would be let in. pids: process id of each worker.
    traits: of the engine, None as long as none has loaded. voices: that a request can name, the default first.
    in_flight: answers that are not at their end. waiting: those of them without a slot so far.
    outcomes: how many ended how. cache: None where it is off.
    """

    state: str
    reason: str
    backend: str
    traits: Traits | None
    voices: tuple[Voice, ...]
    pool: View
    load_score: float
    accepts_requests: bool
    pids: Mapping[int, int]
    uptime_s: float
    in_flight: int
    waiting: int
    outcomes: Mapping[str, int]
    cache: CacheView | None

    @property
    def is_ready(self) -> bool:
        """Whether a request would be spoken now."""
        return self.state in ("ready", "saturated", "degraded")
