"""The embedded model, whose speech is looked at as if it were drawn by lot: real clips for the guard of quality."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from backends.kokoro import backend as kokoro
from core.settings import load_settings
from core.speech import Traits


class GuardedKokoro(kokoro.KokoroBackend):
    """Says of itself that it samples."""

    def load(self, device: str) -> Traits:
        return replace(super().load(device), is_sampled=True)


def make(_: Mapping[str, Any]) -> GuardedKokoro:
    made = kokoro.make(load_settings().options("kokoro"))
    made.__class__ = GuardedKokoro
    return made
