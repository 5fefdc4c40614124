"""Recordings that were spoken in lately, as voices, in memory. A file that has changed is read again at once."""

import threading
from collections import OrderedDict
from pathlib import Path

from core.errors import BadSample
from core.files import Stamp, stamp_of
from core.speech import Reference
from voices.folder import read_file
from voices.reading import Custom
from voices.sample import reference

MAX_BYTES = 128 * 2**20
"""Of all samples; the least recently used go first."""


class Recordings:
    """Called from several threads; blocks while a file is read."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Path, str], tuple[Stamp, Reference]] = OrderedDict()
        self._bytes = 0

    def get(self, custom: Custom) -> Reference:
        """What a voice is made from, as its file is now. Raises BadSample where that is no good any more."""
        try:
            stamp = stamp_of(custom.path.stat())
        except OSError:
            raise BadSample("The recording of this voice is gone.", param="voice") from None
        key = custom.path, custom.notes.transcript  # with other words to it, a recording makes another voice
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept[0] == stamp:
                self._kept.move_to_end(key)
                return kept[1]
        read = reference(read_file(custom.path), param="voice", transcript=custom.notes.transcript)
        with self._lock:
            self._drop(key)
            self._kept[key] = stamp, read
            self._bytes += _bytes(read)
            while len(self._kept) > 1 and self._bytes > self._max_bytes:
                self._drop(next(iter(self._kept)))
        return read

    def _drop(self, key: tuple[Path, str]) -> None:
        if key in self._kept:
            self._bytes -= _bytes(self._kept.pop(key)[1])


def _bytes(read: Reference) -> int:
    return 0 if read.sample is None else read.sample.nbytes
