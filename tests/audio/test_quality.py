"""What a sampling engine gets wrong is found, and real clips of the embedded model are found good.

Sixty are made here; those of `tests/e2e/test_speech.py` are looked at too, by the worker that makes them.
"""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from audio.quality import fault_of, longest_s
from backends.base import Stop
from backends.kokoro.backend import make
from core.settings import load_settings
from core.speech import Reference, Task, Utterance
from scheduler.estimator import estimated_s
from voices.library import OPENAI_NAMES

RATE = 24_000
ODD = [
    "Yes.", "No!", "Ha ha ha ha!", "No, no, no, no, no.", "One, two, three, four, five.", "Shh.", "S S S S.",
    "Sixty-six sly snakes slither silently.", "Psst, this is a secret.", "Bye bye bye bye.", "Well...", "Ah!",
]  # fmt: skip
LONG = [
    "The old clock struck seven while nobody in the house had slept, because the wind was loud all night long.",
    "Children laughed at the funny dog who ran away with the blue hat that belonged to the captain of a boat.",
]
WORDS = "morning light over the river slowly moved and children laughed at a funny dog with one blue hat".split()


def texts() -> list[str]:
    drawn = random.Random(7)
    short = [" ".join(drawn.choices(WORDS, k=drawn.choice((1, 2, 3, 4)))).capitalize() + "." for _ in range(46)]
    return [*ODD, *LONG, *short]


def speaker():
    backend = make(load_settings().options("kokoro"))
    backend.load("cpu")

    def clip(number: int, text: str) -> np.ndarray:
        voice = Reference(OPENAI_NAMES[number % len(OPENAI_NAMES)])
        task = Task(number, number, Utterance(9, text, "en"), voice)
        return np.concatenate(list(backend.speak(task, backend.prepare(voice), Stop())))

    return clip


@pytest.fixture(scope="module")
def clip():
    """One real clip of some length, and how long it was to be."""
    return speaker()(0, LONG[0]), estimated_s(Utterance(0, LONG[0], "en"))


@pytest.mark.slow(file_s=30)
@pytest.mark.timeout(300)
def test_no_real_clip_is_found_wrong():
    speak, wanted = speaker(), texts()
    assert len(wanted) == 60

    def fault(number: int) -> tuple[str, str]:
        samples = speak(number, wanted[number])
        return fault_of(samples, RATE, estimated_s(Utterance(0, wanted[number], "en"))), wanted[number]

    with ThreadPoolExecutor(2) as threads:
        faults = list(threads.map(fault, range(len(wanted))))
    assert [found for found in faults if found[0]] == []


def noise(seconds: float, level: float = 0.03) -> np.ndarray:
    return (level * np.random.default_rng(1).standard_normal(int(seconds * RATE))).astype(np.float32)


def loudest(clip: np.ndarray) -> int:
    """A place about the middle where somebody speaks."""
    middle = len(clip) * 2 // 5
    return middle + int(np.abs(clip[middle : len(clip) * 3 // 5]).argmax())


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        pytest.param(lambda clip: clip, "", id="as it is"),
        pytest.param(lambda clip: clip * 0.05, "", id="whispered"),
        pytest.param(lambda clip: clip + noise(len(clip) / RATE, 0.002)[: len(clip)], "", id="with a noisy room"),
        pytest.param(lambda clip: clip[: len(clip) // 5], "cut", id="broken off after a fifth"),
        pytest.param(lambda clip: clip[: loudest(clip)], "cut", id="broken off in the middle of a word"),
        pytest.param(lambda clip: clip[:0], "silent", id="nothing"),
        pytest.param(lambda clip: clip * 0, "silent", id="silence"),
        pytest.param(lambda clip: np.concatenate([clip, noise(1.0)]), "noise", id="a tail of noise"),
        pytest.param(lambda clip: np.concatenate([clip[:RATE], noise(4.0)]), "noise", id="noise instead of speech"),
        pytest.param(lambda clip: np.concatenate([clip[:48_000], *[clip[48_000:62_000]] * 6]), "loop", id="a loop"),
        pytest.param(
            lambda clip: np.concatenate(
                [clip[:48_000], *[clip[48_000:62_000] * gain for gain in (1, 0.9, 1.1, 1, 0.8)]]
            ),
            "loop",
            id="a loop that is not quite even",
        ),
        pytest.param(lambda clip: np.concatenate([clip, clip[::-1], clip, clip[::-1]]), "endless", id="no end"),
    ],
)
def test_a_planted_fault_is_found(clip, spoil, fault):
    samples, expected_s = clip
    assert fault_of(spoil(samples), RATE, expected_s) == fault


@pytest.mark.parametrize("rate", [16_000, 24_000, 48_000])
def test_silence_and_noise_are_told_at_any_rate(rate):
    drawn = np.random.default_rng(0).standard_normal(3 * rate).astype(np.float32)
    assert fault_of(drawn * 0.1, rate, 3.0) == "noise"
    assert fault_of(drawn * 0, rate, 3.0) == "silent"


@pytest.mark.parametrize("length", [0, 1, 100, 800])
def test_a_breath_of_samples_is_judged_by_its_length_alone(length):
    assert fault_of(np.full(length, 0.1, np.float32), RATE, 0.05) == ""
    assert fault_of(np.full(length, 0.1, np.float32), RATE, 5.0) in ("cut", "silent")


def test_what_should_take_longer_may():
    assert longest_s(0.0) > 1.0
    assert longest_s(10.0) == pytest.approx(31.5)
