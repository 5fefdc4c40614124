"""The engine of nano-vllm-voxcpm, loaded. The one module that imports it."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from nanovllm_voxcpm.models.voxcpm2.config import LoRAConfig
from nanovllm_voxcpm.models.voxcpm2.server import AsyncVoxCPM2ServerPool, VoxCPM2ServerImpl
from nanovllm_voxcpm.models.voxcpm2.utils import mask_multichar_chinese_tokens
from transformers import LlamaTokenizerFast

from backends.base import BackendError
from backends.on_torch import open_device
from backends.voxcpm_vllm.backend import VllmBackend, loras, rank
from backends.voxcpm_vllm.direct import Direct
from backends.voxcpm_vllm.engine import Batch
from backends.voxcpm_vllm.memory import Limits, advice, read_shape
from backends.voxcpm_vllm.pooled import Pooled


def make(options: Mapping[str, Any]) -> VllmBackend:
    """The backend, unloaded. options: the settings of group `voxcpm_vllm`."""
    return VllmBackend(options, open_batch)


def open_batch(folder: Path, options: Mapping[str, Any], device: str) -> Batch:
    """Load the engine on the GPU of this process. Raises BackendError where there is none, or not enough of it."""
    if device == "cpu":
        raise BackendError("voxcpm-vllm needs an NVIDIA GPU; TTS_BACKEND=voxcpm speaks without one, slowly.")
    open_device(device)
    adapters = loras(options)
    limits = Limits(
        float(options["vllm_gpu_mem_util"]),
        int(options["vllm_max_num_seqs"]),
        int(options["vllm_max_num_batched_tokens"]),
        int(options["vllm_max_model_len"]),
    )
    _check_memory(folder, limits)
    arguments = {
        "model_path": str(folder),
        "inference_timesteps": int(options["voxcpm_inference_timesteps"]),
        "max_num_batched_tokens": limits.batched_tokens,
        "max_num_seqs": limits.sequences,
        "max_model_len": limits.length,
        "gpu_memory_utilization": limits.utilisation,
        "devices": [0],  # the only one that this process sees
        "lora_config": _lora_config(adapters),
    }
    tokens = _tokens(folder)
    if options["vllm_engine"] == "pool":
        pooled = Pooled(lambda: AsyncVoxCPM2ServerPool(**arguments), tokens)
        _register(adapters, pooled.register_lora)
        return pooled
    try:
        server = VoxCPM2ServerImpl(**arguments)
    except torch.OutOfMemoryError as error:
        raise BackendError(
            f"The GPU has not enough memory: lower VLLM_MAX_NUM_SEQS ({limits.sequences}), "
            f"VLLM_MAX_NUM_BATCHED_TOKENS ({limits.batched_tokens}) or VLLM_GPU_MEM_UTIL ({limits.utilisation})."
        ) from error
    _register(adapters, server.register_lora)
    return Direct(server, tokens)


def _check_memory(folder: Path, limits: Limits) -> None:
    free, total = torch.cuda.mem_get_info()
    try:
        shape = read_shape(folder)
    except (OSError, ValueError, KeyError, TypeError):
        raise BackendError(f"{folder / 'config.json'} does not describe a VoxCPM2 model.") from None
    if lack := advice(shape, limits, free_bytes=free, total_bytes=total):
        raise BackendError(lack)


def _tokens(folder: Path) -> Callable[[str], int]:
    """Counts tokens as the engine will: what is refused for its length never reaches it."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    tokenizer = mask_multichar_chinese_tokens(LlamaTokenizerFast.from_pretrained(str(folder)))
    return lambda text: len(tokenizer(text))


def _lora_config(adapters: Mapping[str, Path]) -> LoRAConfig | None:
    if not adapters:
        return None
    ranks = [rank(folder) for folder in adapters.values()]
    return LoRAConfig(enable_proj=True, max_loras=len(adapters), max_lora_rank=max(ranks))


def _register(adapters: Mapping[str, Path], register: Callable[[str, str], object]) -> None:
    for name, folder in adapters.items():
        try:
            register(name, str(folder))
        except (ValueError, RuntimeError, OSError) as error:
            raise BackendError(
                f"VLLM_LORA_DIR: {folder} is no adapter of this model ({type(error).__name__})."
            ) from error
