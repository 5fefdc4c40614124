import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio.filters import FilterChain
from audio.level import dbfs


def through(chain: FilterChain, samples: np.ndarray, *cuts: int) -> np.ndarray:
    return np.concatenate([*map(chain.feed, np.split(samples, sorted(cuts))), chain.finish()])


def pitch(samples: np.ndarray, rate: int) -> float:
    """The strongest frequency in Hz."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(spectrum.argmax() * rate / len(samples))


@pytest.mark.parametrize("tempo", [0.25, 0.4, 0.5, 0.8, 1.0, 1.25, 2.0, 3.0, 4.0])
@pytest.mark.parametrize("seconds", [0.3, 2.0])
def test_tempo_changes_the_length_as_asked_and_leaves_the_pitch(tempo, seconds, tone):
    made = through(FilterChain(24_000, 24_000, tempo=tempo), tone(seconds))
    assert len(made) / 24_000 == pytest.approx(seconds / tempo, rel=0.01, abs=0.02)
    assert pitch(made, 24_000) == pytest.approx(440, abs=max(5, 1 / seconds * tempo * 2))


@pytest.mark.parametrize(("source", "rate"), [(48_000, 24_000), (44_100, 24_000), (22_050, 24_000), (24_000, 8_000)])
def test_resampling_keeps_length_pitch_and_level(source, rate, tone):
    made = through(FilterChain(source, rate), tone(1, rate=source))
    assert len(made) == pytest.approx(rate, abs=2)
    assert pitch(made, rate) == pytest.approx(440, abs=2)
    assert dbfs(made) == pytest.approx(dbfs(tone(1)), abs=0.1)


def test_what_the_lower_rate_cannot_carry_is_gone_rather_than_mirrored(tone):
    made = through(FilterChain(48_000, 24_000), tone(1, hz=15_000, rate=48_000))
    assert dbfs(made[500:-500]) < -60


@pytest.mark.parametrize("tempo", [0.25, 1.0, 4.0])
def test_the_last_sound_comes_out(tempo, tone):
    samples = np.concatenate((np.zeros(24_000, np.float32), tone(0.05)))
    made = through(FilterChain(24_000, 24_000, tempo=tempo), samples)
    assert dbfs(made[-round(2_400 / tempo) - 2_400 :]) > -25


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 12_000), max_size=8), tempo=st.sampled_from([0.5, 1.0, 1.7]))
def test_the_result_does_not_depend_on_how_samples_come(cuts, tempo):
    samples = np.random.default_rng(3).uniform(-0.5, 0.5, 12_000).astype(np.float32)
    whole = through(FilterChain(22_050, 24_000, tempo=tempo), samples)
    sliced = through(FilterChain(22_050, 24_000, tempo=tempo), samples, *cuts)
    np.testing.assert_allclose(sliced, whole, atol=1e-4)


@pytest.mark.parametrize("tempo", [0.0, 0.2, 5.0, -1.0, float("nan"), float("inf")])
def test_a_tempo_out_of_range_is_refused(tempo):
    with pytest.raises(ValueError, match="tempo"):
        FilterChain(24_000, 24_000, tempo=tempo)


def test_nothing_in_is_nothing_out():
    assert len(through(FilterChain(24_000, 16_000, tempo=2.0), np.zeros(0, np.float32))) == 0
