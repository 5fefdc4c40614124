"""What one client gets, wherever its bytes come from: the engine, an answer that others hear too, or the disk."""

from collections.abc import Callable
from typing import Protocol, Self

from cache.store import Label
from core.clock import Clock


class Audio(Protocol):
    """Encoded bytes. Closing it is what frees whatever is behind it."""

    @property
    def label(self) -> Label:
        """What they are, and how much of it there is so far. Asked for once the first are there."""

    @property
    def route(self) -> str:
        """Who spoke: HOT, COLD-POOL, COLD-POOL>HOT; CACHE where nobody had to. Asked for once the first are there."""

    async def __anext__(self) -> bytes:
        """The next ones, never empty."""

    async def aclose(self) -> None:
        """Nobody wants more. Safe more than once."""


class Answer:
    """Bytes for one client, as an async iterator, and what became of them. Always close it."""

    def __init__(
        self,
        audio: Audio,
        *,
        cache: str,
        clock: Clock,
        length: int | None = None,
        etag: str | None = None,
        is_joined: bool = False,
    ) -> None:
        """cache: what the client is told of it (X-Cache).

        length: in bytes, etag: of the content, where they are known before. is_joined: somebody else began it.
        """
        self.cache = cache
        self.length = length
        self.etag = etag
        self.is_joined = is_joined
        self.outcome = "cancelled"
        self.first_at: float | None = None
        self._audio = audio
        self._clock = clock
        self._first: bytes | None = None
        self._on_close: list[Callable[[], None]] = []

    @property
    def mime(self) -> str:
        """Media type of the bytes."""
        return self._audio.label.mime

    @property
    def sample_rate(self) -> int:
        """Hz of the encoded audio."""
        return self._audio.label.sample_rate

    @property
    def chars(self) -> int:
        """Length of what is spoken."""
        return self._audio.label.chars

    @property
    def audio_s(self) -> float:
        """Seconds of audio so far; 0 as long as there is none."""
        return self._audio.label.audio_s if self.first_at is not None else 0.0

    @property
    def route(self) -> str:
        """Who spoke (X-Route): see `Audio.route`; ADHOC in a voice that came with the request."""
        return "ADHOC" if self.cache == "ADHOC" else self._audio.route

    def on_close(self, hook: Callable[[], None]) -> None:
        """Call `hook` once, when it is closed."""
        self._on_close.append(hook)

    async def start(self) -> None:
        """Wait for the first bytes. Raises what went wrong before, so that every such failure has its own status."""
        self._first = await anext(self)
        self.first_at = self._clock.now()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """The next bytes, never empty."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        try:
            return await self._audio.__anext__()
        except StopAsyncIteration:
            self.outcome = "done"
            raise
        except Exception:
            self.outcome = "failed"
            raise

    async def aclose(self) -> None:
        """Leave the queue, free the slot, the file, the encoder, where no one else needs them. Safe more than once."""
        hooks, self._on_close = self._on_close, []
        for hook in hooks:
            hook()
        await self._audio.aclose()
