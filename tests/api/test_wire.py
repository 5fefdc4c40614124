"""What comes before there is a request has an end: bytes, headers, seconds, connections. uvicorn is the real one."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

import pytest
import uvicorn

from api.wire import MAX_HEAD_BYTES, MAX_HEADERS, BoundedHttp

GOOD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Impatient(BoundedHttp):
    head_timeout_s = 0.3
    max_connections = 4


async def app(scope, receive, send):
    """Says how many headers there were, twice; on /slow, half a second apart. On /early, before the body is there."""
    if scope["path"] == "/early":
        await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})
        return
    while (await receive()).get("more_body"):
        pass
    body = str(len(scope["headers"])).encode()
    length = str(2 * len(body)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    if scope["path"] == "/slow":
        await asyncio.sleep(0.5)
    await send({"type": "http.response.body", "body": body})


class Upgraded(asyncio.Protocol):
    """Stands for a library of WebSockets: says something when it was let alone for half a second."""

    def __init__(self, **_: object) -> None: ...

    def connection_made(self, transport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        asyncio.get_running_loop().call_later(0.5, self.transport.write, b"still here")


Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


def served(scene: Callable[[Connect], Awaitable[None]], protocol: type[BoundedHttp] = Impatient) -> None:
    """Run a scene against a server of its own, on a free port of loopback."""

    async def main() -> None:
        server = uvicorn.Server(
            uvicorn.Config(app, port=0, http=protocol, ws=Upgraded, log_config=None, lifespan="off")
        )
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        opened = []

        async def connect():
            opened.append(await asyncio.open_connection("127.0.0.1", port))
            return opened[-1]

        try:
            async with asyncio.timeout(20):
                await scene(connect)
        finally:
            for _, writer in opened:
                writer.close()
            server.should_exit = True
            await serving

    asyncio.run(main())


def said(protocol: type[BoundedHttp], *pieces: bytes, pause_s: float = 0.0) -> tuple[int, dict, float]:
    """Status and body of what is answered to these pieces, and after how many seconds the connection was closed.

    Status 0: it was closed without a word.
    """
    found: list = []

    async def scene(connect: Connect) -> None:
        reader, writer = await connect()
        began = time.monotonic()
        reading = asyncio.create_task(reader.read())
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause_s)
                if reading.done():
                    break
        except ConnectionError:
            pass
        try:
            answer = await reading
        except ConnectionError:
            answer = b""
        found.extend([answer, time.monotonic() - began])

    served(scene, protocol)
    head, _, body = found[0].partition(b"\r\n\r\n")
    status = int(head.split()[1]) if head else 0
    return status, json.loads(body) if body[:1] == b"{" else {}, found[1]


def headers(count: int, size: int = 1) -> bytes:
    return b"GET / HTTP/1.1\r\n" + b"".join(b"x-%d: %s\r\n" % (n, b"a" * size) for n in range(count)) + b"\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([headers(1, 100_000)], id="a header of 100 kB"),
        pytest.param([headers(10_000)], id="10 000 headers"),
        pytest.param([headers(MAX_HEADERS + 1)], id="a few too many"),
        pytest.param([headers(10, MAX_HEAD_BYTES // 10)], id="a few too large"),
        pytest.param([b"GET /", *[b"a" * 10_000] * 2000], id="an address without an end"),
        pytest.param([b"GET / HTTP/1.1\r\nx: ", *[b"a" * 10_000] * 2000], id="a header without an end"),
        pytest.param([b"GET / HTTP/1.1\r\n", *[b"x: a\r\n" * 1000] * 2000], id="headers without an end"),
    ],
)
def test_a_head_that_is_too_large_is_refused_at_once(pieces):
    status, body, seconds = said(BoundedHttp, *pieces)
    assert status in (431, 0)  # whoever still writes may lose the answer
    assert status == 0 or body["error"]["code"] == "too_large"
    assert seconds < 5


def test_as_many_headers_as_any_browser_sends_are_fine():
    async def scene(connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(headers(MAX_HEADERS, 400))
        assert b"200 OK" in await reader.readuntil(b"128128")

    served(scene)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param([], 0, id="nothing at all"),
        pytest.param([b"\r\n"] * 50, 0, id="lines of nothing"),
        pytest.param([b"GET / HTTP/1.1\r\n"], 408, id="the first line"),
        pytest.param([GOOD[:-2], *[b"x: a\r\n"] * 50], 408, id="a header now and then"),
    ],
)
def test_a_head_that_does_not_come_ends_the_connection_in_time(pieces, expected):
    status, body, seconds = said(Impatient, *pieces, pause_s=0.02)
    assert status == expected
    assert status == 0 or set(body["error"]) == {"message", "type", "param", "code"}
    assert 0.25 < seconds < 3


def test_what_is_no_http_is_refused_in_openai_s_body():
    status, body, _ = said(BoundedHttp, b"\x16\x03\x01 hello\r\n\r\n")
    assert (status, body["error"]["code"]) == (400, "invalid_request")


def test_neither_an_answer_nor_a_body_has_to_be_as_quick_as_a_head():
    async def scene(connect: Connect) -> None:
        reader, writer = await connect()
        for path in (b"/slow", b"/slow"):  # twice: the time of the first is not counted for the second
            writer.write(b"POST %s HTTP/1.1\r\nContent-Length: 4\r\n\r\nab" % path)
            await asyncio.sleep(0.5)
            writer.write(b"cd")
            assert b"200 OK" in await reader.readuntil(b"11")

    served(scene)


def test_half_a_request_behind_another_does_not_disturb_the_answer_to_that():
    async def scene(connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(GOOD.replace(b"/ ", b"/slow ") + b"GET / HTTP")
        answer = await reader.read()
        assert answer.count(b"HTTP/1.1") == 1
        assert b"408" not in answer

    served(scene)


def test_a_websocket_may_be_silent():
    async def scene(connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(GOOD[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        assert await reader.readexactly(10) == b"still here"

    served(scene)


def test_what_comes_of_a_body_that_nobody_reads_is_no_head():
    async def scene(connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(b"POST /early HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n")
        assert b"401" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"a" * 1_000_000 + GOOD)
        assert b"200 OK" in await reader.readuntil(b"11")

    served(scene)


def test_those_who_ask_nothing_make_room_for_those_who_ask():
    async def scene(connect: Connect) -> None:
        busy_reader, busy = await connect()
        busy.write(GOOD.replace(b"/ ", b"/slow "))
        await busy_reader.readuntil(b"200 OK")
        silent = [await connect() for _ in range(Impatient.max_connections + 3)]
        reader, writer = await connect()
        writer.write(GOOD)
        assert b"200 OK" in await reader.readuntil(b"11")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(silent[0][0].readexactly(1), 0.1)
        assert await busy_reader.readuntil(b"11")

    served(scene)
