"""Small answers that were asked for lately, in memory. Each is as good as its file, and goes with it."""

from collections import OrderedDict
from dataclasses import dataclass

from cache.store import Hit
from core.clock import Clock
from core.files import Stamp

MEMORY_BYTES = 32 * 2**20
"""Of all of them."""

LOOK_S = 1.0
"""For so long after a look at its file, an answer is taken to be what that file holds."""


@dataclass(slots=True)
class _Kept:
    hit: Hit
    looked_at: float


class Recent:
    """The least recently used go first. No method blocks."""

    def __init__(self, clock: Clock, max_bytes: int = MEMORY_BYTES) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0

    def get(self, key: str) -> Hit | None:
        """The answer of a key, whose file was looked at a moment ago."""
        kept = self._kept.get(key)
        if kept is None or self._clock.now() - kept.looked_at > LOOK_S:
            return None
        self._kept.move_to_end(key)
        return kept.hit.again()

    def has(self, key: str) -> bool:
        """Whether there is one, whatever has become of its file."""
        return key in self._kept

    def confirm(self, key: str, stamp: Stamp | None) -> Hit | None:
        """The answer of a key, if that is its file now; else it is dropped. stamp: None where there is none."""
        kept = self._kept.get(key)
        if kept is None or kept.hit.stamp != stamp:
            self._drop(key)
            return None
        kept.looked_at = self._clock.now()
        return self.get(key)

    def add(self, key: str, hit: Hit) -> None:
        """Keep one that was just read from its file."""
        if not hit.is_at_hand:
            return
        self._drop(key)
        self._kept[key] = _Kept(hit, self._clock.now())
        self._bytes += hit.size
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: str) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.hit.size
