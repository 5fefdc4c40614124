"""The parent's end of one child's socket, and what that child has been told."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import cast

from core.speech import Task
from pool.process import Child
from pool.protocol import Frame, FrameReader, Kind, ProtocolError, pack_task, pack_voice

MAX_VOICES, MAX_VOICE_BYTES = 32, 64 * 2**20
"""Recordings that a child keeps, and the bytes of all of them; the one that was longest not spoken in goes first."""


class Link(asyncio.Protocol):
    """It never pauses reading."""

    def __init__(self, hear: "Callable[[Link, Frame], None]", worker: int, child: Child, *, started: float) -> None:
        """hear: called with each frame that comes. worker: number of the child. started: when, by the pool's clock."""
        self.worker = worker
        self.child = child
        self.started = started
        self.reason = ""
        self.is_out_of_memory = False
        self.is_device_fault = False
        self.lost = asyncio.Event()
        self._hear = hear
        self._frames = FrameReader()
        self._transport: asyncio.WriteTransport | None = None
        self._is_wanted = True
        self._voices: OrderedDict[str, int] = OrderedDict()  # key to bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The loop watches the socket now."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's share no class with asyncio's
        if not self._is_wanted:
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Whatever came, cut into frames. A child that sends none is as good as dead."""
        try:
            for frame in self._frames.feed(data):
                self._hear(self, frame)
        except ProtocolError as error:
            self.kill(str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        """The child is gone, or is to go."""
        self.lost.set()

    def send(self, data: bytes) -> None:
        """Queue bytes for the child; lost where it is gone, which the scheduler will hear of."""
        if self._transport is not None:
            self._transport.write(data)

    def start(self, task: Task) -> None:
        """Hand over a task; before it, the recording of its voice, where the child does not have it."""
        key, sample = task.voice.key, task.voice.sample
        if sample is not None:
            if key not in self._voices:
                for frame in pack_voice(key, sample):
                    self.send(frame)
            self._voices[key] = sample.nbytes
            self._voices.move_to_end(key)
            while len(self._voices) > MAX_VOICES or (len(self._voices) > 1 and self._voice_bytes > MAX_VOICE_BYTES):
                oldest, _ = self._voices.popitem(last=False)
                self.send(Frame(Kind.FORGET, 0, oldest.encode()).pack())
        self.send(pack_task(task))

    @property
    def _voice_bytes(self) -> int:
        return sum(self._voices.values())

    def kill(self, reason: str) -> None:
        """End the child now, and let go of it even if it cannot be ended."""
        self.reason = reason
        self.child.kill()
        self.hang_up()

    def hang_up(self) -> None:
        """Close the socket: the child ends."""
        self._is_wanted = False
        if self._transport is not None:
            self._transport.close()
