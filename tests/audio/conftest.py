"""Signals to encode, and decoders that share nothing with the encoder but FFmpeg."""

from collections.abc import Callable

import numpy as np
import pytest

from core.speech import Samples
from gauges import sound

Decode = Callable[[bytes], tuple[Samples, int]]
Tone = Callable[..., Samples]


def _tone(seconds: float, *, hz: float = 440.0, rate: int = 24_000) -> Samples:
    at = np.arange(round(seconds * rate)) / rate
    return (0.4 * np.sin(2 * np.pi * hz * at)).astype(np.float32)


@pytest.fixture(scope="session")
def decode() -> Decode:
    """All samples of a file, and its rate."""
    return sound.decode


@pytest.fixture(scope="session")
def tone() -> Tone:
    """A sine of so many seconds, at -8 dB of full scale."""
    return _tone
