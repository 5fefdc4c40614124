"""The outermost layer of every request: one spelling of its path, headers of any answer, a last catch for errors."""

import re
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import internal_error_response
from api.headers import safe_headers
from core.errors import place_of
from telemetry.logs import REQUEST_ID, request_broke

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

_UNDER_V1 = frozenset({"audio", "voices", "models"})

_ANSWER_HEADERS = "uttera_tts.answer_headers"


def answer_headers(scope: Scope) -> list[tuple[str, str]]:
    """Names and values that the answer to this request will have besides its own, whatever it will be."""
    headers: list[tuple[str, str]] = scope.setdefault(_ANSWER_HEADERS, [])
    return headers


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
        added = [("x-request-id", request_id)]
        token = REQUEST_ID.set(request_id)
        has_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                own = [*message.get("headers", []), *((name.encode(), value.encode()) for name, value in added)]
                message["headers"] = [*own, *safe_headers(own)]
            await send(message)

        try:
            root = scope.get("root_path", "").rstrip("/")  # uvicorn puts it before every path
            path = root + canonical_path(scope["path"].removeprefix(root))
            inner = {**scope, "root_path": root, "path": path, _ANSWER_HEADERS: added}
            await self._app(inner, receive, send_with_headers)
        except Exception as error:  # the edge of a request: its message may hold the user's text, its place does not
            request_broke(place_of(error))
            if not has_started:
                await internal_error_response()(scope, receive, send_with_headers)
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
