"""How the library is opened, with its classes replaced by ones that write down what they are given."""

import sys
from importlib import import_module
from types import ModuleType, SimpleNamespace

import pytest
import torch

from backends.base import BackendError
from checkpoints import voxcpm
from core.settings import load_settings
from scripted_vllm import ScriptedPool, ScriptedServer

GB = 10**9
ROOT = "nanovllm_voxcpm.models.voxcpm2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return voxcpm.write(tmp_path_factory.mktemp("checkpoints") / "voxcpm2")


@pytest.fixture
def opened(monkeypatch, folder):
    """Call it with settings and a device; the batch, and what the library was opened with."""
    asked = []

    def server(**arguments):
        asked.append(arguments)
        return ScriptedServer()

    modules = {
        "config": {"LoRAConfig": SimpleNamespace},
        "server": {
            "VoxCPM2ServerImpl": server,
            "AsyncVoxCPM2ServerPool": lambda **arguments: ScriptedPool(server(**arguments)),
        },
        "utils": {"mask_multichar_chinese_tokens": lambda tokenizer: tokenizer.tokenize},
    }
    for name in ("nanovllm_voxcpm", "nanovllm_voxcpm.models", ROOT):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for name, held in modules.items():
        module = ModuleType(f"{ROOT}.{name}")
        vars(module).update(held)
        monkeypatch.setitem(sys.modules, f"{ROOT}.{name}", module)
    monkeypatch.delitem(sys.modules, "backends.voxcpm_vllm.library", raising=False)
    library = import_module("backends.voxcpm_vllm.library")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (24 * GB, 25 * GB))

    def open_it(device="cuda:0", **settings):
        options = load_settings(voxcpm_model=str(folder), **settings).options("voxcpm-vllm")
        return library.open_batch(folder, options, device), asked

    threads = torch.get_num_threads()
    yield open_it
    torch.set_num_threads(threads)
    sys.modules.pop("backends.voxcpm_vllm.library", None)


@pytest.mark.parametrize("way", ["direct", "pool"])
def test_it_is_opened_with_the_operator_s_settings(opened, folder, way):
    batch, (asked,) = opened(vllm_engine=way, vllm_max_num_seqs=48, voxcpm_inference_timesteps=7)
    assert asked == {
        "model_path": str(folder),
        "inference_timesteps": 7,
        "max_num_batched_tokens": 16384,
        "max_num_seqs": 48,
        "max_model_len": 4096,
        "gpu_memory_utilization": 0.85,
        "devices": [0],
        "lora_config": None,
    }
    assert batch.tokens("Hello") >= 1


def test_there_is_none_without_a_gpu(opened):
    with pytest.raises(BackendError, match="NVIDIA GPU"):
        opened("cpu")


def test_memory_is_looked_at_before_anything_is_loaded(opened, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (12 * GB, 24 * GB))
    with pytest.raises(BackendError, match=r"VLLM_GPU_MEM_UTIL to 0\.\d+"):
        opened()


def adapter(root, name, config='{"lora_config": {"r": 8, "alpha": 16}}'):
    (root / name).mkdir(parents=True)
    (root / name / "lora_weights.safetensors").write_bytes(b"")
    (root / name / "lora_config.json").write_text(config)


def test_adapters_are_registered_by_the_name_of_their_folder(opened, tmp_path):
    adapter(tmp_path, "brisk")
    adapter(tmp_path, "calm", '{"lora_config": {"rank": 32}}')
    batch, (asked,) = opened(vllm_lora_dir=tmp_path)
    assert (asked["lora_config"].max_loras, asked["lora_config"].max_lora_rank) == (2, 32)
    assert batch._server.loras == ["brisk", "calm"]


@pytest.mark.parametrize("config", ["{", "{}", '{"lora_config": {}}'])
def test_an_adapter_that_is_none_is_refused_by_name(opened, tmp_path, config):
    adapter(tmp_path, "broken", config)
    with pytest.raises(BackendError, match="broken"):
        opened(vllm_lora_dir=tmp_path)


def test_an_adapter_folder_that_is_not_there_is_told(opened, tmp_path):
    with pytest.raises(BackendError, match="no folder"):
        opened(vllm_lora_dir=tmp_path / "nowhere")
