"""The outermost layer of every request: its id, its path in one spelling, and the last catch for errors of our own."""

import re
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import internal_error_response
from core.errors import place_of
from telemetry.logs import REQUEST_ID, request_broke

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

_UNDER_V1 = frozenset({"audio", "voices", "models"})


class Edge:
    """Pure ASGI, so that a client's leaving reaches the one who watches for it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on; answers 500 where nothing was answered yet and something broke."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        token = REQUEST_ID.set(request_id)
        has_started = False

        async def send_with_id(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                message["headers"] = [*message.get("headers", []), (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            root = scope.get("root_path", "").rstrip("/")  # uvicorn puts it before every path
            path = root + canonical_path(scope["path"].removeprefix(root))
            await self._app({**scope, "root_path": root, "path": path}, receive, send_with_id)
        except Exception as error:  # the edge of a request: its message may hold the user's text, its place does not
            request_broke(place_of(error))
            if not has_started:
                await internal_error_response()(scope, receive, send_with_id)
        finally:
            REQUEST_ID.reset(token)


def canonical_path(path: str) -> str:
    """One spelling of a path: no doubled or trailing slashes, and one /v1 where clients have none or two."""
    parts = [part for part in path.split("/") if part]
    while parts[:2] == ["v1", "v1"]:
        parts.pop(0)
    if parts and parts[0] in _UNDER_V1:
        parts.insert(0, "v1")
    return "/" + "/".join(parts)


def _request_id(scope: Scope) -> str:
    """The client's own id where it is a plain word, else a new one."""
    sent = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
    return sent if _ID.fullmatch(sent) else uuid4().hex
