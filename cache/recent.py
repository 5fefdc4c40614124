"""Small answers that were asked for lately, in memory. Each is as good as its file, and goes with it."""

import time
from collections import OrderedDict

from cache.store import Hit, Store

MEMORY_BYTES = 32 * 2**20
"""Of all of them."""

TOUCH_S = 60.0
"""How often a file is told that it is still used."""


class Recent:
    """The least recently used go first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hits: OrderedDict[str, Hit] = OrderedDict()
        self._touched: dict[str, float] = {}
        self._bytes = 0

    def get(self, key: str) -> Hit | None:
        """The answer of a key, if its file is still what it was: that alone is looked up, and takes microseconds."""
        hit = self._hits.get(key)
        if hit is None:
            return None
        if self._store.stamp(key) != hit.stamp:
            self._drop(key)
            return None
        self._hits.move_to_end(key)
        return hit.again()

    def wants_touch(self, key: str) -> bool:
        """Whether it is time to tell the file of a key that it is used; asked when that will be done."""
        now = time.monotonic()
        if now - self._touched.get(key, 0.0) < TOUCH_S:
            return False
        self._touched[key] = now
        return True

    def add(self, key: str, hit: Hit) -> None:
        """Keep one that was just read from its file."""
        if not hit.is_at_hand:
            return
        self._drop(key)
        self._hits[key] = hit
        self._touched[key] = time.monotonic()
        self._bytes += hit.size
        while self._bytes > MEMORY_BYTES:
            self._drop(next(iter(self._hits)))

    def _drop(self, key: str) -> None:
        hit = self._hits.pop(key, None)
        if hit is not None:
            self._bytes -= hit.size
            del self._touched[key]
