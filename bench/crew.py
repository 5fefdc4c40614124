"""What the pool costs and gains: a round trip to a worker, a worker's start, and a second worker."""

import asyncio
import os
import statistics
import time
from pathlib import Path

from backends.base import Stop
from core.events import Silence
from core.settings import load_settings
from core.speech import Reference, Task, Utterance
from pool.forks import Template
from pool.memory import open_memory
from pool.process import Child, ChildProcess, WorkerSpec
from pool.protocol import FrameReader, Kind, pack_task, unpack_traits
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


def cold_starts_s(runs: int, model: Path) -> dict[str, list[float]]:
    """Seconds from the spawn of a worker to its first sound, started by exec and forked from a template, in turn.

    model: checkpoint of XTTS-v2.
    """
    settings = load_settings(tts_model=str(model))
    spec = WorkerSpec("coqui", settings.options("coqui"))
    device = open_memory(settings.pool.tts_device)[1]
    template = Template("coqui", Silence())
    template.open()
    seconds: dict[str, list[float]] = {"exec": [], "fork": []}
    try:
        while not (child := template.fork(spec, device)):
            assert not template.refusal, template.refusal
            time.sleep(0.1)
        _first_sound_s(child, time.perf_counter())
        for _ in range(runs):
            began = time.perf_counter()
            seconds["exec"].append(_first_sound_s(ChildProcess(spec, device), began))
            began = time.perf_counter()
            child = template.fork(spec, device)
            assert child, template.refusal
            seconds["fork"].append(_first_sound_s(child, began))
    finally:
        template.close()
    return seconds


def _first_sound_s(child: Child, began: float) -> float:
    """Seconds since `began` at which a worker that was just spawned sends its first sound; it is ended then."""
    child.socket.setblocking(True)
    frames = FrameReader()
    try:
        while data := child.socket.recv(2**16):
            for frame in frames.feed(data):
                if frame.kind is Kind.READY:
                    voice = Reference(unpack_traits(frame.payload).voices[0].id)
                    child.socket.sendall(pack_task(Task(1, 1, Utterance(0, SENTENCE, "en"), voice)))
                elif frame.kind is Kind.AUDIO:
                    return time.perf_counter() - began
        raise RuntimeError("the worker ended before it spoke")
    finally:
        child.kill()
        child.socket.close()
        child.join(5.0)


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
            list(bare.speak(task, bare.prepare(task.voice), Stop()))
            extra.append(ours - (time.perf_counter() - began))
    return statistics.median(extra) * 1000


async def _spawn_to_sound_s() -> float:
    options = load_settings().options("kokoro")
    began = time.perf_counter()
    async with open_pool(backend="kokoro", **options) as pool:
        sink = await speak(pool, SENTENCE)
        assert sink.error is None, sink.error
        return time.perf_counter() - began
