"""Every refusal in OpenAI's shape, with the headers by which its clients decide whether to come again."""

import asyncio
import json
import math
from concurrent.futures import Executor
from types import SimpleNamespace

import httpx
import pytest
from starlette.types import Message

from api.app import create_app
from api.errors import error_response
from core.errors import (
    CloningNotSupported,
    DeadlineExceeded,
    InvalidValue,
    Overloaded,
    SpeechError,
    SynthesisFailed,
    TooLarge,
    Unauthorized,
    Unavailable,
    UnknownVoice,
    UnsupportedLanguage,
)
from core.settings import load_settings
from voices.uploads import Uploads


@pytest.mark.parametrize(
    ("error", "status", "kind", "code", "param"),
    [
        (InvalidValue("No.", param="speed"), 422, "invalid_request_error", "invalid_value", "speed"),
        (UnknownVoice(("alloy",)), 400, "invalid_request_error", "unknown_voice", "voice"),
        (UnsupportedLanguage("No."), 400, "invalid_request_error", "unsupported_language", "language"),
        (CloningNotSupported("No.", param="x"), 400, "invalid_request_error", "cloning_not_supported", "x"),
        (TooLarge("No."), 413, "invalid_request_error", "too_large", None),
        (Unavailable("No."), 503, "server_error", "unavailable", None),
        (Overloaded("No."), 503, "overloaded_error", "overloaded", None),
        (DeadlineExceeded("No."), 504, "server_error", "deadline_exceeded", None),
        (SynthesisFailed("No."), 500, "server_error", "synthesis_failed", None),
        (SpeechError("No."), 500, "server_error", "internal_error", None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, SpeechError) else "",
)
def test_an_error_is_told_in_openai_s_shape(
    error: SpeechError, status: int, kind: str, code: str, param: str | None
) -> None:
    answer = error_response(error)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    expected = {"message": error.message, "type": kind, "param": param, "code": code}
    assert json.loads(bytes(answer.body)) == {"error": expected}


@pytest.mark.parametrize(
    ("error", "after_s", "should"),
    [
        pytest.param(Unavailable("No."), 5, None, id="a moment where nothing better is known"),
        pytest.param(Overloaded("No.", retry_after_s=42.3), 42.3, None, id="what the queue says"),
        pytest.param(Overloaded("No.", retry_after_s=0), 0.5, None, id="never at once"),
        pytest.param(SynthesisFailed("No."), None, "false", id="what was tried here is not tried again"),
        pytest.param(InvalidValue("No."), None, None, id="a mistake of the client's"),
        pytest.param(DeadlineExceeded("No."), None, None, id="too late"),
    ],
)
def test_clients_are_told_when_to_come_again(error: SpeechError, after_s: float | None, should: str | None) -> None:
    headers = error_response(error).headers
    assert headers.get("x-should-retry") == should
    if after_s is None:
        assert "retry-after" not in headers
        return
    exact_s = int(headers["retry-after-ms"]) / 1000
    assert after_s <= exact_s <= after_s * 1.1 + 0.001
    assert int(headers["retry-after"]) == math.ceil(exact_s)


def test_clients_that_are_refused_together_do_not_come_back_together() -> None:
    assert len({error_response(Overloaded("No.", 60)).headers["retry-after-ms"] for _ in range(20)}) > 10


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/v1/audio/speech", {"POST"}), ("PUT", "/v1/models", {"GET"}), ("POST", "/live", {"GET", "HEAD"})],
)
def test_a_wrong_method_is_told_the_right_ones(method: str, path: str, allowed: set[str]) -> None:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(load_settings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path)

    answer = asyncio.run(ask())
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == allowed
    assert answer.json()["error"]["code"] == "method_not_allowed"


def test_who_has_no_key_is_told_what_kind_of_key_it_takes() -> None:
    assert error_response(Unauthorized("No.")).headers["www-authenticate"] == "Bearer"
    assert "www-authenticate" not in error_response(InvalidValue("No.")).headers


@pytest.mark.parametrize("path", ["/v1/audio/speech", "/v1/audio/voices"])
def test_a_client_that_leaves_in_the_middle_of_its_request_is_no_fault_of_ours(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(load_settings())
    uploads = Uploads(2**20, Executor())
    app.state.synthesizer = SimpleNamespace(uploads=uploads)
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    form = [(b"content-type", b"multipart/form-data; boundary=x"), (b"host", b"localhost")]
    scope = {"type": "http", "http_version": "1.1", "method": "POST", "path": path, "raw_path": path.encode()}
    client = {"query_string": b"", "headers": form, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
    asyncio.run(app({**scope, **client, "scheme": "http", "root_path": ""}, receive, send))
    assert sent[0]["status"] == 499
    assert uploads.held == 0
    assert not caplog.records
