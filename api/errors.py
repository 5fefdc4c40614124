"""The tree of `core.errors` in OpenAI's body: `{"error": {"message", "type", "param", "code"}}`, all four always."""

import math
import random
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from core.errors import SpeechError, SynthesisFailed, Unauthorized

JITTER = 0.1
"""Share by which clients that were refused together are spread, so that they do not come back together."""

_CODES = {404: "not_found", 405: "method_not_allowed"}

_WHERE = "Speech is made by POST /v1/audio/speech; voices are listed by GET /v1/voices, models by GET /v1/models."


def error_body(error: SpeechError) -> dict[str, Any]:
    """The body that OpenAI's clients read."""
    return body_of(error.message, error.type, error.code, error.param)


def body_of(message: str, type_: str, code: str, param: str | None = None) -> dict[str, Any]:
    """OpenAI's body, for what is refused without an error of the tree."""
    return {"error": {"message": message, "type": type_, "param": param, "code": code}}


def error_response(error: SpeechError) -> JSONResponse:
    """The whole answer. Clients are told when to try again, and when not to."""
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else {}
    if error.retry_after_s is not None:
        milliseconds = math.ceil(error.retry_after_s * random.uniform(1, 1 + JITTER) * 1000)
        headers |= {"Retry-After": str(math.ceil(milliseconds / 1000)), "retry-after-ms": str(milliseconds)}
    if isinstance(error, SynthesisFailed):
        # It was tried several times here already; OpenAI's clients would send it twice more.
        headers["x-should-retry"] = "false"
    return JSONResponse(error_body(error), error.status, headers)


def internal_error_response() -> JSONResponse:
    """For what should not have happened; the log says where it did."""
    return JSONResponse(body_of("The server made a mistake.", "server_error", "internal_error"), 500)


async def on_speech_error(request: Request, error: Exception) -> JSONResponse:
    """FastAPI's hook for the tree."""
    assert isinstance(error, SpeechError)
    return error_response(error)


async def on_http_error(request: Request, error: Exception) -> JSONResponse:
    """FastAPI's hook for unknown paths and methods. It names the paths that there are, never the one that was asked."""
    assert isinstance(error, HTTPException)
    said = {404: "There is nothing at this path.", 405: "This path does not take this method."}
    message = f"{said.get(error.status_code, 'The request cannot be answered.')} {_WHERE}"
    code = _CODES.get(error.status_code, "invalid_request")
    return JSONResponse(body_of(message, "invalid_request_error", code), error.status_code, error.headers)


async def on_client_gone(request: Request, error: Exception) -> Response:
    """FastAPI's hook for a client that left before all of its request was there: nobody will read this."""
    return Response(status_code=499)
