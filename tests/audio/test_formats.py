import pytest

from audio.encode import Encoder
from audio.formats import CONTAINERS, check_rate, default_rate, mime
from core.speech import AudioFormat


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("mp3", "audio/mpeg"),
        ("opus", "audio/ogg"),
        ("aac", "audio/aac"),
        ("flac", "audio/flac"),
        ("wav", "audio/wav"),
        ("pcm", "audio/pcm"),
    ],
)
def test_each_format_has_its_media_type(format, expected):
    assert mime(AudioFormat(format)) == expected


def test_the_table_is_complete_and_says_what_streams():
    assert {format.value for format, container in CONTAINERS.items() if container.is_streamed} == {
        *("mp3", "opus", "aac", "pcm")
    }
    assert set(CONTAINERS) == set(AudioFormat)


@pytest.mark.parametrize(
    ("format", "source_rate", "rate"),
    [
        pytest.param("mp3", 22_050, 24_000, id="clients take mp3 for 24 kHz"),
        pytest.param("pcm", 48_000, 24_000, id="pcm has no header to say otherwise"),
        pytest.param("opus", 24_000, 24_000, id="opus is not asked for what is not there"),
        pytest.param("opus", 48_000, 48_000, id="opus keeps a better engine's treble"),
        pytest.param("opus", 44_100, 48_000, id="opus knows no 44.1 kHz"),
    ],
)
def test_a_request_without_a_rate_gets_the_one_that_clients_expect(format, source_rate, rate):
    assert default_rate(AudioFormat(format), source_rate) == rate


@pytest.mark.parametrize(("format", "rate"), [("opus", 44_100), ("mp3", 23_999), ("wav", 96_000), ("pcm", 0)])
def test_a_rate_that_a_format_cannot_carry_is_refused_with_those_it_can(format, rate):
    with pytest.raises(ValueError, match=r"8000, .*48000"):
        check_rate(AudioFormat(format), rate)


@pytest.mark.parametrize("format", AudioFormat)
def test_every_rate_in_the_table_can_be_made(format, tone, decode):
    for rate in CONTAINERS[format].rates:
        encoder = Encoder(format, source_rate=24_000, rate=rate, streamed=False)
        encoder.feed(tone(0.3))
        data = encoder.finish()
        if format is AudioFormat.PCM:
            assert len(data) / 2 / rate == pytest.approx(0.3, abs=0.002)
            continue
        samples, carried = decode(data)
        assert carried == (48_000 if format is AudioFormat.OPUS else rate)
        assert 0.29 < len(samples) / carried < 0.75
