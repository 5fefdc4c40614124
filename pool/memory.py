"""What memory there is for workers, and what each of them holds of it: main memory, or that of GPUs."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

import psutil
import pynvml

from core.cgroups import MEMBERSHIP, ROOT, groups
from core.environment import DeviceChoice, SettingsError
from scheduler.messages import CPU, DeviceMemory, Memory


def open_memory(wanted: DeviceChoice) -> "tuple[MainMemory | Gpus, str]":
    """Whose memory workers live on, and the device of the hot one: the GPU with most of it free, by UUID, or "cpu".

    wanted: "auto" takes a GPU where there is one. Raises SettingsError where a GPU is asked for and there is none.
    """
    if wanted == CPU:
        return MainMemory(), CPU
    try:
        return _open_gpus()
    except SettingsError:
        if wanted == "gpu":
            raise
        return MainMemory(), CPU


def _open_gpus() -> "tuple[Gpus, str]":
    try:
        gpus = Gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))
        devices = gpus.read({}).devices
    except pynvml.NVMLError as error:
        raise SettingsError(f"TTS_DEVICE: gpu is asked for, and none is found ({error}).") from None
    if not devices:
        raise SettingsError("TTS_DEVICE: gpu is asked for, and CUDA_VISIBLE_DEVICES leaves none.")
    return gpus, max(devices, key=lambda device: device.free_bytes).id


class MainMemory:
    """Main memory, as far as the control groups of this process let it have it."""

    def read(self, pids: Mapping[int, int]) -> Memory:
        """One reading. pids: process id of each worker."""
        machine = psutil.virtual_memory()
        free, total = machine.available, machine.total
        for limit, used in _limits():
            free, total = min(free, max(0, limit - used)), min(total, limit)
        return Memory((DeviceMemory(CPU, free, total),), {worker: _resident(pid) for worker, pid in pids.items()})


class Gpus:
    """The memory of all NVIDIA GPUs that this process may use, by UUID, from the driver's own library."""

    def __init__(self, visible: str | None) -> None:
        """visible: CUDA_VISIBLE_DEVICES, indices or UUIDs with commas between; None: all of them.

        Raises pynvml.NVMLError where there is no driver.
        """
        self._visible = None if visible is None else [name.strip() for name in visible.split(",") if name.strip()]
        pynvml.nvmlInit()

    def read(self, pids: Mapping[int, int]) -> Memory:
        """One reading. pids: process id of each worker; what a worker holds is left out where the driver hides it.

        A GPU that does not answer is left out too. Raises pynvml.NVMLError where none does.
        """
        workers = {pid: worker for worker, pid in pids.items()}
        devices: list[DeviceMemory] = []
        held: dict[int, int] = {}
        failure: pynvml.NVMLError | None = None
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                uuid = pynvml.nvmlDeviceGetUUID(handle)
                if not self._is_visible(index, uuid):
                    continue
                memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
                devices.append(DeviceMemory(uuid, memory.free, memory.total))
                for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle):
                    if process.pid in workers and process.usedGpuMemory is not None:
                        held[workers[process.pid]] = process.usedGpuMemory
            except pynvml.NVMLError as error:  # it has fallen off the bus; the others work on
                failure = error
        if failure and not devices:
            raise failure
        return Memory(tuple(devices), held)

    def _is_visible(self, index: int, uuid: str) -> bool:
        return self._visible is None or any(name == str(index) or uuid.startswith(name) for name in self._visible)


def _resident(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:  # it has just ended
        return 0


def _limits() -> Iterator[tuple[int, int]]:
    """Limit and use, in bytes, of each control group that this process is in."""
    for group in groups(MEMBERSHIP, ROOT):
        with suppress(OSError, ValueError):  # "max", or no such limit
            limit = int((group / "memory.max").read_text(encoding="ascii"))
            yield limit, int((group / "memory.current").read_text(encoding="ascii"))
