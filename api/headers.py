"""What every answer tells a browser of how far to trust it."""

from collections.abc import Iterable
from typing import Final

_ALL: Final = {"x-content-type-options": "nosniff"}

_PAGE: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "media-src 'self' blob:; connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(self)",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
}
"""Of HTML: it runs what this server serves and nothing else, talks to nobody else, and stands in no frame."""


def safe_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """What is to be added to these headers of an answer; a header that it has is its own."""
    there = {name.lower(): value for name, value in headers}
    is_page = there.get(b"content-type", b"").lower().startswith((b"text/html", b"application/xhtml"))
    wanted = _ALL | (_PAGE if is_page else {})
    return [(name.encode(), value.encode()) for name, value in wanted.items() if name.encode() not in there]
