"""Settings for a person: a bad value is a readable line, not a traceback."""

import sys
from typing import Any

from core.environment import SettingsError
from core.settings import Settings, load_settings
from pool.memory import open_memory
from telemetry.node_registry import open_redis


def settings_or_exit(**overrides: Any) -> Settings:
    """The settings; with a bad one, prints a line for each field and ends with code 2. None overrides nothing."""
    try:
        settings = load_settings(**{name: value for name, value in overrides.items() if value is not None})
        open_memory(settings.pool.tts_device)  # a GPU that is not there is a bad value too
        open_redis(settings)  # and so is a Redis that it takes a package more to talk to
    except SettingsError as error:
        print(f"These settings cannot be used:\n{error}", file=sys.stderr)
        raise SystemExit(2) from None
    return settings
