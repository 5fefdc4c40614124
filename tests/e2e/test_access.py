"""A real server with keys, limits and a Redis: who gets in, what strangers see, and that no key is told anywhere."""

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from harness.redis import PASSWORD, needs_redis, own_redis
from harness.server import Server, running_server, until

pytestmark = pytest.mark.slow(file_s=35)

TONES = {"TTS_BACKEND": "tone_backend:make"}
KEY, OTHER, ADMIN = "key-of-a-user", "key-of-another", "key-of-the-admin"
PAGE = "https://page.example"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    keys = {"API_KEYS": f"{KEY}, {OTHER}", "ADMIN_API_KEY": ADMIN, "CORS_ALLOW_ORIGINS": PAGE, "DEBUG": "true"}
    with running_server(tmp_path_factory.mktemp("keys"), **TONES, **keys) as server:
        yield server


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    "path", ["/v1/audio/speech", "/audio/speech", "/v1/v1/audio/speech/", "/v1/audio/speech/stream"]
)
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 401),
        (bearer("wrong"), 401),
        (bearer(KEY), 200),
        ({"authorization": f"bearer {OTHER}"}, 200),
        ({"xi-api-key": KEY}, 200),
        ([("Authorization", f"Bearer {KEY}"), ("Authorization", f"Bearer {KEY}")], 401),
        ({"Origin": PAGE}, 401),
        ({**bearer(KEY), "Origin": PAGE}, 200),
    ],
)
def test_speech_needs_a_key_on_every_path(server, path, headers, expected):
    answer = server.http.post(path, json={"input": "one"}, headers=headers)
    assert answer.status_code == expected
    if expected == 401:
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"].keys() == {"message", "type", "param", "code"}
        assert answer.json()["error"]["code"] == "invalid_api_key"


def test_who_has_no_key_is_refused_before_the_body_is_read(server):
    head = b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(head)
        assert b" 401 " in connection.recv(4096)


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/audio/voices"), ("DELETE", "/v1/audio/voices/x"), ("POST", "/admin/reload-voices")],
)
def test_what_changes_something_needs_the_admin_s_key_also_at_this_machine(server, method, path):
    told = [server.http.request(method, path, headers=headers).status_code for headers in ({}, bearer(KEY))]
    assert told == [401, 401]
    assert server.http.request(method, path, headers=bearer(ADMIN)).status_code in (200, 404, 422)


@pytest.mark.parametrize(
    "path", ["/v1/voices", "/v1/audio/voices", "/v1/models", "/v1/audio/models", "/models", "/live"]
)
def test_lists_are_public(server, path):
    assert server.http.get(path).status_code == 200


def test_lists_need_a_key_where_they_are_not_to_be_public(tmp_path):
    with running_server(tmp_path, **TONES, API_KEYS=KEY, PUBLIC_LISTINGS="false") as server:
        for path in ("/v1/voices", "/v1/audio/voices", "/v1/models", "/v1/audio/models"):
            assert server.http.get(path).status_code == 401
            assert server.http.get(path, headers=bearer(KEY)).status_code == 200
        assert server.http.get("/health").status_code == 200


@pytest.mark.parametrize(("origin", "allowed"), [(PAGE, PAGE), ("https://other.example", None), ("null", None)])
def test_a_preflight_is_answered_before_any_key_and_only_for_pages_that_are_named(server, origin, allowed):
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    answer = server.http.options("/v1/audio/speech", headers={"Origin": origin, **asked})
    assert answer.headers.get("access-control-allow-origin") == allowed
    assert (answer.status_code == 200) is (allowed is not None)
    assert "access-control-allow-credentials" not in answer.headers


def test_without_pages_that_are_named_no_page_is_told_that_it_may(tones):
    answer = tones.http.post("/v1/audio/speech", json={"input": "one"}, headers={"Origin": PAGE})
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_strangers_see_whether_it_works_and_how_full_it_is(server):
    through_a_proxy = {"X-Forwarded-For": "10.0.0.7"}
    told = server.http.get("/health", headers=through_a_proxy).json()
    assert told.keys() == {"status", "engine_ready", "routing"}
    everything = server.http.get("/health", headers={**through_a_proxy, **bearer(KEY)}).json()
    assert everything.keys() == server.health().keys() > told.keys()
    assert server.http.get("/ready", headers=through_a_proxy).json() == {"status": "ok", "reason": None}


