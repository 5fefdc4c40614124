"""Signals to encode, and decoders that share nothing with the encoder but FFmpeg."""

import io
from collections.abc import Callable

import av
import numpy as np
import pytest

from core.speech import Samples

Decode = Callable[[bytes], tuple[Samples, int]]
Tone = Callable[..., Samples]


def _decode(data: bytes, name: str | None = None) -> tuple[Samples, int]:
    with av.open(io.BytesIO(data), format=name) as container:
        frames = [frame.to_ndarray().astype(np.float32) for frame in container.decode(audio=0)]
        stream = container.streams.audio[0]
        assert stream.channels == 1
        scale = 32768 if stream.format.name.startswith("s16") else 1
        return np.concatenate(frames, axis=1)[0] / scale, stream.rate


def _tone(seconds: float, *, hz: float = 440.0, rate: int = 24_000) -> Samples:
    at = np.arange(round(seconds * rate)) / rate
    return (0.4 * np.sin(2 * np.pi * hz * at)).astype(np.float32)


@pytest.fixture(scope="session")
def decode() -> Decode:
    """All samples of a file, and its rate."""
    return _decode


@pytest.fixture(scope="session")
def tone() -> Tone:
    """A sine of so many seconds, at -8 dB of full scale."""
    return _tone
