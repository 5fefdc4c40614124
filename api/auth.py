"""Who may change what this server has: whoever knows the key, or, where there is none, somebody at this machine."""

import hmac
import re
from ipaddress import ip_address

from fastapi import Request

from core.errors import Forbidden, Unauthorized
from core.settings import ServerSettings

_OWN_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.ASCII | re.IGNORECASE)
"""How a server is called by somebody who means the machine that he is at: a name and a port, and nothing else."""

FORWARDED = frozenset(
    {
        "forwarded",
        "via",
        "client-ip",
        "fastly-client-ip",
        "true-client-ip",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-original-host",
        "x-originating-ip",
        "x-real-ip",
        "x-remote-addr",
        "x-remote-ip",
    }
)
FORWARDED_PREFIXES = ("cf-", "x-envoy-", "x-forwarded", "x-original-forwarded")
"""Headers of a proxy, behind which everybody seems to be at this machine; and how others of them begin."""


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
    try:
        is_near = request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False
    is_forwarded = any(name in FORWARDED or name.startswith(FORWARDED_PREFIXES) for name in request.headers)
    return is_near and not is_forwarded and _means_this_server(request)


def _means_this_server(request: Request) -> bool:
    """Whether a request is addressed to this machine, and no page but one of this server sent it.

    A header that comes twice is read otherwise by others, so that it says nothing.
    """
    hosts, origins, sites = map(request.headers.getlist, ("host", "origin", "sec-fetch-site"))
    if len(hosts) != 1 or not _OWN_HOST.fullmatch(hosts[0]):
        return False
    own = f"{request.scope['scheme']}://{hosts[0]}".lower()
    return [origin.lower() for origin in origins] in ([], [own]) and sites in ([], ["none"], ["same-origin"])
