"""uvicorn's connection, with an end to what may come before there is a request: bytes, headers, seconds, and others.

uvicorn itself bounds none of them: a client that sends a header for ever, or a byte a minute on each of a thousand
connections, would keep everybody else out.
"""

import asyncio
import json
from http import HTTPStatus
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from api.errors import body_of

MAX_HEAD_BYTES = 64 * 1024
"""Request line and headers; browsers and proxies send a tenth of it."""

MAX_HEADERS = 128

HEAD_TIMEOUT_S = 15.0
"""For a whole head, from its first byte; on a new connection, from the connection on."""

MAX_CONNECTIONS = 800
"""At once. Below the 1024 files that a process may usually have open, so that the others still work."""

_SAID: Final = {
    HTTPStatus.BAD_REQUEST: ("This is not valid HTTP.", "invalid_request"),
    HTTPStatus.REQUEST_TIMEOUT: ("The headers of the request did not come.", "request_timeout"),
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: (
        f"At most {MAX_HEAD_BYTES} bytes and {MAX_HEADERS} headers are accepted.",
        "too_large",
    ),
}


class BoundedHttp(HttpToolsProtocol):
    """One connection. Refusals before a request is there have OpenAI's body too, and end the connection."""

    head_timeout_s = HEAD_TIMEOUT_S
    max_connections = MAX_CONNECTIONS

    _waiting: asyncio.TimerHandle | None = None
    _is_in_head = False
    _head_bytes = 0
    _fault = HTTPStatus.BAD_REQUEST

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """A client is there. Where there are too many, the one goes that has had no request for the longest time."""
        super().connection_made(transport)
        self.idle_since = self.loop.time()
        self._wait_for_head()
        if len(self.connections) > self.max_connections:
            idle = [other for other in self.connections if isinstance(other, BoundedHttp) and other.is_idle]
            min(idle, key=lambda other: other.idle_since).transport.abort()

    @property
    def is_idle(self) -> bool:
        """Whether it has no request that is not answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes of a head or a body."""
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self.is_idle and self in self.connections:  # no WebSocket by now, whose connection is another object's
            self._wait_for_head()  # bytes of no request: uvicorn has just forgotten when to close

    def on_message_begin(self) -> None:
        """The first byte of a head."""
        super().on_message_begin()
        self._is_in_head = True
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        """The last byte of a head. Raises ValueError, which stops the parser, where it is too large."""
        self._stop_waiting()
        self._is_in_head, self._head_bytes = False, 0
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._fault = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise ValueError
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """A request is answered."""
        self.idle_since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Called where the parser stopped; msg is uvicorn's own."""
        self._refuse(self._fault)

    def _wait_for_head(self) -> None:
        if not self._waiting:
            self._waiting = self.loop.call_later(self.head_timeout_s, self._refuse, HTTPStatus.REQUEST_TIMEOUT)

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting.cancel()
            self._waiting = None

    def _refuse(self, status: HTTPStatus) -> None:
        """Close, and say why, unless nothing was asked or an answer to what was asked before is on its way."""
        self._stop_waiting()
        if self.transport.is_closing():
            return
        if self.is_idle and (self._is_in_head or status != HTTPStatus.REQUEST_TIMEOUT):
            body = json.dumps(body_of(_SAID[status][0], "invalid_request_error", _SAID[status][1])).encode()
            head = (
                f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()
