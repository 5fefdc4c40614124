"""The engine of nano-vllm-voxcpm alone, without a server: what the server on top of it is held against.

python -m bench.voxcpm_engine MODEL SLOTS LEVELS UTIL      one line of JSON for each level, by the library's own pool
python -m bench.voxcpm_engine MODEL SLOTS profile UTIL     one step at 1 and at SLOTS sequences, by torch's profiler
"""

import asyncio
import json
import statistics
import sys
import time
from typing import Any

from bench.fixed_length import STEPS
from bench.voxcpm_batching import AUDIO_S, TEXT, gpu_gb
from tests.harness.recording import recording

PROFILED_STEPS = 5

ROWS = 25
"""Of the table of kernels."""


def options(model: str, slots: str, util: str) -> dict[str, Any]:
    """What the server gives to the engine too."""
    return {
        "model_path": model,
        "devices": [0],
        "max_num_seqs": int(slots),
        "max_num_batched_tokens": 16384,
        "max_model_len": 2048,
        "gpu_memory_utilization": float(util),
    }


async def measure(arguments: dict[str, Any], levels: list[int]) -> None:
    """Each level after as many requests to warm up."""
    from nanovllm_voxcpm.models.voxcpm2.server import AsyncVoxCPM2ServerPool

    engine = AsyncVoxCPM2ServerPool(**arguments)
    await engine.wait_for_ready()
    reference = await engine.encode_latents(recording(200.0, 5.0), "wav")

    async def request() -> float:
        began, first_s = time.perf_counter(), 0.0
        asked = engine.generate(target_text=TEXT, max_generate_length=STEPS, cfg_value=2.0, ref_audio_latents=reference)
        async for _ in asked:
            first_s = first_s or time.perf_counter() - began
        return first_s

    for level in levels:
        await asyncio.gather(*(request() for _ in range(level)))
        began = time.perf_counter()
        firsts = sorted(await asyncio.gather(*(request() for _ in range(level))))
        wall_s = time.perf_counter() - began
        row = {
            "concurrency": level,
            "requests": level,
            "failed": 0,
            "first_audio_p50_s": round(statistics.median(firsts), 4),
            "first_audio_p99_s": round(firsts[int(level * 0.99)], 4),
            "audio_s_per_s": round(level * AUDIO_S / wall_s, 1),
            "wall_s": round(wall_s, 2),
            "memory_gb": gpu_gb(),
        }
        print(json.dumps(row), flush=True)
    await engine.stop()


def profile(arguments: dict[str, Any]) -> None:
    """What a step is made of, on the GPU and before it."""
    import torch
    from nanovllm_voxcpm.models.voxcpm2.server import VoxCPM2ServerImpl
    from torch.profiler import ProfilerActivity

    server = VoxCPM2ServerImpl(**arguments)
    reference = server.encode_latents(recording(200.0, 5.0), "wav")
    for count in (1, arguments["max_num_seqs"]):
        for number in range(count):
            server.add_request(
                f"{count}-{number}", TEXT, max_generate_length=STEPS, cfg_value=2.0, ref_audio_latents=reference
            )
        for _ in range(10):  # the prefill, and what runs for the first time
            server.step()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(PROFILED_STEPS):
            server.step()
        torch.cuda.synchronize()
        bare_ms = (time.perf_counter() - began) / PROFILED_STEPS * 1000
        with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            for _ in range(PROFILED_STEPS):
                server.step()
            torch.cuda.synchronize()
        found = seen.key_averages()
        busy_ms = sum(each.self_device_time_total for each in found) / PROFILED_STEPS / 1000
        print(f"{count} sequences: {bare_ms:.2f} ms a step, the GPU is busy for {busy_ms:.2f} ms of it")
        print(found.table(sort_by="self_device_time_total", row_limit=ROWS, max_name_column_width=70))
        print(found.table(sort_by="self_cpu_time_total", row_limit=ROWS, max_name_column_width=70))
        while not server.is_finished():
            server.step()


def main() -> None:
    """As the command line says."""
    model, slots, what, util = sys.argv[1:5]
    if what == "profile":
        profile(options(model, slots, util))
    else:
        asyncio.run(measure(options(model, slots, util), [int(level) for level in what.split(",")]))


if __name__ == "__main__":
    main()
