"""Recordings of any kind, good ones whatever they are called, and what only pretends to be one."""

import io
import os
import struct
import subprocess
import sys
import textwrap
import time
import wave
from pathlib import Path

import av
import numpy as np
import pytest

from audio.decode import MAX_CHANNELS, TooLong, Undecodable, decode, kind_of
from audio.encode import Encoder
from core.speech import AudioFormat
from harness.server import PROJECT

RATE = 24_000
TONE = (0.3 * np.sin(2 * np.pi * 440 / RATE * np.arange(2 * RATE))).astype(np.float32)


def encoded(format: AudioFormat) -> bytes:
    encoder = Encoder(format, source_rate=RATE, streamed=False)
    return encoder.feed(TONE) + encoder.finish()


LAYOUTS = {1: "mono", 2: "stereo", 3: "3.0", 4: "quad", 5: "5.0", 6: "5.1", 7: "6.1", 8: "7.1"}


def contained(muxer: str, codec: str, rate: int = 48_000, layout: str = "stereo") -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=muxer) as container:
        stream = container.add_stream(codec, rate, layout=layout)
        channels = av.AudioLayout(layout).nb_channels
        tone = 0.3 * np.sin(2 * np.pi * 440 / rate * np.arange(2 * rate))
        frame = av.AudioFrame.from_ndarray(tone.repeat(channels)[None].astype(np.float32), "flt", layout)
        frame.sample_rate = rate
        fifo = av.AudioFifo()
        fifo.write(frame)
        while piece := fifo.read(960, partial=True):
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return file.getvalue()


