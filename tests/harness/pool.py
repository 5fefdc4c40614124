"""A pool of real worker processes over the scripted backend, without a server around it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from core.clock import SystemClock
from core.events import Silence
from core.speech import Reference, Utterance
from pool.forks import Template
from pool.memory import MainMemory
from pool.pool import Pool, Ticket
from pool.process import WorkerSpec
from scheduler.autoscaler import NO_COLD_POOL, ColdPool
from scheduler.job import JobSpec
from scheduler.scheduler import Scheduler
from scheduler.watchdog import Patience
from tests.fakes.sink import MemorySink

PATIENT = Patience()


@asynccontextmanager
async def open_pool(
    cold: ColdPool = NO_COLD_POOL,
    patience: Patience = PATIENT,
    backend: str = "tone_backend:make",
    *,
    templated: bool = False,
    **options: Any,
) -> AsyncIterator[Pool]:
    """templated: whether cold workers are forked from a process that has imported the backend."""
    spec = WorkerSpec(backend, options)
    scheduler = Scheduler(lead_s=60, cold=cold, patience=patience)
    template = Template(backend, Silence()) if templated else None
    pool = Pool(spec, scheduler, clock=SystemClock(), events=Silence(), memory=MainMemory(), template=template)
    pool.open()
    try:
        yield pool
    finally:
        await pool.close()


ALLOY = Reference("alloy")


def submit(pool: Pool, sink: MemorySink, *texts: str, voice: Reference = ALLOY) -> Ticket:
    utterances = tuple(Utterance(index, text, "en") for index, text in enumerate(texts))
    return pool.submit(sink, JobSpec(utterances, voice))


async def speak(pool: Pool, *texts: str) -> MemorySink:
    sink = MemorySink(len(texts))
    submit(pool, sink, *texts)
    await asyncio.wait_for(sink.ended.wait(), 20)
    return sink


async def eventually(claim, timeout_s: float = 5.0) -> float:
    """Seconds until `claim()` holds."""
    began = time.monotonic()
    while not claim():
        assert time.monotonic() - began < timeout_s, "it never came to hold"
        await asyncio.sleep(0.002)
    return time.monotonic() - began
