"""Recordings of any kind, good ones whatever they are called, and what only pretends to be one."""

import io
import os
import struct
import subprocess
import sys
import textwrap
import time
import wave

import av
import numpy as np
import pytest

from audio.decode import TooLong, Undecodable, decode, kind_of
from audio.encode import Encoder
from core.speech import AudioFormat
from harness.server import PROJECT

RATE = 24_000
TONE = (0.3 * np.sin(2 * np.pi * 440 / RATE * np.arange(2 * RATE))).astype(np.float32)


def encoded(format: AudioFormat) -> bytes:
    encoder = Encoder(format, source_rate=RATE, streamed=False)
    return encoder.feed(TONE) + encoder.finish()


def contained(muxer: str, codec: str, rate: int = 48_000, layout: str = "stereo") -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=muxer) as container:
        stream = container.add_stream(codec, rate, layout=layout)
        channels = 1 if layout == "mono" else 2
        tone = 0.3 * np.sin(2 * np.pi * 440 / rate * np.arange(2 * rate))
        frame = av.AudioFrame.from_ndarray(np.tile(tone, (channels, 1)).astype(np.float32), "fltp", layout)
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
