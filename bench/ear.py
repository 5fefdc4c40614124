"""When a listener hears the first sound of an answer."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import av
import httpx
import numpy as np

SOUND = 10 ** (-50 / 20)
"""Amplitude from which a sample counts as sound."""


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


def read(http: httpx.Client, text: str, seconds: float = float("inf")) -> None:
    """Read an answer for some time, or to its end."""
    with _listening(http, text) as (began, chunks):
        for _ in chunks:
            if time.perf_counter() - began > seconds:
                return


@contextmanager
def _listening(http: httpx.Client, text: str) -> Iterator[tuple[float, Iterator[bytes]]]:
    began = time.perf_counter()
    with http.stream("POST", "/v1/audio/speech", json={"input": text, "voice": "nova"}) as answer:
        answer.raise_for_status()
        yield began, answer.iter_raw()
