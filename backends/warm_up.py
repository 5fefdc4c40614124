"""A few sounds before anybody asks, so that the first request is as fast as the tenth.

The first call of a model on torch looks for kernels, plans memory, and imports what it had put off.
"""

from contextlib import suppress
from itertools import islice

import numpy as np

from backends.base import Backend, BackendError, Stop
from core.speech import REFERENCE_RATE, Reference, Samples, Task, Utterance

PIECES = 2
"""Of sound: the first goes another way than the others."""

HUM_S, HUM_HZ = 2.0, 140.0
"""Of the synthetic voice."""

TEXT = "Good morning to you all."


def hum() -> Samples:
    """A recording of nobody, at REFERENCE_RATE."""
    at = np.arange(int(HUM_S * REFERENCE_RATE)) / REFERENCE_RATE
    return (0.2 * np.sin(2 * np.pi * HUM_HZ * at) * (at % 0.5 < 0.4)).astype(np.float32)


def warm_up(backend: Backend, *, transcript: str = "") -> None:
    """Let a backend that can clone, and is loaded, make a voice and speak in it. transcript: where it needs one."""
    voice = Reference("warm-up", transcript, hum())
    pieces = backend.speak(Task(0, 0, Utterance(0, TEXT, "en"), voice), backend.prepare(voice), Stop())
    with suppress(BackendError):  # what it says of it is of no matter: a model may come to its limit over a hum
        for _ in islice(pieces, PIECES):  # the rest is never made: nobody holds the generator any more
            pass
