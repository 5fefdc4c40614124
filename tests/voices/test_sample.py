"""Recordings that a voice can be made from, and what is said of those that are none."""

import io
import wave

import numpy as np
import pytest

from core.errors import BadSample
from core.speech import REFERENCE_RATE, Reference
from voices.sample import MAX_S, reference

RATE = 16_000


def riff(samples: np.ndarray, rate: int = RATE) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        out.writeframes(np.clip(np.rint(samples * 32767), -32768, 32767).astype("<i2").tobytes())
    return file.getvalue()


def tone(seconds: float, level: float = 0.3, hz: float = 200.0) -> np.ndarray:
    return level * np.sin(2 * np.pi * hz / RATE * np.arange(int(seconds * RATE)))


def test_a_voice_is_named_by_the_bytes_of_its_recording():
    voice = reference(riff(tone(2)), transcript="Hello.")
    assert voice.sample is not None
    assert len(voice.sample) == pytest.approx(2 * REFERENCE_RATE, abs=200)
    assert voice == Reference(voice.key, "Hello.")
    assert voice.key != reference(riff(tone(2, hz=201))).key
    assert "sample" not in repr(voice)


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        pytest.param(tone(0.2), "0.2 s; it should have 1 s", id="0.2 s"),
        pytest.param(tone(MAX_S + 2), "120 s at most", id="too long"),
        pytest.param(np.zeros(RATE * 3), "silent", id="silence"),
        pytest.param(tone(3, level=0.001), "too quiet", id="too quiet"),
        pytest.param(tone(3, level=50), "too loud", id="clipped to a square"),
    ],
)
def test_what_is_no_good_is_told_why(samples, said):
    with pytest.raises(BadSample, match=said) as refused:
        reference(riff(samples), param="custom_voice_file")
    assert refused.value.param == "custom_voice_file"


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param(tone(1.01), id="just long enough"),
        pytest.param(np.concatenate([np.zeros(RATE * 8), tone(2, level=0.1)]), id="much silence and some speech"),
        pytest.param(tone(3, level=1.0), id="loud"),
        pytest.param(tone(3, level=0.01), id="quiet"),
    ],
)
def test_what_is_good_enough_is_taken(samples):
    assert reference(riff(samples)).sample is not None


@pytest.mark.parametrize("data", [b"", b"This is text that is called sample.wav.", b"RIFF\0\0\0\0WAVE"])
def test_what_is_no_recording_is_told_what_would_be_one(data):
    with pytest.raises(BadSample, match="wav, flac, mp3, ogg, m4a or webm"):
        reference(data)
