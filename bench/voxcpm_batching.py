"""VoxCPM2 of full size by batching, on a GPU: the server beside the engine alone, with the same slots and warm-up.

    python -m bench.voxcpm_batching MODEL OUT PART ...      with PYTHONPATH as the engine needs it

The weights are random and every request takes STEPS patches (`bench.fixed_length`): 6.4 s of audio. Each part can run
alone: engine, pcm, mp3, burst, poisson, cancel, clone. Each appends lines of JSON to OUT.
"""

import argparse
import asyncio
import io
import json
import os
import random
import statistics
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import httpx
import pynvml

from bench.fixed_length import STEPS
from bench.many import Heard, ask, ask_many
from bench.xtts_pool import machine, scratch, used_gb
from core.environment import PROJECT
from tests.harness.recording import recording
from tests.harness.server import Server, running_server
from text.plan import plan

TEXT = "The boats lay still under a pale sky."
"""One utterance, so that a request is a sequence of the engine."""

AUDIO_S = STEPS * 0.16

LOAD = 0.7
"""Of what the server can make, for requests that come by chance."""

START_S = 400.0
"""In which a server must be ready: kernels are compiled at its first start."""

FIELDS = (
    "commit", "gpu", "torch", "subject", "workers", "mps", "precision", "concurrency", "format", "requests", "failed",
    "first_audio_p50_s", "audio_s_per_s", "wall_s", "memory_gb", "part", "slots", "first_audio_p99_s", "note",
)  # fmt: skip
"""Of each line; null where one does not apply."""

Tell = Callable[..., None]


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of the checkpoint; made where it is not there")
    parser.add_argument("out", type=Path, help="file of JSON lines")
    parser.add_argument("parts", nargs="+", choices=["engine", *SERVED])
    parser.add_argument("--slots", type=int, default=64, help="VLLM_MAX_NUM_SEQS")
    parser.add_argument("--levels", default="1,8,16,32,64,128", help="requests at once")
    parser.add_argument("--burst", type=int, default=1024, help="requests of the part burst")
    parser.add_argument("--minutes", type=float, default=1.0, help="of the part poisson")
    parser.add_argument("--util", type=float, default=0.5, help="VLLM_GPU_MEM_UTIL")
    parser.add_argument("--backend", default="bench.fixed_length:make", help="TTS_BACKEND")
    arguments = parser.parse_args()
    if not (arguments.model / "config.json").exists():
        make_checkpoint(arguments.model)
    tell = partial(write_row, arguments.out, facts(), arguments.slots)
    assert len(plan(TEXT, language="en", limit=240, first=40)) == 1
    if "engine" in arguments.parts:
        engine_alone(arguments, tell)
    parts = [part for part in arguments.parts if part != "engine"]
    if parts:
        with serving(arguments) as server:
            for part in parts:
                SERVED[part](server, arguments, tell)


def write_row(out: Path, known: dict[str, str], slots: int, **figures: object) -> None:
    """One line with all fields."""
    row = {**dict.fromkeys(FIELDS), **known, "workers": 1, "mps": False, "precision": "bf16", "slots": slots, **figures}
    with out.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps({name: value for name, value in row.items() if value is not None}), flush=True)


def facts() -> dict[str, str]:
    """Commit, GPU and torch; nothing on a machine without a GPU, where only the bench itself is tested."""
    try:
        return machine()
    except pynvml.NVMLError:
        return {}


def gpu_gb() -> float | None:
    """Memory in use on the first GPU; None where there is none."""
    try:
        return round(used_gb(), 2)
    except pynvml.NVMLError:
        return None


def make_checkpoint(folder: Path) -> None:
    """Of full size. The library's own __init__ asks for much that a bare machine does not have: it is left out."""
    spec = find_spec("voxcpm")
    root = list(spec.submodule_search_locations or []) if spec else []
    for name, path in (("voxcpm", root), ("voxcpm.model", [f"{root[0]}/model"])):
        package = types.ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package
    from tests.checkpoints import voxcpm

    voxcpm.write_full_size(folder)


# --- the engine alone


def engine_alone(arguments: argparse.Namespace, tell: Tell) -> None:
    """In a process of its own, which gives the GPU back."""
    command = [sys.executable, "-m", "bench.voxcpm_engine", str(arguments.model.resolve()), str(arguments.slots)]
    ran = subprocess.run(
        [*command, arguments.levels, str(arguments.util)], stdout=subprocess.PIPE, text=True, check=True, cwd=PROJECT
    )
    for line in ran.stdout.splitlines():
        if line.startswith("{"):
            tell(subject="engine", part="engine", **json.loads(line))


# --- the server


@contextmanager
def serving(arguments: argparse.Namespace) -> Iterator[Server]:
    """A server with one registered voice, which has spoken once."""
    settings = {
        "TTS_BACKEND": arguments.backend,
        "VOXCPM_MODEL": str(arguments.model.resolve()),
        "VLLM_MAX_NUM_SEQS": str(arguments.slots),
        "VLLM_MAX_MODEL_LEN": "2048",
        "VLLM_GPU_MEM_UTIL": str(arguments.util),
        "BENCH_STEPS": str(STEPS),
        "DEFAULT_VOICE": "anna",
        "QUALITY_GUARD": os.environ.get("QUALITY_GUARD", "false"),
        "COLD_POOL_SIZE": "0",
        "MAX_QUEUE_LENGTH": "0",
        "MAX_QUEUE_SECONDS": "0",
        "DEADLINE_SECONDS": "0",
        "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")]),
    }
    with scratch() as folder:
        began = time.perf_counter()
        with running_server(folder, START_S, VOICE_ASSET_DIR=str(folder / "voices"), **settings) as server:
            print(json.dumps({"server_ready_s": round(time.perf_counter() - began, 1)}), flush=True)
            sample = {"audio_sample": ("anna.wav", recording(200.0, 5.0), "audio/wav")}
            server.http.post("/v1/audio/voices", data={"name": "anna"}, files=sample).raise_for_status()
            server.speak(TEXT).raise_for_status()
            yield server


