"""What the pool costs and gains: a round trip to a worker, a worker's start, and a second worker."""

import asyncio
import os
import statistics
import time

from backends.base import Stop
from core.settings import load_settings
from core.speech import Reference, Task, Utterance
from tests.fakes.tone_backend import make
from tests.harness.pool import open_pool, speak
from tests.harness.server import FAKES

WORDS = "one two three"
"""Takes the scripted engine no time worth the name, so that what is left is the way there and back."""

SENTENCE = "Good morning to you all."


def round_trip_ms(runs: int) -> float:
    """Milliseconds that scheduler, socket and worker add to an utterance: the median of so many pairs."""
    return asyncio.run(_round_trip_ms(runs))


def spawn_to_sound_s(runs: int) -> list[float]:
    """Seconds from the spawn of a worker with the embedded model to its first sound, so many times."""
    return [asyncio.run(_spawn_to_sound_s()) for _ in range(runs)]


async def _round_trip_ms(runs: int) -> float:
    os.environ["PYTHONPATH"] = str(FAKES)
    bare = make({})
    bare.load("cpu")
    extra = []
    async with open_pool() as pool:
        for _ in range(10):
            await speak(pool, WORDS)
        for number in range(runs):
            began = time.perf_counter()
            await speak(pool, WORDS)
            ours = time.perf_counter() - began
            task = Task(number, 0, Utterance(0, WORDS, "en"), Reference("alloy"))
            began = time.perf_counter()
            list(bare.speak(task, "", Stop()))
            extra.append(ours - (time.perf_counter() - began))
    return statistics.median(extra) * 1000


async def _spawn_to_sound_s() -> float:
    options = load_settings().options("kokoro")
    began = time.perf_counter()
    async with open_pool(backend="kokoro", **options) as pool:
        sink = await speak(pool, SENTENCE)
        assert sink.error is None, sink.error
        return time.perf_counter() - began
