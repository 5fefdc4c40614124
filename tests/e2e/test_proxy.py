"""The settings of docs/reverse-proxy.md in the real programs; sound through nginx while it is being made."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
import yaml

from core.environment import PROJECT
from core.settings import load_settings
from harness.server import Server, free_port, running_server, until

PAGE = (PROJECT / "docs" / "reverse-proxy.md").read_text("utf-8")

LEAST_WAIT_S = load_settings().pool.deadline_seconds


def block(kind: str) -> str:
    """The one block of the page in that language."""
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return found


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


needs_nginx = needs("nginx", "openssl")


def nginx_conf(folder: Path, port: int, server: str) -> Path:
    """A whole configuration around the page's: another port, another certificate, another place of the server."""
    certificate = folder / "tts.example.crt"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=tts.example"
    files = ["-out", str(certificate), "-keyout", str(certificate.with_suffix(".key"))]
    subprocess.run(["openssl", *words.split(), *files], check=True, capture_output=True)
    ours = {
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "/etc/ssl/": f"{folder}/",
        "http://127.0.0.1:9004": server,
    }
    site = block("nginx")
    for theirs, mine in ours.items():
        assert theirs in site
        site = site.replace(theirs, mine)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    user = "user root;\n" if os.getuid() == 0 else ""
    conf = folder / "nginx.conf"
    conf.write_text(
        f"{user}daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nworker_processes 1;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{paths}{site}}}\n"
    )
    return conf


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    settings = {"TRUSTED_PROXIES": "127.0.0.1", "RATE_LIMIT_RPM": "6"}
    with running_server(tmp_path_factory.mktemp("behind"), TTS_BACKEND="tone_backend:make", **settings) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(server, tmp_path_factory) -> Iterator[str]:
    """The address of an nginx in front of it."""
    folder = tmp_path_factory.mktemp("nginx")
    port = free_port()
    conf = nginx_conf(folder, port, server.url)
    process = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(conf)], stderr=subprocess.DEVNULL)
    url = f"https://127.0.0.1:{port}"
    try:
        until(lambda: is_up(url), timeout_s=20)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def client(url: str, address: str = "127.0.0.1") -> httpx.Client:
    """Somebody at that address of loopback."""
    return httpx.Client(base_url=url, transport=httpx.HTTPTransport(verify=False, local_address=address), timeout=60)


def is_up(url: str) -> bool:
    try:
        with client(url) as http:
            return http.get("/live").status_code == 200
    except httpx.TransportError:
        return False


@needs_nginx
def test_nginx_takes_the_page_s_settings(tmp_path):
    conf = nginx_conf(tmp_path, free_port(), "http://127.0.0.1:9004")
    told = subprocess.run(["nginx", "-t", "-p", tmp_path, "-c", conf], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert "warn" not in told.stderr


@needs_nginx
def test_sound_comes_through_nginx_while_it_is_being_made(proxy):
    body = {"input": "slow " * 60, "response_format": "pcm"}  # three seconds to make, a word after the other
    with client(proxy, "127.0.0.9") as http, http.stream("POST", "/v1/audio/speech", json=body) as answer:
        began = time.monotonic()
        came = [time.monotonic() - began for _ in answer.iter_raw()]
    assert answer.status_code == 200
    assert came[0] < came[-1] / 3
    assert came[-1] > 1.5
    assert max(later - earlier for earlier, later in pairwise(came)) < 1.0


@needs_nginx
def test_clients_behind_nginx_are_told_apart_by_whom_it_saw_and_not_by_what_they_say(proxy):
    def left(address: str, **headers: str) -> str:
        with client(proxy, address) as http:
            answer = http.post("/v1/audio/speech", json={"input": "one"}, headers=headers)
            return answer.headers["x-ratelimit-remaining-requests"]

    assert [left("127.0.0.2"), left("127.0.0.2"), left("127.0.0.3")] == ["5", "4", "5"]
    assert left("127.0.0.2", **{"X-Forwarded-For": "9.9.9.9"}) == "3"


@needs_nginx
def test_nobody_behind_nginx_is_at_this_machine(proxy, server):
    assert server.http.post("/admin/reload-voices").status_code == 200
    for headers in ({}, {"Host": "localhost"}, {"X-Forwarded-For": "127.0.0.1"}):
        with client(proxy) as http:
            assert http.post("/admin/reload-voices", headers=headers).status_code == 403


@needs_nginx
def test_a_large_recording_passes_nginx_and_a_larger_one_does_not(proxy):
    with client(proxy, "127.0.0.4") as http:
        files = {"custom_voice_file": ("a.wav", bytes(25 * 2**20))}
        answer = http.post("/v1/audio/speech", data={"input": "one"}, files=files)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "cloning_not_supported")
        assert http.post("/v1/audio/speech", content=bytes(27 * 2**20)).status_code == 413
        assert http.get("/metrics").status_code == 403


@needs("caddy")
def test_caddy_takes_the_page_s_settings(tmp_path):
    (tmp_path / "Caddyfile").write_text(block("caddyfile"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    words = ["caddy", "validate", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")]
    told = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert "not formatted" not in told.stderr


def test_traefik_s_settings_are_yaml_in_which_every_name_is_there():
    http = yaml.safe_load(block("yaml"))["http"]
    balancer = http["services"][http["routers"]["tts"]["service"]]["loadBalancer"]
    assert balancer["serversTransport"] in http["serversTransports"]
    assert balancer["servers"] == [{"url": "http://127.0.0.1:9004"}]


@pytest.mark.parametrize("kind", ["nginx", "caddyfile", "yaml"])
def test_a_proxy_waits_longer_than_the_server_and_takes_no_less(kind):
    waits = [int(seconds) for seconds in re.findall(r"(\d+)s\b", block(kind))]
    assert waits
    assert min(waits) > LEAST_WAIT_S
    sizes = re.findall(r"\b(\d+)(?:m|MiB)\b", block(kind))
    assert [int(size) * 2**20 for size in sizes] in ([], [load_settings().server.max_body_bytes])
