"""Quality around any engine: what is wrong is Failed, what is endless is stopped, and nobody waits for a verdict."""

import time

import numpy as np
import pytest

from backends.base import Audio, Done, Failed, Lost, Stopped
from core.speech import Reference, Task, Utterance
from pool.guard import MOST_CASES, Guarded

RATE = 48_000
TEXT = "A sentence of some thirty letters."
"""About 2.4 s."""


class Scripted:
    """An engine that says what it is told to say: stands for any."""

    def __init__(self):
        self.next = []
        self.cancelled = []
        self.waits = []

    def add(self, task):
        pass

    def cancel(self, task_id):
        self.cancelled.append(task_id)

    def hold(self, key, samples):
        pass

    def forget(self, key):
        pass

    def step(self, timeout_s):
        self.waits.append(timeout_s)
        said, self.next = self.next, []
        return said


def tone(seconds):
    at = np.arange(int(seconds * RATE)) / RATE
    voice = sum(np.sin(2 * np.pi * hz * at * (1 + 0.1 * np.sin(3 * at))) / n for n, hz in enumerate((150, 300, 450), 1))
    fades = np.minimum(1, (seconds - at) / 0.3)
    return (0.2 * voice * (0.6 + 0.4 * np.sin(2 * np.pi * (2.1 + at) * at)) * fades).astype(np.float32)


@pytest.fixture
def engine():
    return Scripted()


def guarded(engine, *numbers, text=TEXT):
    guard = Guarded(engine, RATE)
    for number in numbers:
        guard.add(Task(number, 1, Utterance(0, text, "en"), Reference("alloy")))
    return guard


def until_end(guard, task):
    outcomes, began = [], time.monotonic()
    while not any(each.task == task and not isinstance(each, Audio) for each in outcomes):
        assert time.monotonic() - began < 10
        outcomes += guard.step(0.0)
    return outcomes


@pytest.mark.parametrize(
    ("samples", "end"),
    [
        pytest.param(tone(2.4), Done(1), id="speech"),
        pytest.param(tone(0.3), Failed(1, "quality: cut"), id="cut off"),
        pytest.param(np.zeros(2 * RATE, np.float32), Failed(1, "quality: silent"), id="silent"),
    ],
)
def test_what_is_wrong_is_failed_behind_its_last_sound(engine, samples, end):
    guard = guarded(engine, 1)
    engine.next = [Audio(1, samples), Done(1)]
    outcomes = until_end(guard, 1)
    assert isinstance(outcomes[0], Audio)
    assert outcomes[1:] == [end]


def test_what_does_not_end_is_stopped_and_failed(engine):
    guard = guarded(engine, 1)
    engine.next = [Audio(1, tone(9.0))]
    assert guard.step(0.0) == []
    assert engine.cancelled == [1]
    engine.next = [Audio(1, tone(0.2)), Stopped(1)]
    assert until_end(guard, 1) == [Failed(1, "quality: endless")]


def test_what_ends_otherwise_passes(engine):
    guard = guarded(engine, 1, 2)
    engine.next = [Audio(1, tone(0.2)), Stopped(1), Failed(2, "why"), Lost("gone"), Done(3)]
    assert guard.step(0.0)[1:] == [Stopped(1), Failed(2, "why"), Lost("gone"), Done(3)]


def test_an_utterance_without_words_is_not_judged(engine):
    guard = guarded(engine, 1, text="")
    engine.next = [Done(1)]
    assert guard.step(0.0) == [Done(1)]


def test_nobody_waits_long_where_a_verdict_is_awaited(engine):
    guard = guarded(engine, 1)
    engine.next = [Audio(1, tone(2.4)), Done(1)]
    guard.step(1.0)
    guard.step(1.0)
    assert engine.waits[0] == 1.0
    assert engine.waits[1] < 0.1


def test_where_verdicts_do_not_keep_up_the_next_passes_without_one(engine):
    numbers = range(1, MOST_CASES + 3)
    guard = guarded(engine, *numbers)
    engine.next = [each for number in numbers for each in (Audio(number, tone(0.3)), Done(number))]
    passed = [each for each in guard.step(0.0) if isinstance(each, Done)]
    assert passed == [Done(MOST_CASES + 1), Done(MOST_CASES + 2)]
