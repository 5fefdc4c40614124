"""A recording of somebody who hums one tone, a fake voice that a gauge can tell from every other; and its way back."""

import io
import wave

import httpx
import numpy as np


def recording(
    hz: float = 200.0,
    seconds: float = 2.0,
    *,
    rate: int = 24_000,
    level: float = 0.3,
    noise: float = 0.0,
    pauses: bool = False,
) -> bytes:
    """A wav file, mono and 16 bit. level, noise: of the tone and behind it; 1 is full scale, where it is cut off.

    pauses: nobody hums in every other half of a second.
    """
    at = np.arange(int(seconds * rate)) / rate
    tone = level * np.sin(2 * np.pi * hz * at)
    if pauses:
        tone *= at % 1 < 0.5
    if noise:
        tone += noise * np.random.default_rng(1).standard_normal(len(at))
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        out.writeframes((np.clip(tone, -1, 1) * 32767).astype("<i2").tobytes())
    return file.getvalue()


def samples(answer: httpx.Response) -> np.ndarray:
    """What an answer in wav holds, 16 bit."""
    assert answer.status_code == 200, answer.text
    with wave.open(io.BytesIO(answer.content)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")
