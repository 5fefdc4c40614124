"""The cache over real HTTP: connections that stay open, requests as bytes, and no client library in between."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any


class Connection:
    """One connection that asks again and again."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> "Connection":
        """To a server on this machine."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**20))

    async def ask(self, request: bytes) -> tuple[float, bytes]:
        """Seconds from the question to the last byte of the answer, and its head."""
        began = time.perf_counter()
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        await self._reader.readexactly(length)
        return time.perf_counter() - began, head

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


def request_bytes(fields: Mapping[str, Any]) -> bytes:
    """A request for speech, whole."""
    body = json.dumps(fields).encode()
    lines = ("POST /v1/audio/speech HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    return "\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).encode() + body


async def hit_times(port: int, request: bytes, *, connections: int, each: int) -> tuple[list[float], float]:
    """Seconds of each of so many hits, and hits a second of all."""
    opened = [await Connection.open(port) for _ in range(connections)]

    async def ask(connection: Connection) -> list[float]:
        return [(await connection.ask(request))[0] for _ in range(each)]

    began = time.perf_counter()
    times = await asyncio.gather(*(ask(connection) for connection in opened))
    took_s = time.perf_counter() - began
    for connection in opened:
        connection.close()
    return [seconds for some in times for seconds in some], connections * each / took_s


async def answer_time(port: int, request: bytes) -> float:
    """Seconds of one answer whose length is known."""
    connection = await Connection.open(port)
    seconds, _ = await connection.ask(request)
    connection.close()
    return seconds
