"""Registered voices, made ready by an engine that batches before anybody asks for them.

Such an engine makes nothing else while it encodes a recording: better now than when many listen. An utterance without
words does it: it takes its turn like every other one, and leaves the voice on disk for all workers, now and later.
"""

import asyncio

from core.clock import Clock
from core.errors import BadSample, SpeechError, Unavailable
from core.events import Events
from core.speech import Samples, Utterance
from pool.pool import Pool
from scheduler.job import JobSpec
from synthesis.speakers import Speakers

CLIENT = "rehearsal"
"""Whose requests these are, for the queue that is fair between clients."""


class Rehearsal:
    """One voice after the other: at the start, and after each change of them."""

    def __init__(self, pool: Pool, speakers: Speakers, events: Events, clock: Clock) -> None:
        """Does nothing; `run` does."""
        self._pool = pool
        self._speakers = speakers
        self._events = events
        self._clock = clock

    async def run(self) -> None:
        """Until it is cancelled, or there is no engine, or one that has no need of it."""
        try:
            if not (await self._pool.traits()).batches:
                return
        except Unavailable:
            return
        while True:
            await self._speakers.changed.wait()
            self._speakers.changed.clear()
            voices, began = self._speakers.recorded, self._clock.now()
            made = sum([await self._rehearse(name) for name in voices])
            seconds = self._clock.now() - began
            self._events.voices_rehearsed(made=made, failed=len(voices) - made, seconds=seconds)

    async def _rehearse(self, name: str) -> bool:
        """Whether the engine can speak in a voice now."""
        try:
            reference = await self._speakers.reference(name)
            listener = _Listener()
            spec = JobSpec((Utterance(0, "", "en"),), reference, client=CLIENT, streamed=False, is_admitted=True)
            self._pool.submit(listener, spec)
        except (BadSample, Unavailable, KeyError):  # it was removed meanwhile, or is no good; whoever asks is told
            return False
        return await listener.ended


class _Listener:
    """A sink for an utterance that has no sound."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def audio(self, index: int, samples: Samples) -> None:
        """There is none."""

    def done(self, index: int) -> float | None:
        """The voice is ready."""
        self._end(True)
        return 0.0

    def rerun(self, index: int) -> None:
        """The worker died; the next one makes it."""

    def routed(self, route: str) -> None:
        """Wherever: it is for all of them."""

    def fail(self, error: SpeechError) -> None:
        """The voice cannot be made."""
        self._end(False)

    def _end(self, is_made: bool) -> None:
        if not self.ended.done():
            self.ended.set_result(is_made)
