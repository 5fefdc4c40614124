"""What memory there is for workers, and what each of them holds of it."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from scheduler.messages import DeviceMemory, Memory

CPU = "cpu"
"""The device of a worker that uses no GPU."""


class MainMemory:
    """Main memory, as far as the control groups of this process let it have it."""

    def read(self, pids: Mapping[int, int]) -> Memory:
        """One reading. pids: process id of each worker."""
        free = psutil.virtual_memory().available
        for limit, used in _limits(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")):
            free = min(free, max(0, limit - used))
        return Memory((DeviceMemory(CPU, free),), {worker: _resident(pid) for worker, pid in pids.items()})


def _resident(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:  # it has just ended
        return 0


def _limits(membership: Path, root: Path) -> list[tuple[int, int]]:
    """Limit and use, in bytes, of each control group (version 2) that this process is in."""
    try:
        own = next(line[4:] for line in membership.read_text(encoding="utf-8").splitlines() if line.startswith("0::/"))
    except (OSError, StopIteration):  # another system, or control groups of version 1
        own = ""
    found = []
    for group in (root / own, *(root / own).parents):
        if group.is_relative_to(root):
            with suppress(OSError, ValueError):  # "max", or no such limit
                limit = int((group / "memory.max").read_text(encoding="ascii"))
                found.append((limit, int((group / "memory.current").read_text(encoding="ascii"))))
    return found
