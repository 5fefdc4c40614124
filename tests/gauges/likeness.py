"""Whether two sounds are the same words in the same voice: the model's noise differs from call to call, they do not."""

import numpy as np

STEP = 480
"""Samples in a step of the envelope: 20 ms at 24 kHz."""

SAME = 0.9
"""Likeness of two runs of one text; other texts stay below 0.7."""


def shape(pcm: bytes) -> np.ndarray:
    """Loudness in steps of 20 ms, of 16-bit mono at 24 kHz."""
    samples = np.frombuffer(pcm[: len(pcm) // 2 * 2], "<i2").astype(np.float32)
    return np.sqrt(np.mean(samples[: len(samples) // STEP * STEP].reshape(-1, STEP) ** 2, axis=1))


def likeness(one: np.ndarray, other: np.ndarray) -> float:
    """1 for the same; 0 where their lengths differ by more than two steps."""
    return 0.0 if abs(len(one) - len(other)) > 2 else _correlation(one, other)


def is_beginning(part: np.ndarray, whole: np.ndarray) -> bool:
    """Whether `part` is how `whole` begins; a quarter of a second can be the beginning of anything."""
    return len(part) <= len(whole) + 2 and (len(part) < 12 or _correlation(part, whole) > SAME)


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    size = min(len(one), len(other))
    return float(np.corrcoef(one[:size], other[:size])[0, 1])
