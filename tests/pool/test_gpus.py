"""GPU memory through the real binding, over a library of the same symbols: two GPUs, one of which may fall away."""

import pynvml
import pytest

from core.environment import SettingsError
from core.speech import Priors
from machine import job
from nvml import FakeNvml, Gpu
from pool.memory import Gpus, MainMemory, open_memory
from pool.process import WorkerSpec, environment_of
from scheduler.autoscaler import ColdPool
from scheduler.messages import CPU, DeviceMemory, Ready, Spawn, Submitted
from scheduler.scheduler import Scheduler

GB = 2**30
SMALL, LARGE = "GPU-11111111-aaaa", "GPU-22222222-bbbb"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """A driver with a small and a large card; worker 1 is process 100."""
    fake = FakeNvml(
        Gpu(SMALL, 3 * GB, 8 * GB, {100: 2 * GB, 7: GB}),
        Gpu(LARGE, 20 * GB, 24 * GB, {101: None}),
    )
    monkeypatch.setattr(pynvml, "nvmlLib", fake)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return fake


def test_each_card_is_told_by_its_uuid_with_what_is_free_and_what_each_worker_holds(driver):
    memory = Gpus(None).read({1: 100, 2: 101, 3: 102})
    assert memory.devices == (DeviceMemory(SMALL, 3 * GB, 8 * GB), DeviceMemory(LARGE, 20 * GB, 24 * GB))
    assert memory.workers == {1: 2 * GB}  # a worker's share that the driver hides is not taken for none


@pytest.mark.parametrize(("visible", "seen"), [("1", [LARGE]), (SMALL, [SMALL]), ("GPU-2222", [LARGE]), ("", [])])
def test_only_cards_that_this_process_may_use_are_told(driver, visible, seen):
    assert [device.id for device in Gpus(visible).read({}).devices] == seen


def test_a_card_that_falls_away_leaves_the_other_one(driver):
    gpus = Gpus(None)
    driver.gpus[1].is_lost = True
    assert [device.id for device in gpus.read({1: 100}).devices] == [SMALL]
    driver.gpus[0].is_lost = True
    with pytest.raises(pynvml.NVMLError_GpuIsLost):
        gpus.read({})


def test_the_hot_worker_gets_the_card_with_most_free_memory_and_cold_ones_the_best_at_their_time(driver):
    memory, device = open_memory("gpu")
    assert device == open_memory("auto")[1] == LARGE
    scheduler = Scheduler(lead_s=60, device=device, cold=ColdPool(size=2, safety=0.0, interval_s=0.0))
    assert scheduler.start() == [Spawn(1, LARGE)]
    scheduler.handle(Ready(1, 1, Priors(rates=(1.0, 2.0, 3.0), start_s=1.0, memory_bytes=2 * GB)), 1.0)
    driver.gpus[1].free = GB  # somebody else took it
    scheduler.handle(memory.read({1: 101}), 1.0)
    said = [command for number in range(1, 30) for command in scheduler.handle(Submitted(job(number, 60)), 1.0)]
    assert [command.device for command in said if isinstance(command, Spawn)] == [SMALL]


@pytest.mark.parametrize("visible", ["", "9"])
def test_a_gpu_that_is_asked_for_and_not_there_is_said(driver, monkeypatch, visible):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(SettingsError, match="CUDA_VISIBLE_DEVICES"):
        open_memory("gpu")
    driver.gpus = ()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    with pytest.raises(SettingsError):
        open_memory("gpu")
    for wanted in ("cpu", "auto"):
        memory, device = open_memory(wanted)
        assert (type(memory), device) == (MainMemory, CPU)


def test_a_machine_without_a_driver_is_told_at_once(monkeypatch):
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    with pytest.raises(pynvml.NVMLError_LibraryNotFound):
        Gpus(None)


def test_a_worker_that_is_started_by_exec_has_the_operator_s_environment_and_its_gpu():
    spec = WorkerSpec("tone_backend:make", {}, environment={"CUDA_MPS_PIPE_DIRECTORY": "/run/mps"})
    assert environment_of(spec, CPU) == {}
    assert environment_of(spec, LARGE) == {"CUDA_MPS_PIPE_DIRECTORY": "/run/mps", "CUDA_VISIBLE_DEVICES": LARGE}
