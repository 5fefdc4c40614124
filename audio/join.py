"""Utterances end to end: an engine's own silence off, a pause of ours between them, and no click at the seams."""

import numpy as np

from core.speech import Samples

LOUD = 0.01
"""Amplitude that is speech for certain in a voice of usual level (-40 dBFS)."""

LOUD_SHARE = 0.02
"""The same as a share of the peak so far: the lower of the two counts, so that a quiet voice keeps its word ends."""

FAINT = 0.002
"""Amplitude that is speech if certain speech follows at once: an h, an f. Engines are silent at a tenth of it."""

ONSET_S = 0.15
"""How far before certain speech a faint sound can belong to it."""

KEEP_BEFORE_S, KEEP_AFTER_S = 0.03, 0.06
"""Silence left at both ends of an utterance, in seconds."""

FADE_IN_S, FADE_OUT_S = 0.003, 0.02
"""Seconds. The way in must leave a plosive its edge; the way out may be gentle."""


def silence(seconds: float, rate: int) -> Samples:
    """A pause: zeros, shape (seconds * rate,); none for a pause of 0 or less."""
    return np.zeros(max(0, round(seconds * rate)), np.float32)


class Trimmer:
    """Takes the silence off both ends of one utterance while it streams; what lies inside stays.

    The result does not depend on how the samples are cut into calls. Silence is held back until speech follows it.
    """

    def __init__(self, rate: int) -> None:
        """rate: Hz of the samples."""
        self._rate = rate
        self._held = np.zeros(0, np.float32)
        self._peak = 0.0
        self._has_begun = False

    def feed(self, samples: Samples) -> Samples:
        """Take samples, shape (n,); return what is certain to lie inside the utterance, shape (m,), m from 0 up."""
        self._held = np.concatenate((self._held, samples))
        if not self._has_begun:
            loud = _above(self._held, LOUD)
            if not len(loud) or len(self._held) - loud[0] < self._count(FADE_IN_S):
                return self._release(0)
            self._begin(int(loud[0]))
        self._peak = max(self._peak, float(np.abs(self._held).max(initial=0.0)))
        loud = _above(self._held, min(LOUD, LOUD_SHARE * self._peak))
        # The last moments always wait: if nothing follows, they are the fade-out.
        return self._release(min(_end(loud), len(self._held) - self._count(FADE_OUT_S)))

    def finish(self) -> Samples:
        """Return the end, faded out, shape (m,); nothing at all for an utterance that was silent throughout."""
        if not self._has_begun:
            # Too short or too quiet to be certain; the faint threshold decides alone.
            faint = _above(self._held, FAINT)
            if not len(faint):
                return self._release(0)
            self._begin(int(faint[0]))
            self._peak = float(np.abs(self._held).max())
        loud = _above(self._held, min(LOUD, LOUD_SHARE * self._peak))
        tail = self._held[: _end(loud) + self._count(KEEP_AFTER_S)].copy()
        fade = min(len(tail), self._count(FADE_OUT_S))
        tail[len(tail) - fade :] *= np.linspace(1.0, 0.0, fade, dtype=np.float32)
        self._held = self._held[:0]
        return tail

    def _begin(self, certain: int) -> None:
        """Drop what lies before the utterance; certain: index of the first sample that is speech."""
        reach = max(0, certain - self._count(ONSET_S))
        onset = reach + int(_above(self._held[reach : certain + 1], FAINT)[0])
        self._held = self._held[max(0, onset - self._count(KEEP_BEFORE_S)) :].copy()
        fade = min(len(self._held), self._count(FADE_IN_S))
        self._held[:fade] *= np.linspace(0.0, 1.0, fade, dtype=np.float32)
        self._has_begun = True

    def _release(self, count: int) -> Samples:
        released, self._held = np.split(self._held, [max(0, count)])
        return released

    def _count(self, seconds: float) -> int:
        return round(seconds * self._rate)


def _above(samples: Samples, threshold: float) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Indices of the samples beyond a threshold on either side."""
    return np.flatnonzero(np.abs(samples) > threshold)


def _end(indices: np.ndarray[tuple[int], np.dtype[np.intp]]) -> int:
    """One behind the last index; 0 where there is none."""
    return int(indices[-1]) + 1 if len(indices) else 0
