"""A sink that remembers: stands for the stream that a pool feeds."""

import asyncio

import numpy as np

from core.errors import SpeechError
from core.speech import Samples


class MemorySink:
    """Keeps what comes; `ended` is set when `utterances` are done, or at the first error."""

    def __init__(self, utterances: int = 1) -> None:
        self.parts: list[list[Samples]] = [[] for _ in range(utterances)]
        self.is_done = [False] * utterances
        self.error: SpeechError | None = None
        self.restarts = 0
        self.routes: list[str] = []
        self.sounded = asyncio.Event()
        self.ended = asyncio.Event()

    def audio(self, index: int, samples: Samples) -> None:
        self.parts[index].append(samples)
        self.sounded.set()

    def done(self, index: int) -> float | None:
        self.is_done[index] = True
        if all(self.is_done):
            self.ended.set()
        return self.seconds(index)

    def rerun(self, index: int) -> None:
        self.parts[index] = []
        self.restarts += 1

    def routed(self, route: str) -> None:
        self.routes.append(route)

    def fail(self, error: SpeechError) -> None:
        self.error = error
        self.ended.set()

    def seconds(self, index: int) -> float:
        return sum(len(part) for part in self.parts[index]) / 24_000

    def samples(self, index: int) -> Samples:
        return np.concatenate(self.parts[index])
