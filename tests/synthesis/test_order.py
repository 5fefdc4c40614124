"""What makes two answers the same, and what does not."""

from dataclasses import replace

import pytest

from core.speech import AudioFormat, Params, Reference, SpeechRequest, Traits
from synthesis.order import Order

TRAITS = Traits("tone", "1", 24_000, 2, {"en": 100})
ORDER = Order(SpeechRequest("One two.", format=AudioFormat.WAV), Reference("alloy"), "en", TRAITS)


@pytest.mark.parametrize(
    "change",
    [
        {"text": "One two!"},
        {"text": "one two."},
        {"format": AudioFormat.MP3},
        {"sample_rate": 16_000},
        {"speed": 1.0001},
        {"params": Params(temperature=0.5)},
        {"params": Params(cfg_value=2.0)},
        {"seed": 0},
        {"streamed": False},
    ],
)
def test_whatever_changes_the_sound_changes_the_key(change):
    assert replace(ORDER, request=replace(ORDER.request, **change)).key() != ORDER.key()


@pytest.mark.parametrize(
    "change",
    [
        {"voice": Reference("nova")},
        {"voice": Reference("alloy", "What is said in it.")},
        {"language": "fr"},
        {"traits": replace(TRAITS, revision="2")},
        {"traits": replace(TRAITS, backend="other")},
        {"traits": replace(TRAITS, sample_rate=48_000)},
    ],
)
def test_so_does_another_voice_language_or_model(change):
    opus = replace(ORDER, request=replace(ORDER.request, format=AudioFormat.OPUS))
    assert replace(opus, **change).key() != opus.key()


@pytest.mark.parametrize(
    "change",
    [{"voice": "ALLOY"}, {"language": "en-US"}, {"client": "10.0.0.7"}, {"max_wait_s": 3.0}, {"paced": True}],
)
def test_who_asks_and_how_it_is_spelled_does_not(change):
    assert replace(ORDER, request=replace(ORDER.request, **change)).key() == ORDER.key()


@pytest.mark.parametrize("format", [AudioFormat.MP3, AudioFormat.OPUS, AudioFormat.AAC, AudioFormat.PCM])
def test_what_leaves_in_the_same_bytes_either_way_has_one_key(format):
    request = replace(ORDER.request, format=format)
    keys = {replace(ORDER, request=replace(request, streamed=streamed)).key() for streamed in (False, True)}
    assert len(keys) == 1


def test_those_who_are_ready_to_wait_for_other_times_do_not_hear_one_recording():
    def flight(**change):
        order = replace(ORDER, request=replace(ORDER.request, **change))
        return order.flight(order.key(), 60.0)

    assert flight() == flight(client="10.0.0.7")
    assert flight() == flight(paced=True)
    assert flight() != flight(max_wait_s=1.0)
    assert flight(text="word " * 1000) != flight(text="word " * 1000, paced=True)
    assert flight(text="777,777,777 " * 14) != flight(text="777,777,777 " * 14, paced=True)


@pytest.mark.parametrize(
    ("asked_s", "waited_s", "left_s"),
    [(None, None, None), (5.0, None, 5.0), (None, 2.0, 8.0), (5.0, 2.0, 3.0), (1.0, 2.0, 0.0)],
)
def test_the_time_that_it_took_to_load_counts(asked_s, waited_s, left_s):
    order = replace(ORDER, request=replace(ORDER.request, max_wait_s=asked_s), waited_s=waited_s)
    assert order.wait_s(10.0) == left_s
    assert replace(order, waited_s=2.0).wait_s(0.0) == (None if asked_s is None else max(0.0, asked_s - 2.0))
