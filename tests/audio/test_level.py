import math

import numpy as np
import pytest

from audio.level import dbfs, first_audible


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        pytest.param([1, -1, 1, -1], 0.0, id="a full square wave is 0"),
        pytest.param([0.1, -0.1], -20.0, id="a tenth is -20"),
        pytest.param([0, 0], -math.inf, id="silence has no level"),
        pytest.param([], -math.inf, id="nothing has no level"),
    ],
)
def test_level_is_decibels_below_full_scale(samples, expected):
    assert dbfs(np.array(samples, np.float32)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("samples", "threshold_db", "expected"),
    [
        pytest.param([0, 0.001, 0.01, 1], -50, 2, id="the first above the threshold"),
        pytest.param([0, -0.5], -50, 1, id="either side counts"),
        pytest.param([0.1], -20, None, id="at the threshold is not above it"),
        pytest.param([], -50, None, id="nothing is not audible"),
    ],
)
def test_sound_begins_at_the_first_sample_above_the_threshold(samples, threshold_db, expected):
    assert first_audible(np.array(samples, np.float32), threshold_db) == expected
