"""From utterances in any order to bytes in order: one `AudioStream` for whatever is spoken once.

The pool pushes samples into a `Score`; the stream pulls them utterance by utterance through trim, pause, tempo and
encoder. Pulling is what drives it: as long as nobody takes bytes, nothing is encoded, nothing is consumed, and the
scheduler starts no further utterance.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from functools import partial
from typing import Self

import numpy as np

from audio.encode import Encoder
from audio.join import Trimmer, silence
from cache.store import Label
from core.errors import SpeechError
from core.speech import Samples, Utterance
from pool.pool import Ticket
from synthesis.guard import is_sound, is_speech

LEAST_S = 0.08
"""Of sound behind an utterance's first, that goes to the encoder at once: a trip to a thread costs as much for less."""

EMPTY_ANSWER_S = 0.3
"""Silence that answers a text with nothing to say, such as a lone emoji."""


class _Part:
    """What has come of one utterance."""

    def __init__(self) -> None:
        self.chunks: list[Samples] = []
        self.heard: list[Samples] = []
        self.samples = 0
        self.is_sound = True
        self.is_done = False


class Score:
    """Samples of a job's utterances, kept until it is their turn. The pool's sink; all on the event loop."""

    def __init__(self, utterances: tuple[Utterance, ...], sample_rate: int) -> None:
        """sample_rate: Hz of the samples that will come."""
        self._utterances = utterances
        self._sample_rate = sample_rate
        self._parts = [_Part() for _ in utterances]
        self._error: SpeechError | None = None
        self.route = "HOT"
        self._news = asyncio.Event()

    def audio(self, index: int, samples: Samples) -> None:
        """Keep samples; what is no number is dropped, and the utterance with it."""
        part = self._parts[index]
        part.is_sound = part.is_sound and is_sound(samples)
        if part.is_sound:
            part.chunks.append(samples)
            part.heard.append(samples)
            part.samples += len(samples)
            self._news.set()

    def done(self, index: int) -> float | None:
        """An utterance is whole: its seconds, or None where it cannot be the speech of its text."""
        part = self._parts[index]
        if not part.is_sound or not is_speech(self._utterances[index].text, part.heard):
            return None
        part.is_done = True
        part.heard = []
        self._news.set()
        return part.samples / self._sample_rate

    def rerun(self, index: int) -> None:
        """Forget an utterance; it will come again."""
        self._parts[index] = _Part()

    def routed(self, route: str) -> None:
        """Where an utterance is spoken; the first sound is told by the last one before it."""
        self.route = route

    def fail(self, error: SpeechError) -> None:
        """Nothing more will come."""
        self._error = error
        self._news.set()

    async def next(self, index: int, *, least: int = 1) -> Samples | None:
        """All samples of an utterance that have come since the last call; None after its last.

        least: wait for so many of them, as long as more will come. Raises the job's error once what came is used up.
        """
        while not self._has(self._parts[index], least):
            await self._hear()
        part = self._parts[index]
        chunks, part.chunks = part.chunks, []
        return np.concatenate(chunks) if chunks else None

    def _has(self, part: _Part, least: int) -> bool:
        return part.is_done or sum(map(len, part.chunks)) >= (1 if self._error else least)

    async def whole(self, index: int) -> None:
        """Wait until all of an utterance is there. Raises the job's error where it never will be."""
        while not self._parts[index].is_done:
            await self._hear()

    async def _hear(self) -> None:
        if self._error is not None:
            raise self._error
        self._news.clear()
        await self._news.wait()


