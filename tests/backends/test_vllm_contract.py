"""What is called of nano-vllm-voxcpm is what the pinned version has. Its files are read: it imports on GPUs."""

import ast
import inspect
from importlib.metadata import PackageNotFoundError, files, version

import pytest

from scripted_vllm import ScriptedPool, ScriptedServer

PACKAGE, PINNED = "nano-vllm-voxcpm", "2.0.5"
SERVER, ENGINE, SEQUENCE = "models/voxcpm2/server.py", "models/voxcpm2/engine.py", "engine/sequence.py"


def tree(path):
    try:
        assert version(PACKAGE) == PINNED
        found = next(each for each in files(PACKAGE) or () if str(each) == f"nanovllm_voxcpm/{path}")
    except PackageNotFoundError:
        pytest.skip(f"{PACKAGE} is not installed, which is for Python 3.11 and 3.12")
    return ast.parse(found.locate().read_text())


def class_of(path, name):
    return next(each for each in ast.walk(tree(path)) if isinstance(each, ast.ClassDef) and each.name == name)


def fields_of(path, name):
    return {each.target.id for each in class_of(path, name).body if isinstance(each, ast.AnnAssign)}


def parameters(found, method):
    """Names of a method's parameters but self, and whether it is a coroutine or an asynchronous generator."""
    method = next(each for each in found.body if getattr(each, "name", "") == method)
    return [each.arg for each in method.args.args[1:]], isinstance(method, ast.AsyncFunctionDef)


OPENED = {
    "model_path",
    "inference_timesteps",
    "max_num_batched_tokens",
    "max_num_seqs",
    "max_model_len",
    "gpu_memory_utilization",
    "devices",
    "lora_config",
}


@pytest.mark.parametrize("name", ["VoxCPM2ServerImpl", "AsyncVoxCPM2ServerPool"])
def test_it_is_opened_with_what_it_takes(name):
    assert set(parameters(class_of(SERVER, name), "__init__")[0]) >= OPENED


CALLS = ("add_request", "step", "cancel", "is_finished", "encode_latents", "register_lora")
POOL_CALLS = ("wait_for_ready", "encode_latents", "register_lora")


@pytest.mark.parametrize(
    ("name", "method", "scripted"),
    [
        *(("VoxCPM2ServerImpl", method, ScriptedServer) for method in CALLS),
        *(("AsyncVoxCPM2ServerPool", method, ScriptedPool) for method in POOL_CALLS),
    ],
)
def test_every_call_is_there_with_the_parameters_of_its_double(name, method, scripted):
    names, is_async = parameters(class_of(SERVER, name), method)
    double = inspect.unwrap(getattr(scripted, method))
    assert names == list(inspect.signature(double).parameters)[1:]
    assert is_async == inspect.iscoroutinefunction(double)


def test_the_pool_takes_what_the_server_takes():
    asked = set(inspect.signature(inspect.unwrap(ScriptedServer.add_request)).parameters) - {"self", "seq_id"}
    assert set(parameters(class_of(SERVER, "AsyncVoxCPM2ServerPool"), "generate")[0]) >= asked


def test_a_sequence_tells_what_is_read_of_it():
    sequence = class_of(SEQUENCE, "Sequence")
    assert {"seq_id", "custom_payload"} <= {each.attr for each in ast.walk(sequence) if isinstance(each, ast.Attribute)}
    assert "is_finished" in {each.name for each in sequence.body if hasattr(each, "name")}
    assert "generated_waveforms" in fields_of(ENGINE, "VoxCPM2SeqPayload")


def test_adapters_and_the_tokenizer_are_where_they_are_looked_for():
    assert {"enable_proj", "max_loras", "max_lora_rank"} <= fields_of("models/voxcpm2/config.py", "LoRAConfig")
    functions = {each.name for each in tree("models/voxcpm2/utils.py").body if isinstance(each, ast.FunctionDef)}
    assert "mask_multichar_chinese_tokens" in functions


def test_the_death_of_its_process_is_told_apart_from_a_request_that_is_wrong():
    died = class_of("utils/worker_link.py", "WorkerDiedError")
    assert [base.id for base in died.bases] == ["RuntimeError"]
