"""Samples to the bytes of one answer, in any format, while they are still being made."""

import io
import struct
from typing import Protocol, cast

import av
import numpy as np
import numpy.typing as npt
from av import AudioFrame
from av.audio.stream import AudioStream

from audio.filters import FilterChain, check_tempo
from audio.formats import CONTAINERS, Codec, check_rate, default_rate, mime
from core.speech import AudioFormat, Samples

EMPTY_ANSWER_S = 0.02
"""Silence in an answer that was fed nothing: players refuse a container without any sound."""

UNKNOWN_SIZE = 0xFFFF_FFFF
"""In a RIFF header: read until the stream ends."""

WAV_HEADER_BYTES = 44


class Encoder:
    """The encoder of one answer: `feed`, `feed`, ..., `finish`, `close`.

    Calls may come from different threads, one at a time. They block for about 1 % of the audio's own length.
    """

    def __init__(
        self, format: AudioFormat, *, source_rate: int, rate: int | None = None, tempo: float = 1.0, streamed: bool
    ) -> None:
        """Check only: codec and filters take a millisecond to open, in the thread that feeds them first.

        source_rate: Hz of what is fed. rate: Hz of the answer, None for the format's own.
        tempo: 0.25 to 4, above 1 speaks faster at the same pitch.
        streamed: bytes leave with the samples and no size is written; otherwise `finish` returns the whole file,
            with exact sizes.
        Raises ValueError for a rate that the format cannot carry, or a tempo out of range.
        """
        self.rate = default_rate(format, source_rate) if rate is None else rate
        self.mime = mime(format)
        check_rate(format, self.rate)
        check_tempo(tempo)
        self._format, self._source_rate, self._tempo, self._is_streamed = format, source_rate, tempo, streamed
        self._chain: FilterChain | None = None
        self._track: _Track | None = None
        self._is_empty = True
        self._is_closed = False

    def feed(self, samples: Samples) -> bytes:
        """Take mono float32 samples, shape (n,), at the source rate; what is beyond [-1, 1] is clipped.

        Returns the bytes that are ready, often none; always none unless streamed. Raises ValueError once closed.
        """
        self._open()
        return self._write(self._chain.feed(samples) if self._chain else samples)

    def finish(self) -> bytes:
        """Return all that is left, to the last sample, and close. Raises ValueError once closed."""
        track = self._open()
        rest = self._write(self._chain.finish()) if self._chain else b""
        if self._is_empty:
            rest += self._write(np.zeros(round(EMPTY_ANSWER_S * self.rate), np.float32))
        rest += track.finish()
        self.close()
        return rest

    def close(self) -> None:
        """Free codec and filters. Safe at any time and more than once."""
        self._is_closed = True
        track, self._track, self._chain = self._track, None, None
        if track is not None:
            track.close()

    def _write(self, samples: Samples) -> bytes:
        track = self._open()
        if not len(samples):
            return b""
        self._is_empty = False
        return track.write(np.clip(samples, -1.0, 1.0))

    def _open(self) -> "_Track":
        """Codec and filters, opened now where they are not yet. Raises ValueError once closed."""
        if self._is_closed:
            raise ValueError("The encoder is closed.")
        if self._track is None:
            if self.rate != self._source_rate or self._tempo != 1.0:
                self._chain = FilterChain(self._source_rate, self.rate, tempo=self._tempo)
            self._track = _open_track(self._format, self.rate, streamed=self._is_streamed)
        return self._track


class _Track(Protocol):
    """Where samples in [-1, 1] at the answer's own rate become bytes."""

    def write(self, samples: Samples) -> bytes:
        """Take at least one sample; return the bytes that may leave."""

    def finish(self) -> bytes:
        """Return the rest."""

    def close(self) -> None:
        """Free everything. Safe more than once."""


def _open_track(format: AudioFormat, rate: int, *, streamed: bool) -> _Track:
    codec = CONTAINERS[format].codec
    if codec is not None:
        return _CodedTrack(codec, rate, streamed=streamed)
    return _PlainTrack(rate, has_header=format is AudioFormat.WAV, streamed=streamed)


class _PlainTrack:
    """16-bit little-endian samples, with a RIFF header for wav."""

    def __init__(self, rate: int, *, has_header: bool, streamed: bool) -> None:
        self._rate = rate
        self._has_header = has_header
        self._is_streamed = streamed
        self._kept = bytearray()
        if has_header and streamed:
            self._kept += _wav_header(rate, UNKNOWN_SIZE)

    def write(self, samples: Samples) -> bytes:
        self._kept += _int16(samples).astype("<i2", copy=False).tobytes()
        return self._take() if self._is_streamed else b""

    def finish(self) -> bytes:
        if self._has_header and not self._is_streamed:
            return _wav_header(self._rate, len(self._kept)) + self._take()
        return self._take()

    def close(self) -> None:
        self._kept.clear()

    def _take(self) -> bytes:
        taken = bytes(self._kept)
        self._kept.clear()
        return taken


class _Outlet:
    """A file that FFmpeg can only write to, so that it writes no size that it would have to correct later."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def take(self) -> bytes:
        """Bytes since the last call."""
        taken = bytes(self._written)
        self._written.clear()
        return taken


class _CodedTrack:
    """One codec in its container."""

    def __init__(self, codec: Codec, rate: int, *, streamed: bool) -> None:
        self._sample_format = codec.sample_format
        self._rate = rate
        self._position = 0
        self._file = _Outlet() if streamed else io.BytesIO()
        # Without the flag the muxer keeps 32 KiB to itself, which is seconds of speech.
        self._container = av.open(
            self._file, "w", format=codec.muxer, options={"flush_packets": "1", **codec.muxer_options}
        )
        stream = self._container.add_stream(
            codec.name, rate, options=dict(codec.options), layout="mono", format=codec.sample_format
        )
        self._stream = cast(AudioStream, stream)
        if bit_rate := codec.bit_rate(rate):
            self._stream.bit_rate = bit_rate
        self._container.start_encoding()

    def write(self, samples: Samples) -> bytes:
        row: npt.NDArray[np.float32] | npt.NDArray[np.int16] = samples
        if self._sample_format == "s16":
            row = _int16(samples)
        frame = AudioFrame.from_ndarray(row[np.newaxis], format=self._sample_format, layout="mono")
        frame.sample_rate = self._rate
        frame.pts = self._position
        self._position += len(samples)
        self._container.mux(self._stream.encode(frame))
        return self._file.take() if isinstance(self._file, _Outlet) else b""

    def finish(self) -> bytes:
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return self._file.take() if isinstance(self._file, _Outlet) else self._file.getvalue()

    def close(self) -> None:
        self._container.close()


def _int16(samples: Samples) -> npt.NDArray[np.int16]:
    scaled: npt.NDArray[np.int16] = np.rint(samples * 32767.0).astype(np.int16)
    return scaled


def _wav_header(rate: int, data_bytes: int) -> bytes:
    """RIFF, format and data chunks of mono 16-bit sound: 44 bytes.

    data_bytes: of the samples that follow, or UNKNOWN_SIZE.
    """
    riff_bytes = min(UNKNOWN_SIZE, data_bytes + WAV_HEADER_BYTES - 8)
    frame_bytes = 2
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        *(b"RIFF", riff_bytes, b"WAVE"),
        *(b"fmt ", 16, 1, 1, rate, rate * frame_bytes, frame_bytes, 16),
        *(b"data", data_bytes),
    )
