"""Who may do what: by key, by being at this machine, and by no web page and no proxy."""

import asyncio

import pytest
from fastapi import Depends, FastAPI
from httpx import ASGITransport, AsyncClient
from starlette.requests import HTTPConnection

from api.app import create_app
from api.auth import is_stranger, require_admin, require_lister, require_reader, require_speaker, require_watcher
from api.errors import on_speech_error
from core.errors import SpeechError
from core.settings import load_settings

Headers = dict[str, str | bytes] | list[tuple[str, str]]

RULES = {"speak": require_speaker, "list": require_lister, "watch": require_watcher, "change": require_admin}
KEYED = {"api_keys": "one, two"}
ADMIN = {"admin_api_key": "secret"}
PRIVATE = {"public_listings": False}


def status(
    headers: Headers, *, key: str = "", peer: str = "127.0.0.1", rule: str = "change", **settings: object
) -> int:
    app = FastAPI()
    app.state.settings = load_settings(admin_api_key=key, **settings)
    app.state.rate_limit = None
    app.add_exception_handler(SpeechError, on_speech_error)

    @app.post("/", dependencies=[Depends(RULES[rule])])
    async def answer() -> None:
        return None

    async def ask() -> int:
        transport = ASGITransport(app, client=(peer, 4711))
        async with AsyncClient(transport=transport, base_url="http://127.0.0.1:9004") as http:
            return (await http.post("/", headers=headers)).status_code

    return asyncio.run(ask())


# --- keys


def allowed(rule: str, **settings: object) -> str:
    """To whom: o nobody in particular, k with a key, a with the admin's; in capitals who is at this machine."""
    sent: dict[str, Headers] = {"o": {}, "k": {"Authorization": "Bearer two"}, "a": {"Authorization": "Bearer secret"}}
    peers = {"10.0.0.7": str.lower, "127.0.0.1": str.upper}
    key = str(settings.pop("admin_api_key", ""))
    return "".join(
        case(who)
        for peer, case in peers.items()
        for who, headers in sent.items()
        if status(headers, key=key, peer=peer, rule=rule, **settings) == 200
    )


@pytest.mark.parametrize(
    ("rule", "settings", "expected"),
    [
        pytest.param("speak", {}, "okaOKA", id="without keys everybody speaks"),
        pytest.param("speak", ADMIN, "okaOKA", id="a key for changes is none for speech"),
        pytest.param("speak", KEYED, "kK", id="with keys those who have one speak"),
        pytest.param("speak", KEYED | ADMIN, "kaKA", id="so does the admin"),
        pytest.param("list", KEYED | ADMIN, "okaOKA", id="lists stay public"),
        pytest.param("list", KEYED | ADMIN | PRIVATE, "kaKA", id="unless they are not to"),
        pytest.param("list", PRIVATE, "okaOKA", id="without keys nothing can be asked for"),
        pytest.param("watch", {}, "OKA", id="without keys only this machine is watched from"),
        pytest.param("watch", KEYED, "kOKA", id="a key watches from elsewhere"),
        pytest.param("watch", ADMIN, "aOKA", id="the admin's too"),
        pytest.param("change", {}, "OKA", id="without keys this machine changes"),
        pytest.param("change", KEYED, "K", id="with keys only who has one too"),
        pytest.param("change", ADMIN, "aA", id="with the admin's key nothing else counts"),
        pytest.param("change", KEYED | ADMIN, "aA", id="and a key for speech does not"),
    ],
)
def test_the_table_of_rules(rule, settings, expected):
    assert allowed(rule, **settings) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Authorization": "Bearer one"}, 200),
        ({"Authorization": "bearer one"}, 200),
        ({"Authorization": "BEARER  one "}, 200),
        ({"xi-api-key": "two"}, 200),
        ({"Authorization": "Basic b25l", "xi-api-key": "two"}, 200),
        ({"Authorization": "Bearer none", "xi-api-key": "two"}, 401),
        ({"xi-api-key": ""}, 401),
        ({"Authorization": "Bearer one, two"}, 401),
        ({"Authorization": "Bearer one two"}, 401),
        ({"Authorization": "Bearer ONE"}, 401),
        ({"Authorization": "Bearer on"}, 401),
        ({"Authorization": "Bearer \u00e9".encode()}, 401),
        ({"Authorization": "one"}, 401),
        ({"Authorization": ""}, 401),
        ([("Authorization", "Bearer one"), ("Authorization", "Bearer one")], 401),
        ([("Authorization", "Bearer none"), ("Authorization", "Bearer one")], 401),
        ([("xi-api-key", "one"), ("xi-api-key", "two")], 401),
        ([("Authorization", "Bearer one"), ("xi-api-key", "one"), ("xi-api-key", "one")], 401),
    ],
)
def test_a_key_is_sent_in_one_header_as_clients_do(headers, expected):
    assert status(headers, rule="speak", **KEYED) == expected


def test_who_is_refused_is_told_in_openai_s_body_and_not_what_was_sent():
    async def ask():
        app = create_app(load_settings(api_keys="one"))
        async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as http:
            return await http.post("/v1/audio/speech", json={"input": "x"}, headers={"Authorization": "Bearer wrong"})

    answer = asyncio.run(ask())
    error = answer.json()["error"]
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", "invalid_api_key", None)
    assert "wrong" not in answer.text


def test_every_route_names_its_rule():
    public = {"/", "/v1", "/health", "/live", "/ready", "/openapi.json"}
    rules = {*RULES.values(), require_reader}

    def routes(parent):
        for route in getattr(parent, "routes", ()):
            inner = getattr(route, "original_router", None)
            yield from routes(inner) if inner is not None else [route]

    found = list(routes(create_app(load_settings())))
    assert {route.path for route in found} > public | {"/v1/audio/speech", "/v1/voices", "/admin/reload-voices"}
    for route in found:
        dependencies = {each.dependency for each in getattr(route, "dependencies", ())}
        assert route.path in public or len(dependencies & rules) == 1, route.path


@pytest.mark.parametrize(
    ("peer", "headers", "settings", "expected"),
    [
        ("10.0.0.7", {}, {}, False),
        ("10.0.0.7", {}, KEYED, True),
        ("10.0.0.7", {"authorization": "Bearer two"}, KEYED, False),
        ("127.0.0.1", {}, KEYED, False),
        ("127.0.0.1", {"x-forwarded-for": "10.0.0.7"}, KEYED, True),
    ],
)
def test_a_stranger_is_who_has_no_key_and_is_elsewhere(peer, headers, settings, expected):
    app = FastAPI()
    app.state.settings = load_settings(**settings)
    lines = [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()]
    scope = {"type": "http", "app": app, "headers": lines, "client": (peer, 1), "scheme": "http"}
    assert is_stranger(HTTPConnection(scope)) is expected


# --- changes


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