def test_no_key_is_told_anywhere(server):
    server.http.post("/v1/audio/speech", json={"input": "one"}, headers=bearer(KEY))
    server.http.post("/v1/audio/speech", json={"input": "one"}, headers=bearer("key-that-is-wrong"))
    server.http.post("/v1/audio/speech", content=b"{", headers=bearer(KEY))
    processes = [psutil.Process(server.process.pid), *server.workers]
    told = [server.log.read_text(), json.dumps(server.health()), *(" ".join(each.cmdline()) for each in processes)]
    assert not any("key-" in text for text in told)


def test_a_redis_that_is_not_there_costs_one_line_and_its_password_is_not_in_it(tmp_path):
    url = f"redis://:{PASSWORD}@127.0.0.1:1/0"
    with running_server(tmp_path, **TONES, REDIS_URL=url, REDIS_PUBLISH_INTERVAL="0.1") as server:
        until(lambda: "registry lost" in server.log.read_text())
        assert server.speak("one").status_code == 200
        time.sleep(0.5)
        log = server.log.read_text()
        assert log.count("registry lost") == 1
        assert PASSWORD not in log + json.dumps(server.health())


@needs_redis
def test_a_server_that_drains_is_gone_from_redis_while_it_still_speaks(tmp_path):
    settings = {"NODE_ID": "one", "REDIS_PUBLISH_INTERVAL": "0.2", "DRAIN_SECONDS": "20"}
    with own_redis(tmp_path) as redis:
        redis.start()
        server = Server(tmp_path, **TONES, **settings, REDIS_URL=redis.url)
        try:
            server.wait_until()
            until(lambda: '"accepts_requests": true' in (redis.get("tts:nodes:one") or ""))
            told = json.loads(redis.get("tts:nodes:one") or "")
            assert (told["host"], told["port"]) == ("127.0.0.1", server.port)
            assert told["engine"] == "tone_backend:make"
            speaking = threading.Thread(target=server.speak, args=("slow " * 60,), kwargs={"response_format": "pcm"})
            speaking.start()
            until(lambda: bool(server.health()["slots"]["busy"]))
            server.process.send_signal(signal.SIGTERM)
            until(lambda: redis.get("tts:nodes:one") is None, timeout_s=2)
            assert speaking.is_alive()
            speaking.join()
            assert redis.get("tts:nodes:one") is None
        finally:
            server.stop()


@pytest.mark.parametrize(
    ("name", "value"),
    [("API_KEYS", f"{PASSWORD},é"), ("REDIS_URL", f"http://:{PASSWORD}@h"), ("TRUSTED_PROXIES", "proxy.example")],
)
def test_a_setting_that_cannot_be_used_ends_the_start_with_a_line_that_does_not_repeat_it(tmp_path, name, value):
    server = Server(tmp_path, **TONES, **{name: value})
    try:
        assert server.process.wait(30) == 2
    finally:
        server.stop()
    log = server.log.read_text()
    assert f"\n{name}: " in log
    assert value not in log
    assert PASSWORD not in log


def test_a_header_of_100_kb_and_ten_thousand_headers_are_refused_by_the_server_that_is_installed(server):
    lines = {"large": [b"x: " + b"a" * 100_000], "many": [b"x-%d: a" % number for number in range(10_000)]}
    for head in lines.values():
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(b"\r\n".join([b"GET /live HTTP/1.1", b"Host: x", *head, b"", b""]))
            assert b" 431 " in connection.recv(4096)
    assert server.http.get("/live").status_code == 200


def test_requests_beyond_the_allowance_are_refused_in_openai_s_way(tmp_path):
    with running_server(tmp_path, **TONES, RATE_LIMIT_RPM="2") as server:
        told = [server.speak("one") for _ in range(3)]
        assert [answer.status_code for answer in told] == [200, 200, 429]
        assert [answer.headers["x-ratelimit-remaining-requests"] for answer in told] == ["1", "0", "0"]
        assert 25 <= int(told[2].headers["retry-after"]) <= 33
        assert told[2].json()["error"]["code"] == "rate_limit_exceeded"
        assert server.http.get("/v1/voices").status_code == 200
