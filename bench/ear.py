"""When a listener hears the first sound of an answer."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import av
import httpx
import numpy as np

SOUND = 10 ** (-50 / 20)
"""Amplitude from which a sample counts as sound."""

PCM_BYTES_PER_S = 2 * 24_000

SEEDS = count()
"""Each request has one of its own: the cache is on, as it is for everybody, and no answer is to come from it."""


def first_sound_s(http: httpx.Client, text: str) -> float:
    """Seconds from the request to the first byte of mp3 that decodes to sound; the rest is not asked for."""
    with _listening(http, text) as (began, chunks):
        codec = av.CodecContext.create("mp3", "r")
        for data in chunks:
            arrived = time.perf_counter()
            for packet in codec.parse(data):
                for frame in codec.decode(packet):
                    if np.abs(frame.to_ndarray()).max() > SOUND:
                        return arrived - began
    raise RuntimeError("The answer has no sound.")


def dry_s(http: httpx.Client, text: str) -> float:
    """How long a player that starts with the first bytes of pcm waits for more, at the worst moment."""
    longest_s = 0.0
    with _listening(http, text, response_format="pcm") as (_, chunks):
        played_s, began = len(next(chunks)) / PCM_BYTES_PER_S, time.perf_counter()
        for data in chunks:
            longest_s = max(longest_s, time.perf_counter() - began - played_s)
            played_s += len(data) / PCM_BYTES_PER_S
    return longest_s


def read(http: httpx.Client, text: str, seconds: float = float("inf")) -> None:
    """Read an answer for some time, or to its end."""
    with _listening(http, text) as (began, chunks):
        for _ in chunks:
            if time.perf_counter() - began > seconds:
                return


@contextmanager
def _listening(http: httpx.Client, text: str, **fields: str) -> Iterator[tuple[float, Iterator[bytes]]]:
    body = {"input": text, "voice": "nova", "seed": next(SEEDS), **fields}
    began = time.perf_counter()
    with http.stream("POST", "/v1/audio/speech", json=body) as answer:
        answer.raise_for_status()
        yield began, answer.iter_raw()
