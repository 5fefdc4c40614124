"""What the pool costs and gains: a round trip to a worker, a worker's start, and a second worker."""

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from backends.base import Stop
from core.clock import SystemClock
from core.events import Silence
from core.settings import load_settings
from core.speech import Reference, Task, Utterance
from pool.pool import Pool
from pool.process import WorkerSpec
from scheduler.job import JobSpec
from scheduler.scheduler import Scheduler
from tests.fakes.sink import MemorySink
from tests.fakes.tone_backend import make
from tests.harness.server import FAKES

WORDS = Utterance(0, "one two three", "en")
"""Takes the scripted engine no time worth the name, so that what is left is the way there and back."""

SENTENCE = Utterance(0, "Good morning to you all.", "en")


def round_trip_ms(runs: int) -> float:
    """Milliseconds that scheduler, socket and worker add to an utterance: the median of so many pairs."""
    return asyncio.run(_round_trip_ms(runs))


def spawn_to_sound_s(runs: int) -> list[float]:
    """Seconds from the spawn of a worker with the embedded model to its first sound, so many times."""
    spec = WorkerSpec("kokoro", load_settings().options("kokoro"))
    return [asyncio.run(_spawn_to_sound_s(spec)) for _ in range(runs)]


async def _round_trip_ms(runs: int) -> float:
    os.environ["PYTHONPATH"] = str(FAKES)
    bare = make({})
    bare.load("cpu")
    extra = []
    async with _open(WorkerSpec("tone_backend:make", {})) as pool:
        for _ in range(10):
            await _speak(pool, WORDS)
        for number in range(runs):
            began = time.perf_counter()
            await _speak(pool, WORDS)
            ours = time.perf_counter() - began
            task = Task(number, 0, WORDS, Reference("alloy"))
            began = time.perf_counter()
            list(bare.speak(task, "", Stop()))
            extra.append(ours - (time.perf_counter() - began))
    return statistics.median(extra) * 1000


async def _spawn_to_sound_s(spec: WorkerSpec) -> float:
    began = time.perf_counter()
    async with _open(spec) as pool:
        sink = await _speak(pool, SENTENCE)
        assert sink.error is None, sink.error
        return time.perf_counter() - began


async def _speak(pool: Pool, utterance: Utterance) -> MemorySink:
    sink = MemorySink()
    pool.submit(sink, JobSpec((utterance,), Reference("alloy")))
    await sink.ended.wait()
    return sink


@asynccontextmanager
async def _open(spec: WorkerSpec) -> AsyncIterator[Pool]:
    pool = Pool(spec, Scheduler(lead_s=60), clock=SystemClock(), events=Silence())
    pool.open()
    try:
        yield pool
    finally:
        await pool.close()
