"""A recording that a voice is to be made from: read, checked, and named by what is in it."""

import hashlib

import numpy as np
import numpy.typing as npt

from audio.decode import TooLong, Undecodable, decode
from audio.level import dbfs
from core.errors import BadSample
from core.speech import REFERENCE_RATE, Reference, Samples

MIN_S, MAX_S = 1.0, 120.0
"""Seconds that a recording may be long."""

MIN_SPEECH_DBFS = -45.0
"""How loud the loudest tenth of it must be: below, there is a room, and nobody who speaks."""

MAX_CLIPPED = 0.02
"""Share of samples at full scale: a little of that is loud speech, more of it is a damaged recording."""

_FRAME_S = 0.02
_FULL_SCALE = 0.999


def reference(data: bytes, *, param: str | None = None, transcript: str = "") -> Reference:
    """The voice of a recording, a file of any kind in memory. Blocks for about 1 % of its length.

    param: the request field that it came in. Raises BadSample, whose message says what would do.
    """
    try:
        sample = decode(data, rate=REFERENCE_RATE, max_s=MAX_S)
    except Undecodable as error:
        raise BadSample(f"{error} A recording is a wav, flac, mp3, ogg, m4a or webm file.", param=param) from None
    except TooLong:
        raise BadSample(f"The recording should have {MAX_S:.0f} s at most.", param=param) from None
    if fault := fault_of(sample):
        raise BadSample(fault, param=param)
    return Reference(hashlib.sha256(data).hexdigest(), transcript, np.clip(sample, -1.0, 1.0))


def fault_of(sample: Samples) -> str:
    """What speaks against making a voice from samples at REFERENCE_RATE, for a person; empty where nothing does."""
    if not np.isfinite(sample).all():
        return "The recording holds values that are no sound."
    if len(sample) < MIN_S * REFERENCE_RATE:
        return f"The recording has {len(sample) / REFERENCE_RATE:.1f} s; it should have {MIN_S:.0f} s at least."
    if speech_dbfs(sample) < MIN_SPEECH_DBFS:
        return "The recording is silent, or too quiet to hear a voice in it."
    if (clipped := clipped_share(sample)) > MAX_CLIPPED:
        return (
            f"The recording is too loud: {clipped:.0%} of it is cut off at full scale. Record it again, more quietly."
        )
    return ""


def speech_dbfs(sample: Samples) -> float:
    """Level of the loudest tenth of a recording, where somebody speaks if anybody does."""
    power = _powers(sample)
    return dbfs(np.sqrt(power[-max(1, len(power) // 10) :]).astype(np.float32))


def noise_dbfs(sample: Samples) -> float:
    """Level of the quietest tenth of a recording, where nobody speaks if there is any pause."""
    power = _powers(sample)
    return dbfs(np.sqrt(power[: max(1, len(power) // 10)]).astype(np.float32))


def _powers(sample: Samples) -> npt.NDArray[np.float64]:
    """Mean square of each short frame, the quietest first."""
    size = round(_FRAME_S * REFERENCE_RATE)
    frames = sample[: len(sample) // size * size].reshape(-1, size)
    return np.sort(np.mean(np.square(frames, dtype=np.float64), axis=1))


def clipped_share(sample: Samples) -> float:
    """Share of samples at full scale."""
    return float(np.mean(np.abs(sample) >= _FULL_SCALE))
