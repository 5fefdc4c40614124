"""Who may change something: whoever has the key, or, without one, somebody at this machine and no web page."""

import asyncio

import pytest
from fastapi import Depends, FastAPI
from httpx import ASGITransport, AsyncClient

from api.auth import require_admin
from api.errors import on_speech_error
from core.errors import SpeechError
from core.settings import load_settings

Headers = dict[str, str | bytes] | list[tuple[str, str]]


def status(headers: Headers, *, key: str = "", peer: str = "127.0.0.1") -> int:
    app = FastAPI()
    app.state.settings = load_settings(admin_api_key=key)
    app.add_exception_handler(SpeechError, on_speech_error)

    @app.post("/change", dependencies=[Depends(require_admin)])
    async def change() -> None:
        return None

    async def ask() -> int:
        transport = ASGITransport(app, client=(peer, 4711))
        async with AsyncClient(transport=transport, base_url="http://127.0.0.1:9004") as http:
            return (await http.post("/change", headers=headers)).status_code

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer secret2"}, 401),
        ({"Authorization": "Basic secret"}, 401),
        ({"Authorization": "secret"}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": "Bearer \u00e9".encode()}, 401),
        ({"Authorization": "Bearer secret"}, 200),
        ({"Authorization": "bearer  secret "}, 200),
        ({"Authorization": "Bearer secret", "X-Forwarded-For": "10.0.0.1", "Origin": "https://a.example"}, 200),
    ],
)
@pytest.mark.parametrize("peer", ["127.0.0.1", "10.0.0.7"])
def test_with_a_key_the_key_decides(headers, expected, peer):
    assert status(headers, key="secret", peer=peer) == expected


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": "localhost:9004"},
        {"Host": "[::1]:9004"},
        {"Host": "LocalHost:9004"},
        {"Host": "localhost:9004", "Origin": "http://localhost:9004", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://127.0.0.1:9004"},
        {"Sec-Fetch-Site": "none"},
        {"Authorization": "Bearer none"},
    ],
)
def test_without_a_key_somebody_at_this_machine_may(headers):
    assert status(headers) == 200
    assert status(headers, peer="::1") == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "tts.example"},
        {"Host": "127.0.0.1.example"},
        {"Host": "localhost@tts.example"},
        {"Host": ""},
        {"Origin": "https://a.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Forwarded": "for=10.0.0.1"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Real-IP": "127.0.0.1"},
        {"Via": "1.1 proxy"},
        {"X-Client-IP": "10.0.0.1"},
        {"CF-Connecting-IP": "10.0.0.1"},
        {"True-Client-IP": "10.0.0.1"},
        {"X-Forwarded-Server": "proxy"},
        {"Host": "evil.com@localhost"},
        {"Host": "localhost/evil"},
        {"Host": "localhost#evil.com"},
        {"Host": "localhost:"},
        {"Host": "localhost:9004 "},
        {"Host": "localhost, evil.com"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "https://127.0.0.1:9004"},
        {"Origin": "http://localhost:9004"},
        {"Origin": "file://127.0.0.1:9004"},
        {"Origin": ""},
        [("Host", "localhost"), ("Host", "evil.com")],
        [("Host", "localhost"), ("Host", "localhost")],
        [("Origin", "http://127.0.0.1:9004"), ("Origin", "https://a.example")],
        [("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "cross-site")],
    ],
)
def test_without_a_key_a_page_or_a_proxy_may_not(headers):
    assert status(headers) == 403


@pytest.mark.parametrize("peer", ["10.0.0.7", "192.168.1.2", "2001:db8::1", "testclient"])
def test_without_a_key_nobody_elsewhere_may(peer):
    assert status({}, peer=peer) == 403
