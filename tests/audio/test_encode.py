import gc
import io
import struct
import wave
from concurrent.futures import ThreadPoolExecutor

import av
import numpy as np
import psutil
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from audio.encode import Encoder
from audio.level import dbfs, first_audible
from core.speech import AudioFormat

RATE = 24_000
CODER_DELAY_S = 0.1
"""mp3 and aac decode to this much more than was fed at most: their streams have no field that tells of it."""

every_format = pytest.mark.parametrize("format", AudioFormat, ids=str)
both_ways = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])


def encode(format, samples, *cuts, streamed=True, source_rate=RATE, **options) -> bytes:
    encoder = Encoder(AudioFormat(format), source_rate=source_rate, streamed=streamed, **options)
    return b"".join([*map(encoder.feed, np.split(samples, sorted(cuts))), encoder.finish()])


def speech_like(seconds: float) -> np.ndarray:
    """Syllables: a rising sound, four times a second."""
    at = np.arange(round(seconds * RATE)) / RATE
    return (0.5 * np.sin(2 * np.pi * 4 * at) ** 2 * np.sin(2 * np.pi * (200 + 5 * at) * at)).astype(np.float32)


def pcm_of(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<i2")


def ogg_pages(data: bytes) -> list[tuple[int, int]]:
    """(flags, granule) of each page; fails where bytes lie between pages."""
    pages, at = [], 0
    while at < len(data):
        magic, _, flags, granule, _, _, _, count = struct.unpack_from("<4sBBqIIIB", data, at)
        assert magic == b"OggS"
        pages.append((flags, granule))
        at += 27 + count + sum(data[at + 27 : at + 27 + count])
    assert at == len(data)
    return pages


def adts_frames(data: bytes) -> int:
    """How many frames; fails where they do not follow each other to the last byte."""
    count = at = 0
    while at < len(data):
        assert data[at] == 0xFF
        assert data[at + 1] & 0xF6 == 0xF0
        at += (data[at + 3] & 3) << 11 | data[at + 4] << 3 | data[at + 5] >> 5
        count += 1
    assert at == len(data)
    return count


@pytest.mark.parametrize("count", [1, 12_345, 48_000])
def test_a_whole_wav_states_its_exact_sizes(count):
    data = encode("wav", speech_like(2)[:count], streamed=False)
    assert struct.unpack_from("<I", data, 4)[0] == len(data) - 8
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate(), file.getnframes()) == (1, 2, RATE, count)
    samples, rate = soundfile.read(io.BytesIO(data), dtype="int16")
    assert (len(samples), rate) == (count, RATE)
    assert np.array_equal(samples, pcm_of(data[44:]))


def test_a_streamed_wav_has_one_header_that_leaves_its_size_open(tone):
    encoder = Encoder(AudioFormat.WAV, source_rate=RATE, streamed=True)
    pieces = [encoder.feed(tone(0.2)) for _ in range(5)] + [encoder.finish()]
    data = b"".join(pieces)
    assert pieces[0][:4] == b"RIFF"
    assert data.count(b"RIFF") == 1
    assert data[4:8] == data[40:44] == b"\xff" * 4
    assert data[44:] == encode("wav", np.tile(tone(0.2), 5), streamed=False)[44:]


@both_ways
def test_a_minute_of_mp3_decodes_whole_and_states_no_length(streamed, decode):
    data = encode("mp3", speech_like(60), 6_000, 700_000, streamed=streamed)
    assert not any(mark in data for mark in (b"Xing", b"Info", b"ID3", b"TAG"))
    samples, rate = decode(data)
    assert rate == RATE
    assert len(samples) / rate == pytest.approx(60, abs=CODER_DELAY_S)
    with av.open(io.BytesIO(data)) as container:
        assert container.duration / 1e6 == pytest.approx(60, rel=0.02)
    assert len(soundfile.read(io.BytesIO(data))[0]) / rate == pytest.approx(60, rel=0.02)


