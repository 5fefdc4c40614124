"""The control groups (version 2) that limit this process."""

from collections.abc import Iterator
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
