"""Recordings that were spoken in lately, as voices, in memory. A file that has changed is read again at once."""

import threading
from collections import OrderedDict
from pathlib import Path

from core.errors import BadSample
from core.speech import Reference
from voices.collection import Custom, read_file
from voices.sample import reference

MAX_BYTES = 128 * 2**20
"""Of all samples; the least recently used go first."""


class Recordings:
    """Called from several threads; blocks while a file is read."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[Path, tuple[tuple[int, ...], Reference]] = OrderedDict()

    def get(self, custom: Custom) -> Reference:
        """What a voice is made from, as its file is now. Raises BadSample where that is no good any more."""
        try:
            stat = custom.path.stat()
        except OSError:
            raise BadSample("The recording of this voice is gone.", param="voice") from None
        stamp = (stat.st_ino, stat.st_mtime_ns, stat.st_size, hash(custom.notes.transcript))
        with self._lock:
            kept = self._kept.get(custom.path)
            if kept is not None and kept[0] == stamp:
                self._kept.move_to_end(custom.path)
                return kept[1]
        read = reference(read_file(custom.path), param="voice", transcript=custom.notes.transcript)
        with self._lock:
            self._kept[custom.path] = stamp, read
            self._kept.move_to_end(custom.path)
            while len(self._kept) > 1 and sum(map(_bytes, self._kept.values())) > self._max_bytes:
                self._kept.popitem(last=False)
        return read


def _bytes(kept: tuple[tuple[int, ...], Reference]) -> int:
    sample = kept[1].sample
    return 0 if sample is None else sample.nbytes
