"""What travels between the server and a worker: frames of kind, task id and payload.

A frame is 9 bytes of header (kind, task, length; big-endian) and a payload of JSON or raw float32. Down go TASK and
CANCEL, and VOICE before the first task in a voice that is made from a recording, FORGET some time after the last. Up
come PHASE and READY (or BROKEN) once, then for each task AUDIO frames and one of DONE, FAILED, STOPPED, and ALIVE where
there is nothing else to say.
A user's text is a value in JSON on this socket and never anything else.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from core.speech import Params, Priors, Reference, Samples, Task, Traits, Utterance, Voice

MAX_PAYLOAD_BYTES = 2**20
"""A longer payload is a broken or foreign peer; the connection is given up."""

AUDIO_FRAME_SAMPLES = 8192
"""Samples in one AUDIO frame, 32 KiB: small enough that a CANCEL is never far behind."""

VOICE_FRAME_SAMPLES = 2**17
"""Samples in one VOICE frame, 512 KiB."""

_HEADER = struct.Struct(">BII")


class Kind(IntEnum):
    """What a frame says."""

    TASK = 1
    CANCEL = 2
    VOICE = 3
    FORGET = 4
    PHASE = 16
    READY = 17
    BROKEN = 18
    AUDIO = 19
    DONE = 20
    FAILED = 21
    STOPPED = 22
    ALIVE = 23


class ProtocolError(Exception):
    """The peer sent something that is no frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message. task: 0 where it is about the worker itself."""

    kind: Kind
    task: int = 0
    payload: bytes = b""

    def pack(self) -> bytes:
        """The bytes on the wire."""
        return _HEADER.pack(self.kind, self.task, len(self.payload)) + self.payload


class FrameReader:
    """Cuts a stream of bytes into frames, however they arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are whole by now. Raises ProtocolError at what is none."""
        self._buffer += data
        while len(self._buffer) >= _HEADER.size:
            kind, task, length = _HEADER.unpack_from(self._buffer)
            if length > MAX_PAYLOAD_BYTES or kind not in Kind.__members__.values():
                raise ProtocolError(f"kind {kind} with {length} bytes is no frame")
            end = _HEADER.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[_HEADER.size : end])
            del self._buffer[:end]
            yield Frame(Kind(kind), task, payload)


def pack_json(kind: Kind, value: Any, task: int = 0) -> bytes:
    """A frame that carries JSON."""
    return Frame(kind, task, json.dumps(value, separators=(",", ":")).encode()).pack()


def pack_task(task: Task) -> bytes:
    """A task on its way down; of its voice only what names it."""
    named = replace(task, voice=replace(task.voice, sample=None))
    return pack_json(Kind.TASK, asdict(named), task.id)


def pack_voice(key: str, sample: Samples) -> Iterator[bytes]:
    """VOICE frames for a recording of any length; together they are all of it."""
    for start in range(0, len(sample), VOICE_FRAME_SAMPLES):
        part = sample[start : start + VOICE_FRAME_SAMPLES].astype("<f4").tobytes()
        yield Frame(Kind.VOICE, 0, key.encode() + b"\0" + part).pack()


def unpack_voice(payload: bytes) -> tuple[str, Samples]:
    """Key and samples of one VOICE frame."""
    key, _, part = payload.partition(b"\0")
    return key.decode(), np.frombuffer(part, "<f4")


def unpack_task(payload: bytes) -> Task:
    """The task that `pack_task` packed."""
    fields = json.loads(payload)
    utterance, voice, params = fields.pop("utterance"), fields.pop("voice"), fields.pop("params")
    return Task(utterance=Utterance(**utterance), voice=Reference(**voice), params=Params(**params), **fields)


def pack_audio(task: int, samples: Samples) -> Iterator[bytes]:
    """AUDIO frames for samples of any length."""
    for start in range(0, len(samples), AUDIO_FRAME_SAMPLES):
        yield Frame(Kind.AUDIO, task, samples[start : start + AUDIO_FRAME_SAMPLES].astype("<f4").tobytes()).pack()


def unpack_audio(payload: bytes) -> Samples:
    """The samples of one AUDIO frame, read-only."""
    return np.frombuffer(payload, "<f4")


def unpack_traits(payload: bytes) -> Traits:
    """What a READY frame says."""
    fields = json.loads(payload)
    voices = tuple(Voice(**voice) for voice in fields.pop("voices"))
    low, high = fields.pop("native_speed")
    priors = fields.pop("priors")
    return Traits(
        voices=voices,
        loras=tuple(fields.pop("loras")),
        native_speed=(low, high),
        priors=Priors(tuple(priors.pop("rates")), **priors),
        **fields,
    )