@pytest.mark.parametrize("format", ["mp3", "aac"])
def test_two_answers_joined_still_decode(format, decode, tone):
    one, two = encode(format, tone(0.7)), encode(format, tone(1.1, hz=600))
    joined, rate = decode(one + two)
    assert len(joined) / rate == pytest.approx(1.8, abs=2 * CODER_DELAY_S)
    assert dbfs(joined[-rate // 2 : -rate // 4]) == pytest.approx(dbfs(tone(1)), abs=1)


def test_mp3_may_be_cut_at_any_frame(decode, tone):
    data = encode("mp3", tone(1))
    frame_bytes = 96_000 // 8 * 576 // RATE
    samples, _ = decode(data[10 * frame_bytes :])
    assert dbfs(samples[2 * 576 : 20 * 576]) == pytest.approx(dbfs(tone(1)), abs=0.5)


@both_ways
@pytest.mark.parametrize("count", [1, 479, 480, 481, 12_345, 36_001, 72_000])
def test_opus_ends_on_the_exact_sample_with_its_end_flag(streamed, count, decode):
    data = encode("opus", speech_like(3)[:count], streamed=streamed)
    pages = ogg_pages(data)
    assert data[28:36] == b"OpusHead"
    pre_skip = struct.unpack_from("<H", data, 38)[0]
    assert [flags & 4 for flags, _ in pages] == [0] * (len(pages) - 1) + [4]
    assert pages[-1][1] - pre_skip == 2 * count
    samples, rate = decode(data)
    assert (len(samples), rate) == (2 * count, 48_000)


def test_opus_pages_are_short_from_the_first_on(tone):
    granules = [granule for _, granule in ogg_pages(encode("opus", tone(2)))[2:]]
    assert max(np.diff([0, *granules])) <= 48_000 * 0.06


def test_aac_is_whole_frames_and_nothing_else(tone):
    assert adts_frames(encode("aac", tone(1))) == -(-RATE // 1024) + 1


@pytest.mark.parametrize(
    ("streamed", "has_sums"), [pytest.param(True, False, id="streamed"), pytest.param(False, True, id="whole")]
)
def test_flac_states_length_and_checksum_where_it_can(streamed, has_sums, tone, decode):
    samples = tone(1.234)
    data = encode("flac", samples, streamed=streamed)
    count = struct.unpack(">Q", data[18:26])[0] & (1 << 36) - 1
    assert (count, any(data[26:42])) == ((len(samples), True) if has_sums else (0, False))
    assert np.array_equal(decode(data)[0] * 32768, pcm_of(encode("pcm", samples)))
    if has_sums:
        assert np.array_equal(soundfile.read(io.BytesIO(data), dtype="int16")[0], pcm_of(encode("pcm", samples)))


@both_ways
@pytest.mark.parametrize(
    ("format", "start"),
    [("mp3", b"\xff\xf3"), ("opus", b"OggS"), ("aac", b"\xff\xf1"), ("flac", b"fLaC"), ("wav", b"RIFF")],
)
def test_bytes_are_of_the_format_that_was_asked_for(format, start, streamed, tone):
    assert encode(format, tone(0.3), streamed=streamed).startswith(start)


@pytest.mark.parametrize("source_rate", [22_050, 44_100, 48_000])
def test_pcm_is_24_khz_whatever_the_engine_makes(source_rate, tone):
    samples = tone(1.5, rate=source_rate)
    data = encode("pcm", samples, source_rate=source_rate)
    with wave.open(io.BytesIO(encode("wav", samples, source_rate=source_rate, streamed=False))) as file:
        seconds = file.getnframes() / file.getframerate()
    assert len(data) / 2 / 24_000 == pytest.approx(seconds) == pytest.approx(1.5, rel=0.001)


@both_ways
@pytest.mark.parametrize("tempo", [0.25, 0.5, 2.0, 4.0])
@every_format
def test_tempo_gives_the_length_that_was_asked_for(format, tempo, streamed, decode):
    data = encode(format, speech_like(2), 5_000, 9_000, streamed=streamed, tempo=tempo)
    seconds = len(data) / 2 / RATE if format == "pcm" else (lambda found: len(found[0]) / found[1])(decode(data))
    delay_s = CODER_DELAY_S if format in ("mp3", "aac") else 0
    assert 2 / tempo * 0.99 <= seconds <= 2 / tempo * 1.01 + delay_s


@every_format
def test_the_last_word_is_in_the_last_bytes(format, decode, tone):
    samples = np.concatenate((np.zeros(RATE, np.float32), tone(0.03)))
    data = encode(format, samples)
    heard = pcm_of(data) / 32768 if format == "pcm" else decode(data)[0]
    rate = 48_000 if format == "opus" else RATE
    end = np.abs(heard[first_audible(heard, -30) :])
    assert np.count_nonzero(end > 0.05) / rate == pytest.approx(0.027, abs=0.008)


@every_format
def test_a_fifth_of_a_second_already_sounds(format, decode, tone):
    encoder = Encoder(format, source_rate=RATE, streamed=True)
    first = encoder.feed(tone(0.2))
    encoder.close()
    heard = pcm_of(first) / 32768 if format == "pcm" else decode(first)[0]
    assert dbfs(heard) > -20


@every_format
def test_a_streamed_answer_holds_the_same_sound_as_a_whole_one(format, decode):
    samples = speech_like(3)
    streamed, whole = encode(format, samples, 5_000, 30_000), encode(format, samples, streamed=False)
    if format == "pcm":
        assert streamed == whole
    else:
        assert np.array_equal(decode(streamed)[0], decode(whole)[0])


@pytest.mark.parametrize("format", [f for f in AudioFormat if f != "opus"], ids=str)
@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 12_000), max_size=8))
def test_bytes_do_not_depend_on_how_samples_come(format, cuts):
    samples = speech_like(0.5)
    assert encode(format, samples, *cuts) == encode(format, samples)


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 12_000), max_size=8))
def test_opus_sizes_do_not_depend_on_how_samples_come(cuts):
    """Only sizes and positions: each stream has a serial number of its own, so that streams can be chained."""
    sliced, whole = encode("opus", speech_like(0.5), *cuts), encode("opus", speech_like(0.5))
    assert ogg_pages(sliced) == ogg_pages(whole)
    assert len(sliced) == len(whole)


