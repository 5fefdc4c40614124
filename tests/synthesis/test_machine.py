"""What this machine has for the engines on torch, and what is said of the one that it gets."""

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pynvml
import pytest

from backends.engines import COQUI, ENGINES, VOXCPM, place
from backends.weights.lock import Content, Lock
from core.environment import PROJECT
from core.events import Silence
from core.settings import Settings, load_settings
from nvml import FakeNvml, Gpu
from synthesis.compose import _backend
from synthesis.machine import look

GB = 10**9
NO_GPU = "no GPU that it may use"


class Told(Silence):
    def __init__(self) -> None:
        self.lines: list[tuple[str, ...]] = []

    def backend_chosen(self, *, backend: str, passed_over: str) -> None:
        self.lines.append(("chosen", backend, passed_over))

    def backend_hazard(self, *, backend: str, hazard: str) -> None:
        self.lines.append(("hazard", backend, hazard))


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml(Gpu("GPU-1", 3 * GB, 8 * GB), Gpu("GPU-2", 20 * GB, 24 * GB))
    monkeypatch.setattr(pynvml, "nvmlLib", fake)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fake


def settings(folder: Path, **changes: object) -> Settings:
    return load_settings(tts_home=folder, **changes)


def write(folder: Path, name: str) -> Path:
    """Files of the right names, which is all that is looked at."""
    engine = ENGINES[name]
    checkpoint = place(engine, settings(folder).options(name))
    checkpoint.mkdir()
    for names in engine.needed:
        (checkpoint / names[0]).write_bytes(b"")
    return checkpoint


@pytest.mark.parametrize(("device", "free"), [("auto", 20 * GB), ("gpu", 20 * GB), ("cpu", None)])
def test_the_memory_is_that_of_the_freest_gpu_if_one_is_to_be_used(driver, tmp_path, device, free):
    assert look(settings(tmp_path, tts_device=device)).gpu_free_bytes == free


def test_gpus_that_are_lost_are_none(driver, tmp_path):
    for gpu in driver.gpus:
        gpu.is_lost = True
    assert look(settings(tmp_path)).gpu_free_bytes is None


def test_nothing_there_is_nothing_found(driver, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    found = look(settings(tmp_path))
    assert (found.gpu_free_bytes, found.whole, found.accepted) == (
        None,
        frozenset(),
        frozenset({"voxcpm", "voxcpm-vllm"}),
    )


@pytest.mark.parametrize("name", ["coqui", "voxcpm"])
def test_weights_are_found_where_the_engine_looks_for_them(tmp_path, name):
    checkpoint = write(tmp_path, name)
    assert name in look(settings(tmp_path)).whole
    assert ("coqui" in look(settings(tmp_path)).whole) == (name == "coqui")
    (checkpoint / "config.json").unlink()
    assert look(settings(tmp_path)).whole == frozenset()


def test_a_licence_is_accepted_by_the_setting_or_by_what_was_written_down(tmp_path):
    assert look(settings(tmp_path, coqui_tos_agreed=True)).accepted == {"coqui", "voxcpm", "voxcpm-vllm"}
    checkpoint = write(tmp_path, "coqui")
    assert look(settings(tmp_path)).accepted == {"voxcpm", "voxcpm-vllm"}
    licence = COQUI.release.licence
    Lock(repository="coqui/XTTS-v2", commit="c" * 40, licence_accepted=licence, files={}).write(checkpoint)
    assert look(settings(tmp_path)).accepted == {"coqui", "voxcpm", "voxcpm-vllm"}


@pytest.mark.parametrize(("build", "expected"), [("2.13.0", True), ("2.13.0+cu130", True), ("2.13.0+cpu", False)])
def test_a_torch_for_the_cpu_can_use_no_gpu(monkeypatch, build, expected):
    monkeypatch.setattr("backends.engines.find_spec", lambda name: name)
    monkeypatch.setattr("backends.engines.version", lambda name: build)
    assert COQUI.can_use_gpu is expected


def test_a_folder_called_torch_is_no_torch(monkeypatch):
    def version(name):
        raise PackageNotFoundError

    monkeypatch.setattr("backends.engines.find_spec", lambda name: name)
    monkeypatch.setattr("backends.engines.version", version)
    assert not COQUI.can_use_gpu


def test_libraries_are_looked_for_and_not_imported():
    assert replace(COQUI, libraries=("json",)).is_installed
    assert not replace(COQUI, libraries=("json", "no_such_library")).is_installed
    program = (
        "import sys; from core.settings import load_settings; from synthesis.machine import look; "
        "look(load_settings()); print({'torch', 'TTS', 'voxcpm', 'transformers'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda folder: (folder / "model.safetensors").unlink(), id="half"),
        pytest.param(lambda folder: (folder / "model.safetensors").write_bytes(b"short"), id="damaged"),
        pytest.param(lambda folder: folder.rename(folder.with_name("away")), id="gone"),
    ],
)
def test_a_checkpoint_that_is_not_whole_leaves_it_to_another_engine(driver, tmp_path, monkeypatch, spoil):
    monkeypatch.setattr("backends.engines.find_spec", lambda name: name)
    monkeypatch.setattr("backends.engines.version", lambda name: "2.13.0")
    checkpoint = write(tmp_path, "voxcpm")
    held = {"model.safetensors": Content(size=0)}
    Lock(repository="openbmb/VoxCPM2", commit="c" * 40, files=held).write(checkpoint)
    told = Told()
    assert _backend(settings(tmp_path), told) == "voxcpm"
    spoil(checkpoint)
    assert _backend(settings(tmp_path), told) == "kokoro"
    assert told.lines[-1][2].startswith(
        "voxcpm-vllm: no whole weights; voxcpm: no whole weights; coqui: no whole weights"
    )


def test_a_name_that_no_folder_can_have_is_a_checkpoint_that_is_not_there(tmp_path):
    assert look(settings(tmp_path, tts_model="a" * 300, voxcpm_model="a" * 300)).whole == frozenset()


@pytest.mark.parametrize(
    ("name", "device", "said"),
    [
        pytest.param("auto", "auto", [("chosen", "voxcpm-vllm", "")], id="auto"),
        pytest.param(
            "auto",
            "cpu",
            [("chosen", "kokoro", "; ".join(f"{name}: {NO_GPU}" for name in ("voxcpm-vllm", "voxcpm", "coqui")))],
            id="auto on a CPU",
        ),
        pytest.param("voxcpm", "auto", [("hazard", "voxcpm", VOXCPM.hazard)], id="an engine with a hazard"),
        pytest.param("coqui", "auto", [], id="an engine without one"),
        pytest.param("some.module:factory", "auto", [], id="an engine of others"),
    ],
)
def test_the_log_says_once_what_was_chosen_and_what_is_known_of_it(driver, tmp_path, monkeypatch, name, device, said):
    monkeypatch.setattr("backends.engines.find_spec", lambda name: name)
    monkeypatch.setattr("backends.engines.version", lambda name: "2.13.0")
    checkpoint = write(tmp_path, "voxcpm")
    (checkpoint / "audiovae.pth").write_bytes(b"")
    told = Told()
    chosen = _backend(settings(tmp_path, tts_backend=name, tts_device=device), told)
    assert told.lines == said
    assert chosen == (said[0][1] if name == "auto" else name)
