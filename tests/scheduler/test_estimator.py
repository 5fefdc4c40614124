"""What is learned of an engine: its curve, the length of texts, and how many slots were busy."""

import pytest

from core.speech import Priors, Utterance
from scheduler.estimator import BusyMeter, Estimator

TEXT = Utterance(0, "x" * 140, "en")  # ten seconds, as long as nothing was heard


def test_before_anything_is_made_the_backend_is_believed():
    estimator = Estimator(Priors(rates=(2.0, 3.5)))
    assert [estimator.rate(busy) for busy in (1, 2, 3, 0)] == [2.0, 3.5, 3.5, 2.0]
    assert estimator.audio_s(TEXT) == pytest.approx(10.0)
    assert estimator.audio_s(TEXT, speed=2.0) == pytest.approx(5.0)


def test_what_is_seen_at_one_count_scales_the_whole_curve():
    estimator = Estimator(Priors(rates=(2.0, 3.5, 4.5)))
    estimator.learn(TEXT, 1.0, audio_s=12.0, wall_s=12.0, busy=1.0)
    assert estimator.rate(1) == pytest.approx(1.0)
    assert estimator.rate(3) == pytest.approx(2.25)
    assert estimator.audio_s(TEXT) == pytest.approx(12.0)


def test_between_two_counts_that_were_seen_the_scale_lies_between():
    estimator = Estimator(Priors(rates=(1.0, 2.0, 3.0)))
    estimator.learn(TEXT, 1.0, audio_s=10.0, wall_s=10.0, busy=1.0)  # as promised
    estimator.learn(TEXT, 1.0, audio_s=10.0, wall_s=20.0, busy=3.0)  # half of it
    assert estimator.rate(2) == pytest.approx(2.0 * 0.75)


def test_the_past_fades():
    estimator = Estimator(Priors(rates=(1.0,)))
    for _ in range(50):
        estimator.learn(TEXT, 1.0, audio_s=10.0, wall_s=10.0, busy=1.0)
    for _ in range(50):
        estimator.learn(TEXT, 1.0, audio_s=10.0, wall_s=2.5, busy=1.0)
    assert estimator.rate(1) == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize(("audio_s", "wall_s"), [(0.0, 1.0), (1.0, 0.0)])
def test_an_utterance_that_took_no_time_or_made_no_sound_teaches_nothing(audio_s, wall_s):
    estimator = Estimator(Priors(rates=(2.0,)))
    estimator.learn(TEXT, 1.0, audio_s=audio_s, wall_s=wall_s, busy=1.0)
    assert estimator.rate(1) == 2.0


def test_languages_are_learned_apart():
    estimator = Estimator(Priors())
    estimator.learn(TEXT, 1.0, audio_s=20.0, wall_s=10.0, busy=1.0)
    assert estimator.audio_s(Utterance(0, "x" * 140, "es")) == pytest.approx(10.0)


def test_the_meter_tells_how_many_were_busy_on_average():
    meter = BusyMeter()
    meter.add(1, 10.0)
    start = meter.area(10.0)
    meter.add(2, 14.0)
    meter.add(-3, 16.0)
    assert (meter.area(20.0) - start) / 10.0 == pytest.approx((4 * 1 + 2 * 3) / 10)
    assert meter.busy == 0
