"""Who may change what this server has: whoever knows the key, or, where there is none, somebody at this machine."""

import hmac
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import Request

from core.errors import Forbidden, Unauthorized
from core.settings import ServerSettings

OWN_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names under which a server is called by somebody who means the machine that he is at."""

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
"""Headers of a proxy, behind which everybody seems to be at this machine."""


async def require_admin(request: Request) -> None:
    """A dependency of routes that change something. Raises Unauthorized, Forbidden."""
    settings: ServerSettings = request.app.state.settings.server
    key = settings.admin_api_key.get_secret_value()
    if key:
        if not hmac.compare_digest(_sent_key(request).encode(), key.encode()):
            raise Unauthorized("This needs ADMIN_API_KEY of the server as a Bearer token.")
    elif not _is_at_this_machine(request):
        raise Forbidden("Without ADMIN_API_KEY this is only for somebody at the server's own machine, and no web page.")


def _sent_key(request: Request) -> str:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _is_at_this_machine(request: Request) -> bool:
    """No other machine, no proxy that hides one, and no page of a foreign site in a browser that runs here."""
    headers = request.headers
    try:
        is_near = request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False
    return (
        is_near
        and not any(name in headers for name in FORWARDED)
        and _host_of(f"//{headers.get('host', '')}") in OWN_HOSTS
        and ("origin" not in headers or _host_of(headers["origin"]) in OWN_HOSTS)
        and headers.get("sec-fetch-site", "none") in ("none", "same-origin")
    )


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
