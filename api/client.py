"""Who is at the other end of a connection: from which address, and whether at this machine."""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from starlette.requests import HTTPConnection

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


def address_of(connection: HTTPConnection, trusted: Sequence[IPv4Network | IPv6Network]) -> str:
    """The address by which clients are told apart, empty where there is none. It opens no door.

    trusted: proxies. Each of them adds to X-Forwarded-For whom it saw, so that the list is read from its end, as far as
    it was written by one of them: what stands before may be anybody's invention.
    """
    peer = connection.client.host if connection.client else ""
    seen = _address(peer)
    hops = ",".join(connection.headers.getlist("x-forwarded-for")).split(",")
    while seen and hops and _is_in(seen, trusted) and (hop := _address(hops.pop().strip())):
        seen = hop
    return str(seen or peer)


def is_own(host: str) -> bool:
    """Whether what listens there is for this machine alone."""
    address = _address(host)
    return address.is_loopback if address else host.lower() == "localhost"


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """None for what is no address. A socket that listens on :: has its own way to spell those of IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address


def _is_in(address: IPv4Address | IPv6Address, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    return any(address in network for network in networks)


def is_at_this_machine(connection: HTTPConnection) -> bool:
    """No other machine, no proxy that hides one, and no page of a foreign site in a browser that runs here."""
    address = _address(connection.client.host) if connection.client else None
    is_forwarded = any(name in FORWARDED or name.startswith(FORWARDED_PREFIXES) for name in connection.headers)
    return address is not None and address.is_loopback and not is_forwarded and _means_this_server(connection)


def _means_this_server(connection: HTTPConnection) -> bool:
    """Whether a request is addressed to this machine, and no page but one of this server sent it.

    A header that comes twice is read otherwise by others, so that it says nothing.
    """
    hosts, origins, sites = map(connection.headers.getlist, ("host", "origin", "sec-fetch-site"))
    if len(hosts) != 1 or not _OWN_HOST.fullmatch(hosts[0]):
        return False
    own = f"{connection.scope['scheme']}://{hosts[0]}".lower()
    return [origin.lower() for origin in origins] in ([], [own]) and sites in ([], ["none"], ["same-origin"])
