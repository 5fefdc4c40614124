"""What makes two answers the same, and what does not."""

from dataclasses import replace
from pathlib import Path

import pytest

from cache.key import key_of, version_of
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


def test_those_who_are_given_up_at_other_times_do_not_hear_one_recording():
    def flight(**change):
        order = replace(ORDER, request=replace(ORDER.request, **change))
        return order.flight(order.key(), 60.0)

    assert flight() == flight(client="10.0.0.7")
    assert flight() == flight(paced=True)
    assert flight() != flight(max_wait_s=1.0)
    assert flight(text="word " * 1000) != flight(text="word " * 1000, paced=True)


def test_a_key_is_a_plain_name_whatever_the_text_holds():
    assert key_of({"text": "../../etc/passwd\0\ud800"}).isalnum()
    with pytest.raises(ValueError, match="JSON"):
        key_of({"speed": float("nan")})


def test_a_rule_that_reads_otherwise_makes_another_version(tmp_path: Path):
    rule = tmp_path / "rule.py"
    rule.write_text("PAUSE_S = 0.3")
    before = version_of([tmp_path])
    assert version_of([tmp_path]) == before
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "rule.pyc").write_bytes(b"x")
    assert version_of([tmp_path]) == before
    rule.write_text("PAUSE_S = 0.4")
    assert version_of([tmp_path]) != before