class AudioStream:
    """What is spoken, as bytes, by an async iterator. Always close it: that is what frees its slot."""

    def __init__(
        self,
        utterances: tuple[Utterance, ...],
        encoder: Encoder,
        *,
        sample_rate: int,
        speed: float,
        tempo: float,
        streamed: bool,
        threads: Executor,
    ) -> None:
        """sample_rate: Hz of the engine's samples.

        speed: the engine's own share, by which pauses shrink too. tempo: the encoder's share. streamed: bytes leave
        as they come; else an utterance is taken when it is whole, so that a worker may die over it and nothing is lost.
        """
        self.score = Score(utterances, sample_rate)
        self._chars = sum(len(utterance.text) for utterance in utterances)
        self._audio_s = 0.0
        self._told_s = 0.0
        self._utterances = utterances
        self._encoder = encoder
        self._rate = sample_rate
        self._speed = speed
        self._tempo = tempo
        self._streamed = streamed
        self._threads = threads
        self._ticket: Ticket | None = None
        self._encoding: asyncio.Future[bytes] | None = None
        self._bytes = self._make()
        self._on_close: list[Callable[[], None]] = []
        self._is_closed = False

    @property
    def route(self) -> str:
        """Which workers spoke: HOT, COLD-POOL, or COLD-POOL>HOT where a cold one died under it."""
        return self.score.route

    @property
    def label(self) -> Label:
        """What it is, and how much of it there is so far."""
        return Label(self._encoder.mime, self._encoder.rate, self._audio_s, self._chars)

    def on_close(self, hook: Callable[[], None]) -> None:
        """Call `hook` once, when the stream is closed."""
        self._on_close.append(hook)

    def start(self, ticket: Ticket) -> None:
        """The utterances are submitted."""
        self._ticket = ticket

    def join(self, client: str) -> None:
        """One more client hears it, and has its turns at the engine for it."""
        if self._ticket is not None and not self._is_closed:
            self._ticket.join(client)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """The next bytes, never empty. Raises the job's error."""
        return await anext(self._bytes)

    async def aclose(self) -> None:
        """Leave the queue, free the slot, free the encoder. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._ticket is not None:
            self._ticket.leave()
        for hook in self._on_close:
            hook()
        if self._encoding is not None and not self._encoding.done():
            self._encoding.add_done_callback(lambda _: self._encoder.close())  # a thread is still inside it
        else:
            self._encoder.close()
        await self._bytes.aclose()

    async def _make(self) -> AsyncGenerator[bytes]:
        for utterance in self._utterances:
            async for data in self._speak(utterance):
                yield data
        if not self._utterances:
            async for data in self._encode(silence(EMPTY_ANSWER_S, self._rate)):
                yield data
        if data := await self._in_thread(self._encoder.finish):
            yield data

    async def _speak(self, utterance: Utterance) -> AsyncGenerator[bytes]:
        trimmer = Trimmer(self._rate)
        if not self._streamed:
            await self.score.whole(utterance.index)
        least = 1
        while (samples := await self.score.next(utterance.index, least=least)) is not None:
            if least == 1 and self._ticket is not None:
                self._ticket.released(utterance.index)
            least = round(LEAST_S * self._rate)
            async for data in self._encode(trimmer.feed(samples)):
                yield data
            self._consumed(len(samples) / self._rate)
        for samples in (trimmer.finish(), silence(utterance.pause_after_s / self._speed, self._rate)):
            async for data in self._encode(samples):
                yield data
        self._consumed(0.0)

    def _consumed(self, made_s: float) -> None:
        """More is asked for, so what there was is taken. made_s: as the engine made it, its silence included."""
        if self._ticket is not None:
            self._ticket.consumed(made_s, self._audio_s - self._told_s)
            self._told_s = self._audio_s

    async def _encode(self, samples: Samples) -> AsyncGenerator[bytes]:
        """Encode a piece, and hand it over where the encoder lets any of it go."""
        if not len(samples):
            return
        data = await self._in_thread(partial(self._encoder.feed, samples))
        self._audio_s += len(samples) / self._rate / self._tempo
        if data:
            yield data

    async def _in_thread(self, call: Callable[[], bytes]) -> bytes:
        self._encoding = asyncio.get_running_loop().run_in_executor(self._threads, call)
        return await asyncio.shield(self._encoding)
