"""What the engine takes of a GPU, before it is loaded, and which setting to lower where that is too much. Pure.

    total x VLLM_GPU_MEM_UTIL = weights + what one step computes with + cache          (the library's own division)
    the rest of the GPU       = CUDA itself, recorded graphs, the vocoder's working space

The library takes all that is left for the cache, and fails in the middle of loading where nothing is.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

BLOCK_TOKENS = 256
"""Tokens in a block of the cache."""

USUAL_BLOCKS = 2
"""Of one utterance: a voice's recording of up to 30 s, text and speech are some 400 tokens."""

BASE_BYTES = 1_500_000_000
"""Of CUDA's own state, and of graphs and vocoder for one sequence."""

SEQUENCE_BYTES = 24 * 10**6
"""More of these for each further sequence: estimated by the sizes of the layers, not measured."""

NUMBER_BYTES = 2
"""bfloat16."""

_GB = 10**9


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a checkpoint. weight_bytes: of its files. cache_bytes: a token. step_bytes: that a step holds, a new token."""

    weight_bytes: int
    cache_bytes: int
    step_bytes: int


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings that decide. utilisation: VLLM_GPU_MEM_UTIL. The others are those that begin with VLLM_MAX_."""

    utilisation: float
    sequences: int
    batched_tokens: int
    length: int


def read_shape(folder: Path) -> Shape:
    """The shape of the checkpoint in a folder, by its config.json. Raises OSError, ValueError, KeyError, TypeError."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return shape_of(config, sum((folder / name).stat().st_size for name in ("model.safetensors", "audiovae.pth")))


def shape_of(config: Mapping[str, Any], weight_bytes: int) -> Shape:
    """Sizes as config.json tells them. Each patch goes through the small encoder as patch_size + 1 rows."""
    lm, encoder = config["lm_config"], config["encoder_config"]
    layers = lm["num_hidden_layers"] + config["residual_lm_num_layers"]
    head = lm.get("kv_channels") or lm["hidden_size"] // lm["num_attention_heads"]
    lm_row = 6 * lm["hidden_size"] + 3 * lm["intermediate_size"]
    encoder_rows = (config["patch_size"] + 1) * (6 * encoder["hidden_dim"] + 3 * encoder["ffn_dim"])
    return Shape(
        weight_bytes=weight_bytes,
        cache_bytes=2 * layers * lm["num_key_value_heads"] * head * NUMBER_BYTES,
        step_bytes=max(lm_row, encoder_rows) * NUMBER_BYTES,
    )


def advice(shape: Shape, limits: Limits, *, free_bytes: int, total_bytes: int) -> str:
    """What the operator should do for the engine to fit, a sentence; empty where it fits as it is."""
    most = int((free_bytes - _outside_bytes(limits)) / total_bytes * 100) / 100
    lack = f"{free_bytes / _GB:.1f} of the GPU's {total_bytes / _GB:.1f} GB are free"
    usable = replace(limits, utilisation=min(limits.utilisation, max(0.0, most)))
    for fitting in (usable, *_smaller(usable)):
        if _fits(shape, fitting, total_bytes):
            changes = _changes(limits, fitting)
            return f"{lack}, which is not enough: lower {' and '.join(changes)}." if changes else ""
    least = _least(usable)
    need = _inside_bytes(shape, least) + _outside_bytes(least)
    return f"{lack}; voxcpm-vllm needs {need / _GB:.1f} GB with its smallest settings: take TTS_BACKEND=voxcpm."


def _inside_bytes(shape: Shape, limits: Limits) -> int:
    blocks = max(math.ceil(limits.length / BLOCK_TOKENS), USUAL_BLOCKS * limits.sequences)
    cache = blocks * BLOCK_TOKENS * shape.cache_bytes
    return shape.weight_bytes + limits.batched_tokens * shape.step_bytes + cache


def _outside_bytes(limits: Limits) -> int:
    return BASE_BYTES + (limits.sequences - 1) * SEQUENCE_BYTES


def _fits(shape: Shape, limits: Limits, total_bytes: int) -> bool:
    return _inside_bytes(shape, limits) <= total_bytes * limits.utilisation


def _least(limits: Limits) -> Limits:
    return replace(limits, sequences=1, batched_tokens=BLOCK_TOKENS, length=BLOCK_TOKENS)


def _smaller(limits: Limits) -> Iterator[Limits]:
    """What could be lowered, what costs least first and the largest value first: one setting, then several."""
    tokens = range(limits.batched_tokens - BLOCK_TOKENS, limits.length - 1, -BLOCK_TOKENS)
    least_tokens = replace(limits, batched_tokens=limits.length)
    yield from (replace(limits, batched_tokens=count) for count in tokens)
    yield from (replace(limits, sequences=count) for count in range(limits.sequences - 1, 0, -1))
    yield from (replace(least_tokens, sequences=count) for count in range(limits.sequences, 0, -1))
    lengths = range(limits.length - BLOCK_TOKENS, 0, -BLOCK_TOKENS)
    yield from (replace(limits, sequences=1, batched_tokens=length, length=length) for length in lengths)


def _changes(limits: Limits, fitting: Limits) -> list[str]:
    """Names of settings with their new values."""
    names = {
        "VLLM_GPU_MEM_UTIL": (limits.utilisation, fitting.utilisation),
        "VLLM_MAX_NUM_BATCHED_TOKENS": (limits.batched_tokens, fitting.batched_tokens),
        "VLLM_MAX_NUM_SEQS": (limits.sequences, fitting.sequences),
        "VLLM_MAX_MODEL_LEN": (limits.length, fitting.length),
    }
    return [f"{name} to {new}" for name, (old, new) in names.items() if new < old]
