"""NVML's functions, as a library that pynvml calls: stands for a driver with two GPUs, of which one may fall away.

The symbols, arguments and return codes are those of libnvidia-ml.so.1; pynvml itself is the real one.
"""

import ctypes
from dataclasses import dataclass, field
from typing import Any

import pynvml


@dataclass
class Gpu:
    """One card. used: bytes by process id; None where the driver hides it."""

    uuid: str
    free: int
    total: int
    used: dict[int, int | None] = field(default_factory=dict)
    is_lost: bool = False


class FakeNvml:
    """What `ctypes.CDLL("libnvidia-ml.so.1")` gives. Pointers come as `byref` objects, which know their target."""

    def __init__(self, *gpus: Gpu) -> None:
        self.gpus = gpus

    def nvmlInitWithFlags(self, flags: int) -> int:
        return pynvml.NVML_SUCCESS

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = len(self.gpus)
        return pynvml.NVML_SUCCESS

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, device: Any) -> int:
        ctypes.cast(ctypes.pointer(device._obj), ctypes.POINTER(ctypes.c_void_p))[0] = index.value + 1
        return pynvml.NVML_SUCCESS

    def nvmlDeviceGetUUID(self, device: Any, uuid: Any, length: Any) -> int:
        uuid.value = self._gpu(device).uuid.encode()
        return pynvml.NVML_SUCCESS

    def nvmlDeviceGetMemoryInfo(self, device: Any, memory: Any) -> int:
        gpu = self._gpu(device)
        if gpu.is_lost:
            return pynvml.NVML_ERROR_GPU_IS_LOST
        memory._obj.free, memory._obj.total, memory._obj.used = gpu.free, gpu.total, gpu.total - gpu.free
        return pynvml.NVML_SUCCESS

    def nvmlDeviceGetComputeRunningProcesses_v3(self, device: Any, count: Any, found: Any) -> int:
        used = self._gpu(device).used
        if found is None or count._obj.value < len(used):
            count._obj.value = len(used)
            return pynvml.NVML_ERROR_INSUFFICIENT_SIZE if used else pynvml.NVML_SUCCESS
        count._obj.value = len(used)
        for place, (pid, size) in enumerate(used.items()):
            found[place].pid = pid
            found[place].usedGpuMemory = pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value if size is None else size
        return pynvml.NVML_SUCCESS

    def nvmlErrorString(self, code: int) -> bytes:
        return b"an error of the driver"

    def _gpu(self, device: Any) -> Gpu:
        return self.gpus[ctypes.cast(device, ctypes.c_void_p).value - 1]
