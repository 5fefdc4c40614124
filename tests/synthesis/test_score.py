"""Utterances come in any order and leave in theirs; what is no speech is not accepted."""

import asyncio

import numpy as np
import pytest

from core.errors import SynthesisFailed
from core.speech import Utterance
from synthesis.stream import Score

RATE = 24_000
PARTS = tuple(Utterance(index, "some words", "en") for index in range(3))


def tone(level: float, seconds: float = 0.1) -> np.ndarray:
    return np.full(int(RATE * seconds), level, np.float32)


async def pull(score: Score, index: int) -> list[float]:
    levels = []
    while (samples := await asyncio.wait_for(score.next(index), 2)) is not None:
        levels.append(round(float(samples[0]), 3))
    return levels


def test_utterances_that_come_in_any_order_leave_in_theirs():
    score = Score(PARTS, RATE)
    for index in (2, 0, 1):
        score.audio(index, tone(index / 10 + 0.1))
        assert score.done(index) == pytest.approx(0.1)

    async def scene():
        return [await pull(score, index) for index in range(3)]

    assert asyncio.run(scene()) == [[0.1], [0.2], [0.3]]


def test_an_utterance_that_is_spoken_again_is_heard_once():
    score = Score(PARTS, RATE)
    score.audio(0, tone(0.1))
    score.rerun(0)
    score.audio(0, tone(0.2))
    score.done(0)
    assert asyncio.run(pull(score, 0)) == [0.2]


def test_what_came_before_an_error_is_heard_and_then_the_error():
    score = Score(PARTS, RATE)
    score.audio(0, tone(0.1))
    score.done(0)
    score.fail(SynthesisFailed("gone"))

    async def scene():
        assert await pull(score, 0) == [0.1]
        with pytest.raises(SynthesisFailed):
            await score.next(1)

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("text", "level", "is_accepted"),
    [
        pytest.param("words", 0.1, True, id="speech"),
        pytest.param("words", 0.0, False, id="silence for words"),
        pytest.param("words", float("nan"), False, id="no number"),
        pytest.param("words", float("inf"), False, id="infinite"),
        pytest.param("—", 0.0, True, id="silence for a dash"),
    ],
)
def test_only_what_can_be_speech_is_accepted(text, level, is_accepted):
    score = Score((Utterance(0, text, "en"),), RATE)
    score.audio(0, tone(level))
    assert (score.done(0) is not None) is is_accepted


def test_words_without_any_audio_are_no_speech():
    assert Score(PARTS, RATE).done(0) is None


def test_a_reader_that_waits_is_woken_by_audio_that_comes_later():
    async def scene():
        score = Score(PARTS, RATE)
        reader = asyncio.create_task(pull(score, 1))
        await asyncio.sleep(0)
        score.audio(0, tone(0.5))
        await asyncio.sleep(0)
        score.audio(1, tone(0.2))
        score.done(1)
        assert await reader == [0.2]

    asyncio.run(scene())
