"""What engines that sample get wrong: speech that breaks off, never ends, runs in circles, or ends in noise.

Everything is judged by how long the text should take and by the sound alone, and only beyond doubt: who is asked to
speak fast, to whisper or to say a word ten times must not be refused.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from audio.level import dbfs
from core.speech import Samples

SHORTEST, LONGEST = 0.35, 3.0
"""How long speech may be, as shares of what is expected: fast voices take 0.6 of it."""

SLACK_S, SHORT_SLACK_S = 1.5, 0.2
"""More, and less, than that; for a word or two say little about how long they take."""

BROKEN_OFF, ABRUPT_DB, LAST_S = 0.8, 15.0, 0.03
"""Speech that is shorter than this share may have been broken off: if its last moment is less than so many dB below
the loudest ones. A voice that comes to its end fades within a tenth of a second."""

FRAME_S, STEP_S = 0.032, 0.010
"""Of the frames that are looked at."""

SILENT_DBFS = -55.0
"""Below this, nobody speaks."""

BANDS = 24
"""In which the sound of two moments is compared, of equal width on a scale of ratios from 100 Hz up."""

LOOP_S = (0.25, 2.0)
"""How long what is said again and again may be."""

LOOP_TIMES = 4
"""How often in a row it must come: people say things three times."""

LOOP_LIKENESS = 0.95
"""Correlation of the spectra of two rounds. Somebody who says a word five times comes to 0.87."""

NOISE_FLATNESS = 0.35
"""Geometric over arithmetic mean of a spectrum: 0.56 for white noise, under 0.1 for a vowel."""

ROOM_DB = 25.0
"""How far below the voice the noise of a room is at least."""

NOISE_S = 0.5
"""How long noise must last: no s in any language does."""

Bands = npt.NDArray[np.float64]


def longest_s(expected_s: float) -> float:
    """Seconds after which speech that should take `expected_s` will not end by itself."""
    return LONGEST * expected_s + SLACK_S


def fault_of(samples: Samples, rate: int, expected_s: float) -> str:
    """What is wrong with an utterance, in a word for the log; empty where nothing is for certain.

    samples: shape (n,), all of it. rate: Hz. expected_s: how long the text should take at speed 1.
    """
    spectra = _spectra(samples, rate)
    if not len(spectra):
        return "silent" if expected_s > SHORT_SLACK_S else ""
    levels = 10 * np.log10(spectra.sum(axis=1) + 1e-12)
    loud = levels > SILENT_DBFS
    spoken_s = float(loud.sum()) * STEP_S
    faults = {
        "silent": spoken_s == 0 and expected_s > SHORT_SLACK_S,
        "cut": spoken_s < SHORTEST * expected_s - SHORT_SLACK_S,
        "endless": len(samples) / rate > longest_s(expected_s),
        "noise": _has_noise(spectra, levels),
        "loop": _runs_in_circles(_bands(spectra, rate), loud),
    }
    fault = next((fault for fault, holds in faults.items() if holds), "")
    return fault or ("cut" if _is_broken_off(samples, rate, spoken_s, expected_s) else "")


def _spectra(samples: Samples, rate: int) -> Bands:
    """Power of each frame by frequency, shape (frames, bins); its sum is the frame's mean square."""
    size, step = round(FRAME_S * rate), round(STEP_S * rate)
    if len(samples) < size:
        return np.zeros((0, 1))
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), size)[::step]
    window = np.hanning(size)
    return np.abs(np.fft.rfft(frames * window)) ** 2 * 2 / (size * float(np.sum(window**2)))


def _is_broken_off(samples: Samples, rate: int, spoken_s: float, expected_s: float) -> bool:
    if spoken_s > BROKEN_OFF * expected_s or expected_s < SLACK_S:
        return False
    size = round(LAST_S * rate)
    moments = samples[: len(samples) // size * size].reshape(-1, size)
    loud = float(np.percentile([dbfs(moment) for moment in moments], 95))
    return dbfs(samples[-size:]) > loud - ABRUPT_DB


def _has_noise(spectra: Bands, levels: npt.NDArray[np.float64]) -> bool:
    """Whether there is noise, and no voice, for longer than anybody hisses; a room is not that loud.

    levels: of the frames, in dBFS.
    """
    loud = levels > max(SILENT_DBFS, float(np.percentile(levels, 95)) - ROOM_DB)
    power = spectra[:, 2:] + 1e-14
    flatness = np.exp(np.mean(np.log(power), axis=1)) / np.mean(power, axis=1)
    return _longest_run((flatness > NOISE_FLATNESS) & loud) * STEP_S > NOISE_S


def _bands(spectra: Bands, rate: int) -> Bands:
    """Level in each band, less the frame's own mean, shape (frames, BANDS), of length 1: the colour of each moment."""
    edges = np.geomspace(100.0, min(8000.0, rate / 2), BANDS + 1)
    bins = np.fft.rfftfreq(2 * (spectra.shape[1] - 1), 1 / rate)
    places = np.searchsorted(bins, edges)
    levels = np.stack([spectra[:, low : max(high, low + 1)].sum(axis=1) for low, high in pairwise(places)], axis=1)
    levels = np.log(levels + 1e-9)
    levels -= levels.mean(axis=1, keepdims=True)
    return np.asarray(levels / (np.linalg.norm(levels, axis=1, keepdims=True) + 1e-9))


def _runs_in_circles(bands: Bands, loud: npt.NDArray[np.bool_]) -> bool:
    """Whether the same is said LOOP_TIMES in a row."""
    first, last = (round(seconds / STEP_S) for seconds in LOOP_S)
    for lag in range(first, min(last, len(bands) // LOOP_TIMES) + 1):
        alike = np.sum(bands[:-lag] * bands[lag:], axis=1)
        alike[~loud[:-lag] & ~loud[lag:]] = 1.0  # a pause goes with a pause
        size = (LOOP_TIMES - 1) * lag
        if len(alike) < size:
            break
        sums = np.concatenate(([0.0], np.cumsum(alike)))
        heard = np.concatenate(([0], np.cumsum(loud[:-lag])))
        means = (sums[size:] - sums[:-size]) / size
        is_speech = (heard[size:] - heard[:-size]) > size / 3
        if bool(np.any((means > LOOP_LIKENESS) & is_speech)):
            return True
    return False


def _longest_run(claims: npt.NDArray[np.bool_]) -> int:
    """Length of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], claims, [False])).astype(np.int8)))
    return int((edges[1::2] - edges[::2]).max(initial=0))