def riff(width: int, channels: int, rate: int, seconds: float = 2.0) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((channels, width, rate, 0, "NONE", ""))
        tone = np.sin(2 * np.pi * 440 / rate * np.arange(int(seconds * rate)))[:, None].repeat(channels, 1)
        samples = (128 + 38 * tone).astype(np.uint8) if width == 1 else (9830 * tone).astype("<i2")
        out.writeframes(samples.tobytes())
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(encoded(AudioFormat.WAV), "wav", id="wav"),
        pytest.param(encoded(AudioFormat.FLAC), "flac", id="flac"),
        pytest.param(encoded(AudioFormat.MP3), "mp3", id="mp3"),
        pytest.param(encoded(AudioFormat.OPUS), "ogg", id="ogg"),
        pytest.param(encoded(AudioFormat.AAC), "aac", id="aac"),
        pytest.param(contained("ipod", "aac"), "m4a", id="m4a"),
        pytest.param(contained("webm", "libopus"), "webm", id="webm"),
        pytest.param(riff(1, 1, 8_000), "wav", id="8 bit at 8 kHz"),
        pytest.param(riff(2, 2, 48_000), "wav", id="stereo at 48 kHz"),
    ],
)
def test_a_recording_is_read_by_its_content(data, kind):
    samples = decode(data, rate=RATE, max_s=10)
    assert kind_of(data).name == kind
    assert samples.dtype == np.float32
    assert len(samples) / RATE == pytest.approx(2.0, abs=0.1)
    spectrum = np.abs(np.fft.rfft(samples[: RATE * 3 // 2]))
    assert spectrum.argmax() / 1.5 == pytest.approx(440, abs=2)
    assert np.sqrt(np.mean(samples[2000:-4000] ** 2)) == pytest.approx(0.21, rel=0.1)


def patched(data: bytes, at: int, layout: str, value: int) -> bytes:
    """A wav file whose header says something else."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, at, value)
    return bytes(changed)


def titled(data: bytes, title: bytes) -> bytes:
    """A wav file with a title behind its header."""
    tag = b"INFOINAM" + struct.pack("<I", len(title)) + title
    listed = b"LIST" + struct.pack("<I", len(tag)) + tag
    return data[:4] + struct.pack("<I", len(data) - 8 + len(listed)) + data[8:36] + listed + data[36:]


def test_a_title_in_an_old_alphabet_is_nobody_s_concern():
    data = titled(riff(2, 1, RATE), b"Zo\xeb\0")
    assert kind_of(data).name == "wav"
    assert len(decode(data, rate=RATE, max_s=10)) == 2 * RATE


PLAYLIST = b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"RIFF", id="four bytes"),
        pytest.param(b"This is text that is called sample.wav. " * 200, id="text"),
        pytest.param(os.urandom(100_000), id="noise"),
        pytest.param(encoded(AudioFormat.WAV)[:44], id="a header without sound"),
        pytest.param(patched(riff(2, 1, RATE), 20, "<H", 0x3333), id="a codec that nobody knows"),
        pytest.param(patched(riff(2, 1, RATE), 20, "<H", 0x0092), id="a codec without a decoder"),
        pytest.param(patched(riff(2, 1, RATE, 0.3), 24, "<I", 486_563_264), id="more Hz than there are"),
        pytest.param(patched(riff(2, 1, RATE), 24, "<I", 100), id="too few Hz for a voice"),
        pytest.param(encoded(AudioFormat.AAC) + contained("adts", "aac"), id="another rate on the way"),
        pytest.param(contained("adts", "aac") + encoded(AudioFormat.AAC), id="fewer channels on the way"),
        pytest.param(PLAYLIST, id="a playlist"),
        pytest.param(b"ffconcat version 1.0\nfile '/etc/passwd'\n", id="a list of files"),
        pytest.param(b"v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=audio 5004 RTP/AVP 0\n", id="a session"),
        pytest.param(b"<MPD><Period><BaseURL>http://127.0.0.1/</BaseURL></Period></MPD>", id="a manifest"),
    ],
)
def test_what_is_no_recording_is_told_so_at_once(data):
    began = time.monotonic()
    with pytest.raises(Undecodable):
        decode(data, rate=RATE, max_s=10)
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("format", [AudioFormat.FLAC, AudioFormat.MP3, AudioFormat.OPUS])
def test_minutes_of_silence_are_not_decoded_to_their_end(format):
    encoder = Encoder(format, source_rate=RATE, streamed=False)
    data = encoder.feed(np.zeros(150 * RATE, np.float32)) + encoder.finish()
    began = time.monotonic()
    with pytest.raises(TooLong):
        decode(data, rate=RATE, max_s=20)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("tag", [0x3333, 0x0092])
def test_what_has_no_decoder_is_of_no_kind(tag):
    with pytest.raises(Undecodable):
        kind_of(patched(riff(2, 1, RATE), 20, "<H", tag))


def test_a_cut_recording_gives_what_there_is_of_it():
    data = encoded(AudioFormat.MP3)
    assert len(decode(data[: len(data) // 2], rate=RATE, max_s=10)) / RATE == pytest.approx(1.0, abs=0.2)


READ = """
import sys
from pathlib import Path
from audio.decode import Undecodable, decode
data = Path(sys.argv[1]).read_bytes()
begin, end, step = map(int, sys.argv[2:])
for at in range(begin, end, step):
    try:
        print(len(decode(data[:at] + bytes([data[at] ^ 0x5a]) + data[at + 1 :], rate=24_000, max_s=10)))
    except Undecodable as error:
        print(error)
"""
"""Reads a file once for each of some bytes of it, which is another one then."""


def read_apart(path: Path, data: bytes, *spoilt: int) -> list[str]:
    """What became of each reading, in a process of its own: a fault in a decoder ends it, and not the tests."""
    path.write_bytes(data)
    command = [sys.executable, "-c", READ, str(path), *map(str, spoilt)]
    ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.parametrize(
    ("muxer", "codec", "channels"),
    [
        *(("wav", "pcm_s16le", channels) for channels in range(1, 11)),
        *(("flac", "flac", channels) for channels in range(1, 9)),
        *(("ogg", "libopus", channels) for channels in range(1, 9)),
    ],
)
def test_as_many_channels_as_there_may_be_are_read_and_more_are_refused(tmp_path, muxer, codec, channels):
    data = contained(muxer, codec, layout=LAYOUTS.get(channels, f"{channels}C"))
    last = len(data) - 1  # of no consequence: a file may be cut anywhere
    (said,) = read_apart(tmp_path / "file", data, last, len(data), 1)
    if channels > MAX_CHANNELS:
        assert "channels at most" in said
    else:
        assert int(said) == pytest.approx(2 * RATE, abs=0.1 * RATE)


def test_no_spoilt_byte_ends_the_process(tmp_path):
    """In AAC each frame says anew how many channels it has, whatever the header did."""
    data = contained("adts", "aac", layout="mono")
    assert len(read_apart(tmp_path / "file", data, 0, len(data), 61)) > 100


@pytest.mark.parametrize("rate", [RATE, 48_000])
def test_more_channels_on_the_way_end_nothing_but_the_reading(tmp_path, rate):
    data = contained("adts", "aac", rate, "mono") + contained("adts", "aac", rate, "7.1")
    (said,) = read_apart(tmp_path / "file", data, len(data) - 1, len(data), 1)
    assert "channels" in said


def test_nothing_else_is_opened(tmp_path):
    """Seen from outside: by a process whose every opening of a file and of a connection is written down."""
    program = """
        import sys
        from audio.decode import Undecodable, decode
        seen = []
        lists = [b"#EXTM3U\\n#EXTINF:1,\\nfile://%s\\n", b"ffconcat version 1.0\\nfile '%s'\\n", b"#EXTM3U\\nhttp://127.0.0.1:9/x\\n#%s"]
        sys.addaudithook(lambda name, args: seen.append((name, args)) if name in ("open", "socket.connect") else None)
        for each in lists:
            try:
                decode(each % sys.argv[1].encode(), rate=24000, max_s=1)
            except Undecodable:
                pass
            else:
                raise SystemExit("it was read")
        raise SystemExit(f"opened: {seen}" if seen else 0)
    """
    secret = tmp_path / "secret.wav"
    secret.write_bytes(encoded(AudioFormat.WAV))
    command = [sys.executable, "-c", textwrap.dedent(program), str(secret)]
    ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert secret.stat().st_atime_ns <= secret.stat().st_mtime_ns + 10**9
