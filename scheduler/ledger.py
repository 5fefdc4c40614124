"""What memory is left on each device, counting what was promised to workers that are still loading.

A worker that died for want of memory bars its device until clearly more is free there than it could have.
"""

from collections.abc import Mapping

from scheduler.messages import DeviceMemory, Memory

BAR_FACTOR = 1.02
"""How much more must be free than what was not enough: free memory is never still."""


class Ledger:
    """One entry a device; a GPU is known by its UUID, main memory as "cpu"."""

    def __init__(self, *, least_bytes: int) -> None:
        """least_bytes: what must be free for a worker, even where a smaller one was seen."""
        self._least_bytes = least_bytes
        self._devices: Mapping[str, DeviceMemory] = {}
        self.held: Mapping[int, int] = {}
        """Bytes that each worker holds."""
        self._promised: dict[int, tuple[str, int]] = {}
        self._loaded: set[int] = set()
        self._is_stale = True
        self._barred: dict[str, int] = {}
        self._seen_bytes = 0

    def read(self, memory: Memory) -> None:
        """A new reading. A worker's share is learned from what the largest of those holds that have loaded."""
        self._devices = {device.id: device for device in memory.devices}
        self._is_stale = False
        self.held = memory.workers
        self._seen_bytes = max([self._seen_bytes, *(memory.workers.get(worker, 0) for worker in self._loaded)])
        for worker in self._loaded:
            self._promised.pop(worker, None)
        for device, free in list(self._barred.items()):
            if device in self._devices and self._devices[device].free_bytes > free:
                del self._barred[device]

    @property
    def is_read(self) -> bool:
        """Whether there was a reading yet."""
        return bool(self._devices)

    def reading(self, device: str) -> DeviceMemory | None:
        """What was last read of a device."""
        return self._devices.get(device)

    def most_bytes(self) -> int:
        """Room on the device with most of it."""
        return max(map(self.room_bytes, self._devices), default=0)

    def need_bytes(self, prior_bytes: int) -> int:
        """What one more worker needs. prior_bytes: the backend's promise, for as long as none was seen."""
        return max(self._least_bytes, self._seen_bytes or prior_bytes)

    def room_bytes(self, device: str) -> int:
        """Free memory less what loading workers were promised; 0 for a device that is not known or barred."""
        known = self._devices.get(device)
        if known is None or device in self._barred:
            return 0
        return known.free_bytes - sum(promised for where, promised in self._promised.values() if where == device)

    @property
    def count(self) -> int:
        """Of the devices that there are."""
        return len(self._devices)

    def best(self, need_bytes: int, *, besides: frozenset[str] = frozenset()) -> str | None:
        """The device with the most room, where that is enough. besides: devices that are out of the question."""
        device = max((each for each in self._devices if each not in besides), key=self.room_bytes, default=None)
        return device if device is not None and self.room_bytes(device) >= need_bytes else None

    def is_unsure(self, device: str) -> bool:
        """Whether a worker loads there, or has loaded since the last reading: the next waits, to see each apart."""
        return self._is_stale or any(
            where == device for worker, (where, _) in self._promised.items() if worker not in self._loaded
        )

    def promise(self, worker: int, device: str, need_bytes: int) -> None:
        """A worker starts to load."""
        self._promised[worker] = device, need_bytes

    def settle(self, worker: int) -> None:
        """It has loaded: what it holds will be in the next reading."""
        self._loaded.add(worker)
        self._is_stale = True

    def release(self, worker: int) -> None:
        """It is gone."""
        self._promised.pop(worker, None)
        self._loaded.discard(worker)

    def bar(self, device: str, worker: int) -> None:
        """A worker ran out of memory there: what was free and what it held of it are not enough."""
        known = self._devices.get(device)
        self._barred[device] = int(((known.free_bytes if known else 0) + self.held.get(worker, 0)) * BAR_FACTOR)
