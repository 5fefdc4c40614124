"""What this machine has for the engines on torch, for the choice that `auto` makes. Imports none of them."""

import pynvml

from backends.base import BackendError
from backends.choice import Machine
from backends.engines import ENGINES, Engine, find, place
from backends.weights.release import is_accepted
from core.environment import DeviceChoice
from core.settings import Settings
from pool.memory import open_memory
from scheduler.messages import CPU


def look(settings: Settings) -> Machine:
    """One look at GPUs, libraries, weights and licences; takes milliseconds."""
    engines = ENGINES.values()
    return Machine(
        gpu_free_bytes=_free_bytes(settings.pool.tts_device),
        installed=frozenset(engine.name for engine in engines if engine.can_use_gpu),
        whole=frozenset(engine.name for engine in engines if _is_whole(engine, settings)),
        accepted=frozenset(engine.name for engine in engines if _is_accepted(engine, settings)),
    )


def _free_bytes(wanted: DeviceChoice) -> int | None:
    memory, device = open_memory(wanted)
    if device == CPU:
        return None
    try:
        return max((found.free_bytes for found in memory.read({}).devices), default=None)
    except pynvml.NVMLError:  # the last one has just fallen off the bus
        return None


def _is_whole(engine: Engine, settings: Settings) -> bool:
    try:
        find(engine, settings.options(engine.name))
    except BackendError:
        return False
    return True


def _is_accepted(engine: Engine, settings: Settings) -> bool:
    return settings.weights.coqui_tos_agreed or is_accepted(engine, place(engine, settings.options(engine.name)))
