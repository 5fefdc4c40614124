"""What a browser is told of answers: all of them, and pages."""

import asyncio

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from api.app import create_app
from api.edge import Edge
from core.settings import load_settings

PAGE = ["content-security-policy", "x-frame-options", "referrer-policy", "permissions-policy"]
ORIGIN = "https://a.example"


def get(app, path: str = "/", **headers: str) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            return await http.get(path, headers=headers)

    return asyncio.run(ask())


def answering(**headers: str):
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": lines})
        await send({"type": "http.response.body", "body": b""})

    return Edge(app)


@pytest.mark.parametrize("path", ["/live", "/v1/models", "/nothing", "/docs", "/health"])
def test_no_answer_is_taken_for_something_else(path):
    answer = get(create_app(load_settings()), path)  # /health breaks, for there is no synthesizer
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    assert not any(name in answer.headers for name in PAGE)


@pytest.mark.parametrize("kind", ["text/html", "TEXT/HTML; charset=utf-8", "application/xhtml+xml"])
def test_a_page_runs_nothing_of_others_and_stands_in_no_frame(kind):
    headers = get(answering(content_type=kind)).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "microphone=(self)" in headers["permissions-policy"]


def test_a_header_of_its_own_stays():
    headers = get(answering(content_type="text/html", referrer_policy="same-origin")).headers
    assert headers.get_list("referrer-policy") == ["same-origin"]


@pytest.mark.parametrize(
    ("allowed", "origin", "expected"),
    [("", ORIGIN, None), (ORIGIN, ORIGIN, ORIGIN), (ORIGIN, "https://b.example", None), ("*", ORIGIN, "*")],
)
def test_pages_of_others_may_call_only_where_they_are_named_and_never_with_credentials(allowed, origin, expected):
    answer = get(create_app(load_settings(cors_allow_origins=allowed)), "/live", Origin=origin, Cookie="a=b")
    assert answer.headers.get("access-control-allow-origin") == expected
    assert "access-control-allow-credentials" not in answer.headers
