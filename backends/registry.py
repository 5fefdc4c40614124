"""Backends by name. The parent may ask for names; only a child makes one, and so only a child loads its code."""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from backends.base import Backend, BackendError, BackendFactory

GROUP = "uttera_tts.backends"
"""Entry-point group in which a package names a factory of its backend."""

BUILT_IN: Mapping[str, str] = {"kokoro": "backends.kokoro.backend:make"}
"""Found without an installed entry point too, so that a bare checkout speaks."""


def resolve(name: str) -> str:
    """The backend that a setting means: `auto` is the embedded model as long as there is no other for this machine."""
    return "kokoro" if name == "auto" else name


def create(name: str, options: Mapping[str, Any]) -> Backend:
    """Import and make a backend, unloaded. name: built in, of an entry point, or `module:factory`.

    Raises BackendError where there is none of that name, or it cannot be imported.
    """
    target = BUILT_IN.get(name) or next((e.value for e in entry_points(group=GROUP, name=name)), name)
    module, _, factory = target.partition(":")
    if not factory:
        known = ", ".join(BUILT_IN)
        raise BackendError(f"There is no backend {name}; TTS_BACKEND may be auto, {known} or module:factory.")
    try:
        make: BackendFactory = getattr(import_module(module), factory)
    except (ImportError, AttributeError) as error:
        raise BackendError(f"The backend {name} cannot be imported ({type(error).__name__}).") from None
    return make(options)