@both_ways
@every_format
def test_an_answer_that_was_fed_nothing_is_a_valid_one(format, streamed, decode):
    encoder = Encoder(format, source_rate=RATE, streamed=streamed, tempo=1.5)
    assert encoder.feed(np.zeros(0, np.float32)) == b""
    data = encoder.finish()
    if format == "pcm":
        assert len(data) == 960
    else:
        samples, rate = decode(data)
        assert 0.02 <= len(samples) / rate < 0.15
        assert not first_audible(samples)


@every_format
def test_a_whole_answer_leaves_at_once(format, tone):
    encoder = Encoder(format, source_rate=RATE, streamed=False)
    assert encoder.feed(tone(3)) == b""
    assert len(encoder.finish()) > 5_000


def test_samples_beyond_full_scale_are_clipped_rather_than_wrapped():
    assert pcm_of(encode("pcm", np.array([1.5, -1.5, 0], np.float32))).tolist() == [32767, -32767, 0]


@both_ways
@every_format
def test_closing_is_safe_at_any_time_and_final(format, streamed, tone):
    fresh = Encoder(format, source_rate=RATE, streamed=streamed)
    fresh.close()
    used = Encoder(format, source_rate=RATE, tempo=2.0, streamed=streamed)
    used.feed(tone(0.3))
    used.close()
    used.close()
    for call in (lambda: used.feed(tone(0.3)), used.finish, fresh.finish):
        with pytest.raises(ValueError, match="closed"):
            call()


@pytest.mark.parametrize(
    "options", [{"rate": 96_000}, {"rate": 23_000}, {"tempo": 5.0}, {"tempo": 0.0}, {"tempo": float("nan")}]
)
def test_what_cannot_be_made_is_refused_at_once(options):
    with pytest.raises(ValueError, match=r"carries|tempo"):
        Encoder(AudioFormat.MP3, source_rate=RATE, streamed=True, **options)


def test_threads_may_take_turns(tone):
    encoder = Encoder(AudioFormat.MP3, source_rate=22_050, tempo=1.2, streamed=True)
    pieces = []
    for _ in range(4):
        with ThreadPoolExecutor(1) as thread:
            pieces.append(thread.submit(encoder.feed, tone(0.25, rate=22_050)).result())
    pieces.append(encoder.finish())
    assert b"".join(pieces) == encode("mp3", np.tile(tone(0.25, rate=22_050), 4), source_rate=22_050, tempo=1.2)


@pytest.mark.slow
def test_two_thousand_answers_leave_no_memory_behind(tone):
    samples, formats = tone(0.1), list(AudioFormat)

    def some(count):
        for index in range(count):
            encoder = Encoder(formats[index % 6], source_rate=RATE, tempo=1.5, streamed=index % 4 > 1)
            encoder.feed(samples)
            (encoder.close if index % 3 else encoder.finish)()
        gc.collect()
        return psutil.Process().memory_info().rss

    before = some(200)
    assert some(2_000) - before < 4 * 2**20