def body(format: str = "pcm") -> dict[str, object]:
    """Of a request."""
    return {"input": TEXT, "response_format": format, "cache": False}


def told(answers: list[Heard], wall_s: float) -> dict[str, object]:
    """The figures of a round, all of which should have come to their ends."""
    good = [each for each in answers if each.is_whole]
    firsts = sorted(each.first_s for each in answers if each.first_s)
    return {
        "subject": "server",
        "requests": len(answers),
        "failed": len(answers) - len(good),
        "first_audio_p50_s": round(statistics.median(firsts), 4) if firsts else None,
        "first_audio_p99_s": round(firsts[int(len(firsts) * 0.99)], 4) if firsts else None,
        "audio_s_per_s": round(len(good) * AUDIO_S / wall_s, 1),
        "wall_s": round(wall_s, 2),
        "memory_gb": gpu_gb(),
    }


def levels(format: str, server: Server, arguments: argparse.Namespace, tell: Tell) -> None:
    """So many requests at once, after as many to warm up."""
    for level in map(int, arguments.levels.split(",")):
        asyncio.run(ask_many(server.url, level, body(format)))
        began = time.perf_counter()
        answers = asyncio.run(ask_many(server.url, level, body(format)))
        tell(part=format, concurrency=level, format=format, **told(answers, time.perf_counter() - began))


def burst(server: Server, arguments: argparse.Namespace, tell: Tell) -> None:
    """Many more requests than slots, at one moment."""
    began = time.perf_counter()
    answers = asyncio.run(ask_many(server.url, arguments.burst, body()))
    wall_s = time.perf_counter() - began
    tell(part="burst", concurrency=arguments.burst, format="pcm", **told(answers, wall_s))


def poisson(server: Server, arguments: argparse.Namespace, tell: Tell) -> None:
    """Requests that come by chance, LOAD of what the server can make, for minutes."""
    began = time.perf_counter()
    asyncio.run(ask_many(server.url, arguments.slots, body()))
    a_second = LOAD * arguments.slots / (time.perf_counter() - began)
    before_gb = gpu_gb()

    async def scene() -> list[Heard]:
        chance = random.Random(1)
        asked = []
        ends = time.perf_counter() + 60 * arguments.minutes
        while time.perf_counter() < ends:
            asked.append(asyncio.create_task(ask(server.url, body())))
            await asyncio.sleep(chance.expovariate(a_second))
        return await asyncio.gather(*asked)

    began = time.perf_counter()
    answers = asyncio.run(scene())
    wall_s = time.perf_counter() - began
    dry = sorted(each.dry_s for each in answers)
    note = f"underruns {sum(each > 0.05 for each in dry)}, longest {dry[-1]:.3f} s; memory before {before_gb} GB"
    tell(part="poisson", format="pcm", note=note, **told(answers, wall_s))


def cancel(server: Server, arguments: argparse.Namespace, tell: Tell) -> None:
    """Every other of as many streams as slots hangs up in the middle; then all slots must speak again."""

    async def scene() -> list[Heard]:
        ways = (AUDIO_S / 16 if number % 2 else None for number in range(arguments.slots))
        return await asyncio.gather(*(ask(server.url, body(), leave_after_s=way) for way in ways))

    began = time.perf_counter()
    answers = asyncio.run(scene())
    wall_s = time.perf_counter() - began
    server.wait_until_idle()
    slots = server.health()["slots"]
    again = asyncio.run(ask_many(server.url, arguments.slots, body()))
    note = f"slots afterwards {slots}, spoken by all of them {sum(each.is_whole for each in again)}"
    tell(part="cancel", concurrency=arguments.slots, format="pcm", note=note, **told(answers[::2], wall_s))


def clone(server: Server, arguments: argparse.Namespace, tell: Tell) -> None:
    """Requests that bring a recording of their own, while a quarter of the slots speak: what it costs both."""

    async def scene() -> tuple[list[Heard], list[float]]:
        others = asyncio.create_task(ask_many(server.url, arguments.slots // 4, body()))
        await asyncio.sleep(1.0)
        firsts = []
        async with httpx.AsyncClient(base_url=server.url, timeout=600) as client:
            for number in range(5):
                file = io.BytesIO(recording(150.0 + 10 * number, 10.0))
                began = time.perf_counter()
                form = {"input": TEXT, "response_format": "pcm"}
                files = {"custom_voice_file": ("me.wav", file, "audio/wav")}
                async with client.stream("POST", "/v1/audio/speech/stream", data=form, files=files) as answer:
                    await anext(answer.aiter_raw())
                    firsts.append(time.perf_counter() - began)
        return await others, firsts

    began = time.perf_counter()
    others, firsts = asyncio.run(scene())
    wall_s = time.perf_counter() - began
    longest_s = max((b[0] - a[0] for each in others for a, b in pairwise(each.pieces)), default=0.0)
    note = f"clone's first audio {statistics.median(firsts):.3f} s; longest gap of the others {longest_s:.3f} s"
    tell(part="clone", concurrency=arguments.slots // 4, format="pcm", note=note, **told(others, wall_s))


SERVED: dict[str, Callable[[Server, argparse.Namespace, Tell], None]] = {
    "pcm": partial(levels, "pcm"),
    "mp3": partial(levels, "mp3"),
    "burst": burst,
    "poisson": poisson,
    "cancel": cancel,
    "clone": clone,
}


if __name__ == "__main__":
    main()
