"""Backends by name. The parent may ask for names; only a child makes one, and so only a child loads its code."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from backends.base import Backend, BackendError
from backends.batching import Batching
from backends.engines import ENGINES
from core.environment import DeviceChoice

GROUP = "uttera_tts.backends"
"""Entry-point group in which a package names a factory of its backend."""

BackendFactory = Callable[[Mapping[str, Any]], Backend | Batching]
"""Makes an unloaded backend from the operator's options. This is what the entry-point group names."""

BUILT_IN: Mapping[str, str] = {
    "kokoro": "backends.kokoro.backend:make",
    "coqui": "backends.coqui.backend:make",
    "voxcpm": "backends.voxcpm.backend:make",
    "voxcpm-vllm": "backends.voxcpm_vllm.library:make",
}
"""Found without an installed entry point too, so that a bare checkout speaks."""


def is_heavy(name: str) -> bool:
    """Whether a backend's libraries take seconds to import: its workers are better forked than started by exec."""
    return name in ENGINES


def device(name: str, wanted: DeviceChoice) -> DeviceChoice:
    """Where the workers of a backend shall run. wanted: as TTS_DEVICE says."""
    return "cpu" if wanted == "auto" and not is_heavy(name) else wanted


def create(name: str, options: Mapping[str, Any]) -> Backend | Batching:
    """Import and make a backend, unloaded. Raises BackendError as `preload` does."""
    return preload(name)(options)


def preload(name: str) -> BackendFactory:
    """Import a backend's libraries; what makes one of it. name: built in, of an entry point, or `module:factory`.

    Raises BackendError where there is none of that name, or it cannot be imported.
    """
    target = BUILT_IN.get(name) or next((e.value for e in entry_points(group=GROUP, name=name)), name)
    module, _, factory = target.partition(":")
    if not factory:
        known = ", ".join(BUILT_IN)
        raise BackendError(f"There is no backend {name}; TTS_BACKEND may be auto, {known} or module:factory.")
    try:
        make: BackendFactory = getattr(import_module(module), factory)
    except ModuleNotFoundError as error:
        if name not in BUILT_IN:
            raise BackendError(f"The backend {name} cannot be imported: there is no {error.name}.") from None
        raise BackendError(f"{name} needs the package {error.name}: ./setup.sh --backend {name} adds it.") from None
    except (ImportError, AttributeError) as error:
        raise BackendError(f"The backend {name} cannot be imported ({type(error).__name__}).") from None
    return make
