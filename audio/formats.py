"""One table of what each format is: its media type, whether it streams, the rates it carries, how it is encoded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from core.speech import OPENAI_SAMPLE_RATE, AudioFormat

COMMON_RATES: Final = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
"""Hz. All that MPEG audio knows between telephone and studio; the uncompressed formats offer the same."""

OPUS_RATES: Final = (8_000, 12_000, 16_000, 24_000, 48_000)
"""Hz. What an Opus encoder takes in; its decoders always run on a 48 kHz clock."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How FFmpeg makes a format.

    name, muxer: FFmpeg's. sample_format: what the encoder takes, mono.
    bits_per_sample, max_bit_rate: bits for each sample, and the bit/s that they never exceed; 0 for a lossless codec.
    options, muxer_options: handed to the encoder and to the muxer.
    """

    name: str
    muxer: str
    sample_format: str
    bits_per_sample: int = 0
    max_bit_rate: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    muxer_options: Mapping[str, str] = field(default_factory=dict)

    def bit_rate(self, rate: int) -> int:
        """Bit/s at a sample rate in Hz."""
        return min(self.max_bit_rate, self.bits_per_sample * rate)


@dataclass(frozen=True, slots=True)
class Container:
    """What a client gets when it names a format.

    mime: media type. is_streamed: whether a plain answer leaves while it is being made. rates: Hz, ascending.
    codec: None for plain 16-bit samples.
    """

    mime: str
    is_streamed: bool
    rates: tuple[int, ...] = COMMON_RATES
    codec: Codec | None = None


CONTAINERS: Final[Mapping[AudioFormat, Container]] = MappingProxyType(
    {
        AudioFormat.MP3: Container(
            "audio/mpeg",
            is_streamed=True,
            codec=Codec(
                "libmp3lame",
                "mp3",
                "fltp",
                bits_per_sample=4,
                max_bit_rate=128_000,
                # No frame leans on an earlier one, so that a stream may be cut or joined at any frame.
                # At this bit rate LAME's slower levels come no closer to the original, and take twice as long.
                options={"reservoir": "0", "compression_level": "7"},
                # A Xing frame would state a length that is not known yet, and lie once two answers are joined.
                muxer_options={"write_xing": "0", "id3v2_version": "0"},
            ),
        ),
        AudioFormat.OPUS: Container(
            "audio/ogg",
            is_streamed=True,
            rates=OPUS_RATES,
            codec=Codec(
                "libopus",
                "ogg",
                "flt",
                bits_per_sample=2,
                max_bit_rate=64_000,
                # The voip application filters the low end; levels above 5 cost four times the time for little.
                options={"application": "audio", "compression_level": "5", "frame_duration": "20"},
                # Microseconds. The muxer's own second-long pages would hold the first sound back.
                muxer_options={"page_duration": "60000"},
            ),
        ),
        AudioFormat.AAC: Container(
            "audio/aac",
            is_streamed=True,
            codec=Codec(
                "aac",
                "adts",
                "fltp",
                bits_per_sample=4,
                max_bit_rate=96_000,
                # The fast coder takes a fifth of the time and comes closer. bitexact: no encoder's name inside.
                options={"aac_coder": "fast", "flags": "+bitexact"},
            ),
        ),
        AudioFormat.FLAC: Container(
            "audio/flac",
            is_streamed=False,
            # Room for tags that nobody will write is 8 KiB in front of the first sound.
            codec=Codec("flac", "flac", "s16", muxer_options={"metadata_header_padding": "0", "fflags": "+bitexact"}),
        ),
        AudioFormat.WAV: Container("audio/wav", is_streamed=False),
        AudioFormat.PCM: Container("audio/pcm", is_streamed=True),
    }
)


def mime(format: AudioFormat) -> str:
    """Media type of a format's bytes."""
    return CONTAINERS[format].mime


def default_rate(format: AudioFormat, source_rate: int) -> int:
    """Hz of an answer whose request names no rate; source_rate: what the engine makes.

    OpenAI's 24 kHz, whatever the engine. Opus alone follows a better engine: its clients see 48 kHz in any case.
    """
    if format is AudioFormat.OPUS and source_rate > OPENAI_SAMPLE_RATE:
        return 48_000
    return OPENAI_SAMPLE_RATE


def check_rate(format: AudioFormat, rate: int) -> None:
    """Raise ValueError, naming the rates that there are, if the format cannot carry `rate` Hz."""
    rates = CONTAINERS[format].rates
    if rate not in rates:
        raise ValueError(f"{format.value} carries these sample rates in Hz: {', '.join(map(str, rates))}.")
