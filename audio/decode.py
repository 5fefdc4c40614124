"""A recording that somebody sent, to samples: by its content, bounded, and without a look at anything else."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import av
import numpy as np
from av import AudioFrame, AudioStream
from av.audio.resampler import AudioResampler
from av.container import InputContainer
from av.error import FFmpegError

from core.speech import Samples

DEMUXERS = ("wav", "flac", "mp3", "ogg", "mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm", "aac")
"""What a recording may come in, by FFmpeg's names. Its others include playlists, which open further files."""

MAX_CHANNELS = 8

MIN_RATE, MAX_RATE = 4_000, 384_000
"""Hz. A header may say any number, and memory and time of the resampler grow with it."""


class Undecodable(ValueError):
    """These bytes are no recording that can be read."""


class TooLong(ValueError):
    """It goes on beyond the seconds that were asked for; the rest was not decoded."""


_FAULTS = (FFmpegError, IndexError, MemoryError, OverflowError, ValueError)
"""Of PyAV, over bytes that it cannot read. ValueError: the sound changes its rate or channels on the way."""

_UNREADABLE = "This is no recording that can be read."
_TOO_MANY = f"A recording may have {MAX_CHANNELS} channels at most."


def decode(data: bytes, *, rate: int, max_s: float) -> Samples:
    """Mono float32 at `rate` Hz of a wav, flac, mp3, ogg, m4a or webm file in memory.

    Takes about 1 % of the recording's own length, of `max_s` seconds at most. Raises Undecodable, TooLong.
    """
    pieces: list[Samples] = []
    count = 0
    try:
        with _opened(data) as container:
            for piece in _decoded(container, rate):
                pieces.append(piece)
                count += len(piece)
                if count > max_s * rate:
                    raise TooLong(f"The recording is longer than {max_s:.0f} s.")
    except (TooLong, Undecodable):
        raise
    except _FAULTS as error:
        raise Undecodable(_UNREADABLE) from error
    if not count:
        raise Undecodable("This recording holds no sound.")
    return np.concatenate(pieces)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a recording comes in. name: wav, flac, mp3, ogg, m4a, webm or aac. rate: Hz."""

    name: str
    rate: int
    channels: int


def kind_of(data: bytes) -> Kind:
    """What a recording comes in, whatever its file is called. Raises Undecodable."""
    try:
        with _opened(data) as container:
            name, codec = container.format.name, _track(container).codec_context
            shown = {"mov,mp4,m4a,3gp,3g2,mj2": "m4a", "matroska,webm": "webm"}.get(name, name)
            return Kind(shown, codec.sample_rate, codec.channels)
    except Undecodable:
        raise
    except _FAULTS as error:
        raise Undecodable(_UNREADABLE) from error


def _opened(data: bytes) -> InputContainer:
    return av.open(
        io.BytesIO(data),
        "r",
        metadata_errors="replace",  # old titles are in any alphabet
        container_options={"format_whitelist": ",".join(DEMUXERS), "protocol_whitelist": ""},
        io_open=_refuse,  # a file that names another one
    )


def _refuse(url: str, flags: int, options: dict[str, str]) -> NoReturn:
    raise PermissionError("A recording may not name another file.")


def _track(container: InputContainer) -> AudioStream:
    """The first track of sound. Raises Undecodable where it is in a codec that FFmpeg does not know, IndexError where
    there is none.
    """
    track = container.streams.audio[0]
    if track.codec_context is None:
        raise Undecodable(_UNREADABLE)
    return track


def _decoded(container: InputContainer, rate: int) -> Iterator[Samples]:
    """Pieces of the first track of sound."""
    track = _track(container)
    if track.codec_context.channels > MAX_CHANNELS:
        raise Undecodable(_TOO_MANY)
    if not MIN_RATE <= track.codec_context.sample_rate <= MAX_RATE:
        raise Undecodable(f"A recording may have {MIN_RATE} to {MAX_RATE} Hz.")
    # FFmpeg's own way to one channel makes two equal ones louder by 3 dB, and clips them.
    resampler = AudioResampler(format="flt", rate=rate)
    first: tuple[int, int] | None = None
    for frame in container.decode(track):
        shape = frame.sample_rate, frame.layout.nb_channels
        first = first or shape
        if shape != first:  # the resampler tells only where it has work to do
            raise Undecodable("The sound of a recording may not change its rate or its channels on the way.")
        if shape[1] > MAX_CHANNELS:  # whatever the header said
            raise Undecodable(_TOO_MANY)
        yield from (_mono(resampled) for resampled in resampler.resample(frame))
    yield from (_mono(resampled) for resampled in resampler.resample(None))


def _mono(frame: AudioFrame) -> Samples:
    """The mean of all channels of a packed frame.

    Never of a planar one: PyAV counts planes up to a null pointer, and behind eight of them FFmpeg has put none.
    """
    assert not frame.format.is_planar
    mixed: Samples = frame.to_ndarray().reshape(-1, frame.layout.nb_channels).mean(axis=1, dtype=np.float32)
    return mixed
