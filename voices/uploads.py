"""Recordings that requests bring: how much memory all of them may take, and the one thread that reads them.

An upload counts the bytes of its request as they come, is read once, and counts its samples from then on. Those of the
same content are read once and held once.
"""

import hashlib
from collections import Counter
from concurrent.futures import Executor
from dataclasses import replace
from weakref import WeakValueDictionary

from core.errors import Overloaded
from core.speech import Reference, Samples
from core.threads import in_thread
from voices.sample import reference

SAMPLE_FIELD = "custom_voice_file"
"""What errors call the recording that came with a request."""


class Uploads:
    """Owner of the room that there is. Called on the event loop."""

    def __init__(self, max_bytes: int, thread: Executor) -> None:
        """max_bytes: that all of them may take. thread: of one worker, so that no speech waits behind a recording, and
        no recording is read twice at once.
        """
        self._max_bytes = max_bytes
        self._thread = thread
        self._bytes = 0
        self._holders: Counter[str] = Counter()
        self._samples: WeakValueDictionary[str, Samples] = WeakValueDictionary()

    @property
    def held(self) -> int:
        """Bytes that they take now."""
        return self._bytes

    def begin(self) -> "Upload":
        """The upload of a request that comes; close it in any case."""
        return Upload(self)

    def reserve(self, size: int) -> None:
        """Count bytes. Raises Overloaded where others leave no room for them."""
        if self._bytes and self._bytes + size > self._max_bytes:
            raise Overloaded("Too many recordings are being held in memory; try again.")
        self._bytes += size

    def release(self, size: int) -> None:
        """Give back what was reserved."""
        self._bytes -= size

    async def read(self, data: bytes) -> Reference:
        """What a recording holds. Raises BadSample."""
        return await in_thread(self._thread, self._read, data)

    def _read(self, data: bytes) -> Reference:
        key = hashlib.sha256(data).hexdigest()
        sample = self._samples.get(key)
        if sample is not None:
            return Reference(key, sample=sample)
        made = reference(data, param=SAMPLE_FIELD)
        if made.sample is not None:
            self._samples[key] = made.sample
        return made

    def hold(self, made: Reference) -> None:
        """Count the samples of a recording, once for all who hold them. Raises Overloaded."""
        if not self._holders[made.key]:
            self.reserve(_bytes(made))
        self._holders[made.key] += 1

    def drop(self, made: Reference) -> None:
        """One holder less."""
        self._holders[made.key] -= 1
        if not self._holders[made.key]:
            del self._holders[made.key]
            self.release(_bytes(made))


class Upload:
    """What one request brings: nothing, bytes, samples, in that order."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self._reserved = 0
        self._made: Reference | None = None
        self.data: bytes | None = None

    def grow(self, size: int) -> None:
        """Count a request of so many bytes in all, as far as it is known. Raises Overloaded."""
        if size > self._reserved:
            self._uploads.reserve(size - self._reserved)
            self._reserved = size

    def fill(self, data: bytes | None) -> None:
        """Take the recording of a request that has come whole; the rest of it is held no longer."""
        self.data = data
        self._shrink(len(data or b""))

    async def read(self, transcript: str = "") -> Reference:
        """The voice of the recording, whose bytes are let go. Raises BadSample, Overloaded."""
        if self._made is None:
            made = await self._uploads.read(self.data or b"")
            self.fill(None)
            self._uploads.hold(made)
            self._made = made
        return replace(self._made, transcript=transcript)

    def close(self) -> None:
        """Let go of everything. Safe more than once."""
        self.fill(None)
        if self._made is not None:
            made, self._made = self._made, None
            self._uploads.drop(made)

    def _shrink(self, size: int) -> None:
        if size < self._reserved:
            self._uploads.release(self._reserved - size)
            self._reserved = size


def _bytes(made: Reference) -> int:
    return 0 if made.sample is None else made.sample.nbytes
