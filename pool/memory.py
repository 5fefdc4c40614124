"""What memory there is for workers, and what each of them holds of it."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

import psutil

from core.cgroups import MEMBERSHIP, ROOT, groups
from scheduler.messages import CPU, DeviceMemory, Memory


class MainMemory:
    """Main memory, as far as the control groups of this process let it have it."""

    def read(self, pids: Mapping[int, int]) -> Memory:
        """One reading. pids: process id of each worker."""
        machine = psutil.virtual_memory()
        free, total = machine.available, machine.total
        for limit, used in _limits():
            free, total = min(free, max(0, limit - used)), min(total, limit)
        return Memory((DeviceMemory(CPU, free, total),), {worker: _resident(pid) for worker, pid in pids.items()})


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
