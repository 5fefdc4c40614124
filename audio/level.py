"""How loud samples are, and where sound begins."""

import math

import numpy as np

from core.speech import Samples


def dbfs(samples: Samples) -> float:
    """Level in dB below full scale: 0 for a square wave that touches both ends, -3 for such a sine.

    samples: shape (n,). Returns minus infinity for silence and for no samples at all.
    """
    if not len(samples):
        return -math.inf
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    return 10 * math.log10(power) if power > 0 else -math.inf


def first_audible(samples: Samples, threshold_db: float = -50.0) -> int | None:
    """Index of the first sample above a threshold in dB of full scale; None if there is none."""
    loud = np.abs(samples) > 10 ** (threshold_db / 20)
    return int(loud.argmax()) if loud.any() else None
