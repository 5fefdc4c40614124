"""What an engine hands over, before anyone hears it: numbers that are none, and speech that is silence."""

import numpy as np

from audio.level import dbfs
from core.speech import Samples

SILENCE_DBFS = -60.0
"""An utterance below this is no speech: the quietest voice measured is 30 dB above it."""


def is_sound(samples: Samples) -> bool:
    """Whether all samples are finite numbers."""
    return bool(np.isfinite(samples).all())


def is_speech(text: str, chunks: list[Samples]) -> bool:
    """Whether `chunks`, all of one utterance, can be the speech of `text`. Text without a letter may be silent."""
    if not any(char.isalnum() for char in text):
        return True
    return any(dbfs(chunk) > SILENCE_DBFS for chunk in chunks if len(chunk))
