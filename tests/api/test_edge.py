"""The outermost layer: one spelling of every path, an id for every request, no word of an error to the outside."""

import asyncio
import json
import logging
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from api.app import create_app
from api.edge import Edge, canonical_path
from core.settings import load_settings
from telemetry.logs import REQUEST_ID


@pytest.mark.parametrize(
    ("spellings", "path"),
    [
        (["/v1/audio/speech", "/audio/speech", "/v1/v1/audio/speech", "/v1/audio/speech/"], "/v1/audio/speech"),
        (["//v1//audio///speech//", "/v1/v1/v1/audio/speech", "v1/audio/speech"], "/v1/audio/speech"),
        (["/audio/speech/stream", "/v1/audio/speech/stream/"], "/v1/audio/speech/stream"),
        (["/voices", "/v1/voices", "/v1/v1/voices/"], "/v1/voices"),
        (["/models/tts-1", "/v1/models/tts-1"], "/v1/models/tts-1"),
        (["/", "", "//", "///"], "/"),
        (["/v1", "/v1/", "/v1/v1", "//v1//v1//"], "/v1"),
        (["/health", "/health/", "//health"], "/health"),
        (["/v1/health", "/v1/v1/health"], "/v1/health"),
        (["/v2/audio/speech", "/v2//audio/speech/"], "/v2/audio/speech"),
        (["/api/v1/v1/audio"], "/api/v1/v1/audio"),
        (["/V1/audio/speech"], "/V1/audio/speech"),
        (["/audio2/speech", "/audio2/speech/"], "/audio2/speech"),
        (["/v1/../audio"], "/v1/../audio"),
        (["/ v1/audio"], "/ v1/audio"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_path_has_one_spelling(spellings: list[str], path: str) -> None:
    assert {canonical_path(spelling) for spelling in spellings} == {path}


@given(st.lists(st.sampled_from(["v1", "audio", "voices", "speech", "", "..", "é"])).map("/".join))
@settings(max_examples=30)
def test_a_path_in_its_one_spelling_stays_as_it_is(path: str) -> None:
    once = canonical_path(path)
    assert canonical_path(once) == once
    assert once.startswith("/")
    assert "//" not in once


def get(app: Any, path: str, method: str = "GET", root_path: str = "", **headers: str) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, root_path=root_path)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, f"http://test{path}", headers=headers)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "path",
    [
        "/models",
        "/v1/v1/models",
        "//v1///models//",
        "/v1%2Fmodels",
        "/%2Fmodels%2F",
        "/v1%2fv1/models?a=b",
        "/%6Dodels",
    ],
)
def test_a_list_is_found_however_its_path_is_spelled(path: str) -> None:
    answer = get(create_app(load_settings()), path)
    assert answer.status_code == 200
    assert answer.json()["object"] == "list"


@pytest.mark.parametrize("root_path", ["/tts", "/tts/"])
@pytest.mark.parametrize("path", ["/tts/models", "/tts/v1/models", "/tts//v1/v1/models/"])
def test_a_list_is_found_behind_a_proxy_that_serves_other_things_too(root_path: str, path: str) -> None:
    assert get(create_app(load_settings()), path, root_path=root_path).status_code == 200


@pytest.mark.parametrize("path", ["/v1/%2e%2e/models", "/v1%252Fmodels", "/v1/models%00", "/V1/models", "/v1\\models"])
def test_any_other_path_is_not_found_and_is_not_repeated(path: str) -> None:
    answer = get(create_app(load_settings()), path)
    assert answer.status_code == 404
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert path not in answer.text


# --- around an app that breaks


async def broken(scope: Scope, receive: Receive, send: Send) -> None:
    """Raises before or behind its status line, as the path says."""
    if scope["path"] == "/late":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-route", b"HOT")]})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
    raise RuntimeError("the user's words")


def sent_by(app: Any, scope: Scope) -> list[Message]:
    """What an app behind the edge sends in one call."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    asyncio.run(Edge(app)(scope, receive, send))
    return sent


def http_scope(path: str, *headers: tuple[bytes, bytes]) -> Scope:
    return {"type": "http", "method": "GET", "path": path, "headers": [*headers]}


def test_an_error_of_our_own_is_a_500_that_tells_no_words(caplog: pytest.LogCaptureFixture) -> None:
    start, body = sent_by(broken, http_scope("/early", (b"x-request-id", b"abc")))
    assert start["status"] == 500
    assert (b"x-request-id", b"abc") in start["headers"]
    error = json.loads(body["body"])["error"]
    assert error == {
        "message": "The server made a mistake.",
        "type": "server_error",
        "param": None,
        "code": "internal_error",
    }
    assert "RuntimeError at" in caplog.text
    assert "request=abc" in caplog.text
    assert "the user's words" not in caplog.text


def test_an_error_behind_the_status_line_adds_nothing_to_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    start, body = sent_by(broken, http_scope("/late"))
    assert (start["status"], body["body"], body["more_body"]) == (200, b"half", True)
    assert start["headers"][0] == (b"x-route", b"HOT")
    assert [record.levelno for record in caplog.records if record.name == "uttera_tts"] == [logging.ERROR]


@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
def test_what_is_no_request_passes_untouched(kind: str) -> None:
    scope = {"type": kind, "path": "//v1//v1"}
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    assert sent_by(app, scope) == []
    assert seen[0] is scope


def test_a_cancelled_request_stays_cancelled() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        sent_by(app, http_scope("/"))


@pytest.mark.parametrize(
    ("sent", "is_kept"),
    [
        ([b"abc-123_x.Y"], True),
        ([b"x" * 64], True),
        ([b"first", b"second"], True),
        ([], False),
        ([b""], False),
        ([b"x" * 65], False),
        ([b"a b"], False),
        ([b"a\n"], False),
        ([b"\xe9"], False),
        ([b'a"b'], False),
    ],
    ids=ascii,
)
def test_lines_and_answer_of_a_request_carry_its_id(sent: list[bytes], is_kept: bool) -> None:
    inside: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        inside.append(REQUEST_ID.get())
        await send({"type": "http.response.start", "status": 204})

    (start,) = sent_by(app, http_scope("/", *((b"x-request-id", value) for value in sent)))
    assert start["headers"][0] == (b"x-request-id", inside[0].encode())
    assert (inside[0].encode() == (sent or [b""])[0]) is is_kept
    assert is_kept or len(inside[0]) == 32


def test_the_id_is_gone_behind_the_request() -> None:
    async def scene() -> tuple[str, str]:
        async def send(message: Message) -> None: ...

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        before = REQUEST_ID.get()
        await Edge(broken)(http_scope("/early", (b"x-request-id", b"abc")), receive, send)
        return before, REQUEST_ID.get()

    assert asyncio.run(scene()) == ("", "")
