"""Tempo and sample rate in one pass: FFmpeg's `atempo` and `aresample`, in process."""

import math

import numpy as np
from av import AudioFrame
from av.filter import Graph

from core.speech import Samples

SLOWEST, FASTEST = 0.25, 4.0
"""Tempi that a request may ask for."""


def check_tempo(tempo: float) -> None:
    """Raises ValueError outside SLOWEST to FASTEST."""
    if not SLOWEST <= tempo <= FASTEST:
        raise ValueError(f"A tempo lies between {SLOWEST} and {FASTEST}.")


class FilterChain:
    """Speech at another tempo, pitch kept, and at another sample rate.

    The graph adds up to 0.1 s of delay where it changes the tempo; `finish` brings what it still holds.
    """

    def __init__(self, source_rate: int, rate: int, *, tempo: float = 1.0) -> None:
        """source_rate, rate: Hz in and out. tempo: 2.0 speaks twice as fast. Raises ValueError outside 0.25 to 4."""
        check_tempo(tempo)
        self._source_rate = source_rate
        self._ratio = rate / source_rate / tempo
        self._fed = 0
        self._made = 0
        self._graph = Graph()
        nodes = [self._graph.add_abuffer(sample_rate=source_rate, format="flt", layout="mono")]
        nodes += [self._graph.add("atempo", tempo=f"{step:.9f}") for step in _tempo_steps(tempo)]
        if rate != source_rate:
            nodes.append(self._graph.add("aresample", str(rate)))
        nodes.append(self._graph.add("aformat", sample_fmts="flt", channel_layouts="mono"))
        nodes.append(self._graph.add("abuffersink"))
        self._graph.link_nodes(*nodes).configure()

    def feed(self, samples: Samples) -> Samples:
        """Take samples, shape (n,) at the source rate; return those that are ready, shape (m,), m from 0 up."""
        if not len(samples):
            return samples
        frame = AudioFrame.from_ndarray(np.ascontiguousarray(samples)[np.newaxis], format="flt", layout="mono")
        frame.sample_rate = self._source_rate
        frame.pts = self._fed
        self._fed += len(samples)
        self._graph.push(frame)
        return self._pull()

    def finish(self) -> Samples:
        """Return what the graph still holds; afterwards the lengths fed and made have the ratio asked for.

        A slowed ending comes out of `atempo` up to 0.1 s short of it; silence makes up for that.
        """
        if not self._fed:
            return np.zeros(0, np.float32)
        self._graph.push(None)
        rest = self._pull()
        missing = round(self._fed * self._ratio) - self._made
        return np.pad(rest, (0, max(0, missing)))

    def _pull(self) -> Samples:
        pieces: list[Samples] = [np.zeros(0, np.float32)]
        while True:
            try:
                frame = self._graph.pull()
            except (BlockingIOError, EOFError):  # it wants more first, or has given all
                break
            pieces.append(frame.to_ndarray()[0].astype(np.float32))
        made = np.concatenate(pieces)
        self._made += len(made)
        return made


def _tempo_steps(tempo: float) -> list[float]:
    """Equal factors of a tempo, each in the range 0.5 to 2 where `atempo` blends every sample instead of skipping."""
    if tempo == 1.0:
        return []
    count = max(1, math.ceil(abs(math.log2(tempo))))
    return [tempo ** (1 / count)] * count
