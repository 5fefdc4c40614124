"""How many requests a minute one client may make: an allowance that is full after a minute without any."""

from collections import OrderedDict
from ipaddress import ip_address, ip_network

from starlette.types import Scope

from api.edge import answer_headers
from core.clock import Clock
from core.errors import RateLimited

WINDOW_S = 60.0

MAX_CLIENTS = 10_000
"""Beyond, who has not come for the longest time starts afresh: about 2 MB, however many addresses there are."""

IPV6_PREFIX = 64
"""Bits of an address of IPv6 that one customer of a provider gets; the others are his own to choose."""


class RateLimit:
    """The generic cell rate algorithm: of each client only the moment at which its allowance is full again."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._per_minute = per_minute
        self._step_s = WINDOW_S / per_minute
        self._clock = clock
        self._full_at: OrderedDict[str | int, float] = OrderedDict()

    def take(self, client: str | int, scope: Scope) -> None:
        """Count a request, and tell its answer what is left. client: an address, or the number of a key.

        Raises RateLimited where nothing is left.
        """
        client = _household(client)
        now = self._clock.now()
        before = max(now, self._full_at.pop(client, now))
        after = before + self._step_s
        is_over = after - now > WINDOW_S + 1e-6
        self._full_at[client] = full_at = before if is_over else after
        self._forget(now)
        left = int((WINDOW_S - (full_at - now)) / self._step_s + 1e-6)
        told = {"limit": self._per_minute, "remaining": left, "reset": f"{full_at - now:.3f}s"}
        answer_headers(scope).extend((f"x-ratelimit-{name}-requests", str(value)) for name, value in told.items())
        if is_over:
            raise RateLimited(self._per_minute, retry_after_s=after - now - WINDOW_S)

    def _forget(self, now: float) -> None:
        """Of those who came the longest time ago: whoever has a full allowance, or is too much."""
        while len(self._full_at) > MAX_CLIENTS or next(iter(self._full_at.values()), now + 1) <= now:
            self._full_at.popitem(last=False)


def _household(client: str | int) -> str | int:
    """All addresses that one client may choose from count as one."""
    try:
        address = ip_address(client) if isinstance(client, str) else None
    except ValueError:
        return client
    return str(ip_network((int(address), IPV6_PREFIX), strict=False)) if address and address.version == 6 else client
