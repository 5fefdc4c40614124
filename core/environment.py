"""What every group of settings is: read from the environment and from `.env` in the project's folder."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

PROJECT = Path(__file__).resolve().parent.parent
"""The checkout: relative paths in settings start here, wherever the server was started."""


class SettingsError(Exception):
    """Settings that cannot be used; one readable line a field."""


class Group(BaseSettings):
    """Settings that belong together. An empty value counts as unset; the real environment wins over `.env`."""

    model_config = SettingsConfigDict(
        env_file=PROJECT / ".env", env_ignore_empty=True, extra="ignore", frozen=True, hide_input_in_errors=True
    )


DeviceChoice: TypeAlias = Literal["auto", "cpu", "gpu"]
"""Where workers shall run; auto: where the engine belongs, if there is such a device."""


def _sendable(key: SecretStr) -> SecretStr:
    """A key that a client can send in a header just as it is. Raises ValueError."""
    text = key.get_secret_value()
    if text != text.strip() or not (text.isascii() and text.isprintable()):
        raise ValueError("It should have printable ASCII characters only, and no blank at its ends")
    return key


def listed(value: Any) -> Any:
    """The parts of a text between its commas. Raises ValueError where there is text, and no part."""
    if not isinstance(value, str):
        return value
    parts = [part.strip() for part in value.split(",") if part.strip()]
    if value and not parts:
        raise ValueError("It should have something between its commas")
    return parts


def _network(value: Any) -> Any:
    """Raises ValueError."""
    try:
        return ip_network(value)
    except ValueError:
        raise ValueError("It should be addresses or networks such as 127.0.0.1 and 10.0.0.0/8") from None


Key: TypeAlias = Annotated[SecretStr, AfterValidator(_sendable)]
Network: TypeAlias = Annotated[IPv4Network | IPv6Network, BeforeValidator(_network)]
