"""A recording of somebody who hums one tone: a fake voice that a gauge can tell from every other."""

import io
import wave

import numpy as np


def recording(hz: float = 200.0, seconds: float = 2.0, *, rate: int = 24_000) -> bytes:
    """A wav file, mono and 16 bit, at 30 % of full scale."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        tone = 9830 * np.sin(2 * np.pi * hz / rate * np.arange(int(seconds * rate)))
        out.writeframes(tone.astype("<i2").tobytes())
    return file.getvalue()
