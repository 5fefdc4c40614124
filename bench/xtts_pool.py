"""XTTS-v2 of full size in the pool, on a GPU: how much a second worker, MPS and half precision bring.

The weights are random, so that what is spoken is noise, and made so that each request takes exactly TOKENS audio
tokens: 13 s. Speed does not depend on what the weights are.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pynvml
import torch

from bench.crew import cold_starts_s
from tests.checkpoints import xtts
from tests.harness.server import Server, running_server
from text.plan import plan

TOKENS = 280
TEXT = (
    "The harbour was quiet that morning, and the boats lay still under a pale sky, while an old captain counted his "
    "nets and told anybody who came by about the storm of the year before, when nobody slept for days."
)
"""Forty words."""

WARM_UPS = 6

UTTERANCES = len(plan(TEXT, language="en", limit=250, first=40))


FIELDS = (
    "commit", "gpu", "torch", "subject", "workers", "mps", "precision", "concurrency", "format", "requests", "failed",
    "first_audio_p50_s", "audio_s_per_s", "wall_s", "memory_gb", "exec_start_s", "forked_start_s",
)  # fmt: skip
"""Of each line; null where one does not apply."""


def main() -> None:
    """Measure what is asked for, and append a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="folder of the checkpoint; made where it is not there")
    parser.add_argument("out", type=Path, help="file of JSON lines")
    parser.add_argument("runs", nargs="+", help="COLD:MPS:PRECISION:REQUESTS, such as 5:on:fp32:160, or cold-start")
    arguments = parser.parse_args()
    if not (arguments.model / "model.pth").exists():
        xtts.write(arguments.model, tokens=round(TOKENS / UTTERANCES), full_size=True)
    for run in arguments.runs:
        row = cold_start(arguments.model) if run == "cold-start" else measure(arguments.model, *run.split(":"))
        with arguments.out.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)


def row_of(**figures: object) -> dict[str, object]:
    """A line with all fields."""
    return {**dict.fromkeys(FIELDS), **machine(), "subject": "server", **figures}


def cold_start(model: Path) -> dict[str, object]:
    """A worker from its spawn to its first sound, with and without the template."""
    seconds = cold_starts_s(3, model)
    by_exec, forked = (round(statistics.median(seconds[way]), 2) for way in ("exec", "fork"))
    return row_of(workers=1, mps=False, precision="fp32", exec_start_s=by_exec, forked_start_s=forked)


def measure(model: Path, cold: str, mps: str, precision: str, requests: str) -> dict[str, object]:
    """All requests at once, once all workers are there."""
    settings = {
        "TTS_BACKEND": "coqui",
        "TTS_MODEL": str(model),
        "COQUI_PRECISION": precision,
        "DEFAULT_VOICE": "Ana Florence",
        "QUALITY_GUARD": "false",
        "GPU_MPS": mps,
        "COLD_POOL_SIZE": cold,
        "STREAM_ON_COLD": "true",
        "HOT_QUEUE_SAFETY_FACTOR": "0",
        "COLD_WORKER_IDLE_TIMEOUT": "3600",
        "MAX_QUEUE_LENGTH": "0",
        "MAX_QUEUE_SECONDS": "0",
        "DEADLINE_SECONDS": "0",
    }
    with scratch() as folder, running_server(folder, **settings) as server:
        workers = 1 + warm_up(server, int(cold))
        began = time.perf_counter()
        answers = asyncio.run(ask(server.url, int(requests)))
        wall_s = time.perf_counter() - began
        memory = used_gb()
        (folder / "health.json").write_text(json.dumps(server.health()))
    good = [answer for answer in answers if answer is not None]
    return row_of(
        workers=workers,
        mps=mps == "on",
        precision=precision,
        concurrency=int(requests),
        format="pcm",
        requests=int(requests),
        failed=len(answers) - len(good),
        first_audio_p50_s=round(statistics.median(first for first, _ in good), 3),
        audio_s_per_s=round(sum(seconds for _, seconds in good) / wall_s, 2),
        wall_s=round(wall_s, 2),
        memory_gb=round(memory, 2),
    )


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder whose server log is shown if anything goes wrong."""
    with tempfile.TemporaryDirectory() as name:
        try:
            yield Path(name)
        except BaseException:
            for log in Path(name).glob("*.log"):
                print(log.read_text()[-4000:], flush=True)
            raise


def warm_up(server: Server, cold: int) -> int:
    """Load the server until its cold workers are there and have spoken; how many came.

    It may bring fewer than it is allowed, where it knows that one more would make nothing faster.
    """
    for _ in range(WARM_UPS):
        asyncio.run(ask(server.url, 2 * cold + 1))
        came = int(server.health()["smart_routing"]["pool_workers_active"])
        if came >= cold:
            break
    return came


async def ask(url: str, count: int) -> list[tuple[float, float] | None]:
    """Seconds to the first audio and of audio, of as many requests at once; None for one that failed."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=600, limits=limits) as client:

        async def one() -> tuple[float, float] | None:
            began = time.perf_counter()
            first, size = None, 0
            fields = {"input": TEXT, "response_format": "pcm", "cache": False}
            try:
                async with client.stream("POST", "/v1/audio/speech", json=fields) as answer:
                    async for piece in answer.aiter_bytes():
                        first = first or time.perf_counter() - began
                        size += len(piece)
                return (first, size / 2 / 24_000) if answer.status_code == 200 and first else None
            except httpx.HTTPError:
                return None

        return await asyncio.gather(*(one() for _ in range(count)))


def machine() -> dict[str, str]:
    """Commit, GPU and torch."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = os.environ.get("COMMIT") or subprocess.run(command, capture_output=True, text=True, check=False).stdout
    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0))
    return {"commit": commit.strip(), "gpu": str(gpu), "torch": str(torch.__version__)}


def used_gb() -> float:
    """Memory in use on the first GPU."""
    pynvml.nvmlInit()
    return float(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used) / 1e9


if __name__ == "__main__":
    main()
