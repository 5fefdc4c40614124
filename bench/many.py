"""Many clients at once, each as thin as can be: what is measured is to be the server, not who asks it."""

import asyncio
import json
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

PCM_BYTES_PER_S = 2 * 24_000


@dataclass
class Heard:
    """One answer. first_s: from the request to the first byte. pieces: when each came since then, and its bytes."""

    status: int = 0
    first_s: float = 0.0
    is_whole: bool = False
    pieces: list[tuple[float, int]] = field(default_factory=list)

    @property
    def dry_s(self) -> float:
        """How long a player that starts with the first bytes of pcm waits for more, at the worst moment."""
        played_s = worst_s = 0.0
        for at, size in self.pieces:
            if played_s:
                worst_s = max(worst_s, at - self.first_s - played_s)
            played_s += size / PCM_BYTES_PER_S
        return worst_s


async def ask(url: str, fields: dict[str, object], *, leave_after_s: float | None = None) -> Heard:
    """One streamed answer. leave_after_s: of being listened to, hang up."""
    address = urlsplit(url)
    body = json.dumps(fields).encode()
    head = (
        f"POST /v1/audio/speech HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    heard = Heard()
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(head.encode() + body)
        heard.status = int((await reader.readuntil(b"\r\n\r\n")).split()[1])
        while heard.status == 200 and (size := int(await reader.readline(), 16)):
            await reader.readexactly(size + 2)
            now = time.perf_counter() - began
            heard.first_s = heard.first_s or now
            heard.pieces.append((now, size))
            if leave_after_s is not None and now - heard.first_s > leave_after_s:
                return heard
        heard.is_whole = heard.status == 200
    except (OSError, ValueError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()
    return heard


async def ask_many(url: str, count: int, fields: dict[str, object]) -> list[Heard]:
    """So many at once."""
    return await asyncio.gather(*(ask(url, fields) for _ in range(count)))
