import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio.join import Trimmer, silence

RATE = 24_000


def hiss(seconds: float, amplitude: float) -> np.ndarray:
    return np.random.default_rng(7).uniform(-amplitude, amplitude, round(seconds * RATE)).astype(np.float32)


def padded(*parts: np.ndarray) -> np.ndarray:
    """Parts of speech with the silence around them that an engine makes."""
    return np.concatenate((hiss(0.3, 1e-4), *parts, hiss(0.5, 1e-4)))


def trimmed(samples: np.ndarray, *cuts: int) -> np.ndarray:
    trimmer = Trimmer(RATE)
    return np.concatenate([*map(trimmer.feed, np.split(samples, sorted(cuts))), trimmer.finish()])


SPEECH = padded(hiss(0.1, 0.02), hiss(0.4, 0.5), silence(0.2, RATE), hiss(0.3, 0.3), hiss(0.06, 0.008))


@pytest.mark.parametrize(
    ("samples", "seconds"),
    [
        pytest.param(padded(hiss(1, 0.3)), 1.09, id="30 ms before and 60 ms after remain"),
        pytest.param(hiss(1, 0.3), 1.0, id="without silence nothing is taken"),
        pytest.param(padded(hiss(0.4, 0.3), silence(0.9, RATE), hiss(0.4, 0.3)), 1.79, id="a pause inside stays"),
        pytest.param(padded(hiss(0.12, 0.006), hiss(1, 0.3)), 1.21, id="a soft h before a vowel stays"),
        pytest.param(padded(hiss(1, 0.3), hiss(0.2, 0.012)), 1.29, id="a soft f at the end stays"),
        pytest.param(padded(hiss(0.5, 0.008)), 0.59, id="a voice that never gets loud is speech all the same"),
        pytest.param(padded(hiss(1, 0.1), hiss(0.2, 0.004)), 1.29, id="a quieter voice has quieter word ends"),
        pytest.param(padded(hiss(1, 0.6), hiss(0.3, 0.004)), 1.09, id="the breath after a loud voice goes"),
        pytest.param(hiss(1, 1e-4), 0, id="silence throughout gives nothing"),
        pytest.param(silence(0, RATE), 0, id="no samples give nothing"),
        pytest.param(hiss(0.001, 0.3), 0.001, id="a click shorter than any fade"),
    ],
)
def test_silence_at_the_ends_goes_and_speech_stays(samples, seconds):
    assert len(trimmed(samples)) / RATE == pytest.approx(seconds, abs=0.002)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, len(SPEECH)), max_size=12))
def test_the_result_does_not_depend_on_how_samples_come(cuts):
    assert np.array_equal(trimmed(SPEECH, *cuts), trimmed(SPEECH))


@pytest.mark.parametrize("samples", [hiss(0.5, 0.6), padded(hiss(0.5, 0.6)), hiss(0.0005, 0.6)], ids=len)
def test_both_ends_start_from_nothing_so_that_no_seam_clicks(samples):
    result = trimmed(samples)
    assert (result[0], result[-1]) == (0, 0)


def test_speech_passes_on_while_the_utterance_still_runs():
    given, trimmer = padded(hiss(1, 0.3))[: RATE // 2], Trimmer(RATE)
    held_s = 0.3 - 0.03 + 0.02
    assert len(trimmer.feed(given)) / RATE == pytest.approx(0.5 - held_s, abs=0.002)


def test_the_callers_samples_are_left_alone():
    samples = hiss(0.5, 0.6)
    before = samples.copy()
    trimmed(samples)
    assert np.array_equal(samples, before)


@pytest.mark.parametrize(("seconds", "count"), [(0.5, 12_000), (0, 0), (-1, 0)])
def test_a_pause_is_that_many_zeros(seconds, count):
    pause = silence(seconds, RATE)
    assert (len(pause), pause.dtype, pause.any()) == (count, np.float32, False)
