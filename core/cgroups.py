"""The control groups (version 2) that limit this process."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MEMBERSHIP = Path("/proc/self/cgroup")
ROOT = Path("/sys/fs/cgroup")


def groups(membership: Path, root: Path) -> Iterator[Path]:
    """Folder of each group, from a service's own up to the root, which is all a container sees.

    Only the root, where there is another system, or control groups of version 1.
    """
    try:
        own = next(line[4:] for line in membership.read_text(encoding="utf-8").splitlines() if line.startswith("0::/"))
    except (OSError, StopIteration):
        own = ""
    return (group for group in (root / own, *(root / own).parents) if group.is_relative_to(root))


def usable_cores() -> int:
    """Cores that this process may use: its affinity, and the quotas of its control groups (version 2)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *quotas(MEMBERSHIP, ROOT)]))


def quotas(membership: Path, root: Path) -> Iterator[int]:
    """Whole cores that each group lets through."""
    for group in groups(membership, root):
        with suppress(OSError, ValueError):  # "max", or no such limit
            quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
            yield max(1, int(quota) // int(period))
