"""By which address clients are told apart, behind proxies that are trusted and others."""

import pytest
from starlette.requests import HTTPConnection

from api.app import tell_if_exposed
from api.client import address_of, is_own
from core.events import Silence
from core.settings import load_settings


def address(peer: str | None, *forwarded: str, trusted: str = "10.0.0.0/8, 127.0.0.1") -> str:
    lines = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    scope = {"type": "http", "client": (peer, 1) if peer is not None else None, "headers": lines}
    return address_of(HTTPConnection(scope), load_settings(trusted_proxies=trusted).server.trusted_proxies)


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        pytest.param("127.0.0.1", ["1.2.3.4"], "1.2.3.4", id="a proxy says who it is"),
        pytest.param("127.0.0.1", [], "127.0.0.1", id="a proxy that says nothing is itself"),
        pytest.param("192.168.0.9", ["1.2.3.4"], "192.168.0.9", id="another one is not believed"),
        pytest.param("127.0.0.1", ["6.6.6.6, 1.2.3.4"], "1.2.3.4", id="nor what a client writes before"),
        pytest.param("127.0.0.1", ["6.6.6.6", "1.2.3.4"], "1.2.3.4", id="in a header of its own"),
        pytest.param("127.0.0.1", ["1.2.3.4, 10.0.0.2"], "1.2.3.4", id="behind two proxies"),
        pytest.param("127.0.0.1", ["10.0.0.2"], "10.0.0.2", id="a proxy as client"),
        pytest.param("127.0.0.1", ["1.2.3.4, nonsense"], "127.0.0.1", id="what is no address ends it"),
        pytest.param("127.0.0.1", [""], "127.0.0.1", id="an empty list"),
        pytest.param("127.0.0.1", ["2001:db8::1"], "2001:db8::1", id="IPv6"),
        pytest.param("::ffff:10.1.1.1", ["1.2.3.4"], "1.2.3.4", id="IPv4 on a socket of IPv6"),
        pytest.param("::ffff:9.1.1.1", ["1.2.3.4"], "9.1.1.1", id="one spelling of an address"),
        pytest.param("testclient", ["1.2.3.4"], "testclient", id="a peer without an address"),
        pytest.param(None, ["1.2.3.4"], "", id="a socket without peers"),
    ],
)
def test_only_a_trusted_proxy_says_who_a_client_is(peer, forwarded, expected):
    assert address(peer, *forwarded) == expected


def test_nobody_is_trusted_unless_the_operator_says_so():
    assert address("127.0.0.1", "1.2.3.4", trusted="") == "127.0.0.1"


class Heard(Silence):
    hosts: tuple[str, ...] = ()

    def server_exposed(self, *, host: str) -> None:
        self.hosts += (host,)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost", "LOCALHOST"])
def test_an_address_of_this_machine_alone_needs_no_warning(host):
    heard = Heard()
    tell_if_exposed(load_settings(host=host).server, heard)
    assert is_own(host)
    assert heard.hosts == ()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "tts.example", "::ffff:192.168.1.5"])
def test_listening_to_the_network_without_a_key_is_told(host):
    heard = Heard()
    tell_if_exposed(load_settings(host=host, admin_api_key="x").server, heard)
    tell_if_exposed(load_settings(host=host, api_keys="x").server, heard)
    assert heard.hosts == (host,)
