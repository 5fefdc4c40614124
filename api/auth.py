"""Who may do what. Each route names one of these rules as its dependency, and they are nowhere but here.

    to …                 no key is set       API_KEYS                     ADMIN_API_KEY
    require_speaker      everybody           a key
    require_reader       everybody           a key
    require_lister       everybody           everybody, or a key (PUBLIC_LISTINGS=false)
    require_watcher      at this machine     at this machine, or a key
    require_admin        at this machine     at this machine with a key   that key alone, from anywhere

The admin's key is a key for everything else, too. A key is a Bearer token, or ElevenLabs' `xi-api-key`.
"""

import hmac
from collections.abc import Sequence

from pydantic import SecretStr
from starlette.requests import HTTPConnection

from api.client import address_of, is_at_this_machine
from api.rate import RateLimit
from core.errors import Forbidden, Unauthorized
from core.settings import ServerSettings

_NEEDS_KEY = "This needs a key of the server (API_KEYS) as a Bearer token."


async def require_speaker(connection: HTTPConnection) -> None:
    """Of routes that speak, each time of which is counted (RATE_LIMIT_RPM). Raises Unauthorized, RateLimited."""
    await require_reader(connection)
    limit: RateLimit | None = connection.app.state.rate_limit
    if limit:
        settings = _settings(connection)
        held = _held(connection, _all_keys(settings))
        limit.take(address_of(connection, settings.trusted_proxies) if held is None else held, connection.scope)


async def require_reader(connection: HTTPConnection) -> None:
    """Of what is written about one voice. Raises Unauthorized."""
    settings = _settings(connection)
    if settings.api_keys and _held(connection, _all_keys(settings)) is None:
        raise Unauthorized(_NEEDS_KEY)


async def require_lister(connection: HTTPConnection) -> None:
    """Of lists, which Open WebUI asks for without a key. Raises Unauthorized."""
    if not _settings(connection).public_listings:
        await require_reader(connection)


async def require_watcher(connection: HTTPConnection) -> None:
    """Of what is for the operator's eyes. Raises Unauthorized, Forbidden."""
    keys = _all_keys(_settings(connection))
    if is_at_this_machine(connection) or _held(connection, keys) is not None:
        return
    if keys:
        raise Unauthorized(_NEEDS_KEY)
    raise Forbidden("Without API_KEYS this is only for somebody at the server's own machine.")


async def require_admin(connection: HTTPConnection) -> None:
    """Of routes that change something. Raises Unauthorized, Forbidden."""
    settings = _settings(connection)
    if settings.admin_api_key.get_secret_value():
        if _held(connection, [settings.admin_api_key]) is None:
            raise Unauthorized("This needs ADMIN_API_KEY of the server as a Bearer token.")
    elif not is_at_this_machine(connection):
        raise Forbidden("Without ADMIN_API_KEY this is only for somebody at the server's own machine, and no web page.")
    else:
        await require_reader(connection)


def is_stranger(connection: HTTPConnection) -> bool:
    """Whether who asks is neither at this machine nor has a key of a server that has some.

    Strangers learn whether the server works and how full it is, as load balancers must, and nothing about its insides.
    """
    settings = _settings(connection)
    if not settings.api_keys or is_at_this_machine(connection):
        return False
    return _held(connection, _all_keys(settings)) is None


def _settings(connection: HTTPConnection) -> ServerSettings:
    settings: ServerSettings = connection.app.state.settings.server
    return settings


def _all_keys(settings: ServerSettings) -> list[SecretStr]:
    return [key for key in (*settings.api_keys, settings.admin_api_key) if key.get_secret_value()]


def _held(connection: HTTPConnection, keys: Sequence[SecretStr]) -> int | None:
    """The place of the key that a request brings, None where it brings none of them.

    All of them are compared, each in constant time: how long it takes tells nothing of them but their number.
    """
    sent = _sent_key(connection).encode()
    matches = [hmac.compare_digest(sent, key.get_secret_value().encode()) for key in keys]
    return matches.index(True) if any(matches) else None


def _sent_key(connection: HTTPConnection) -> str:
    """A header that comes twice says nothing, for a proxy may have read the other one."""
    bearers, others = map(connection.headers.getlist, ("authorization", "xi-api-key"))
    if len(bearers) > 1 or len(others) > 1:
        return ""
    scheme, _, key = "".join(bearers).partition(" ")
    return key.strip() if scheme.lower() == "bearer" else "".join(others).strip()
