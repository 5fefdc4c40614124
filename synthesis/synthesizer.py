"""The one way from a request to audio: used by routes, WebSocket and `say` alike. Composed by `synthesis.compose`."""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial

from audio.encode import Encoder
from audio.formats import check_rate
from cache.cache import Cache
from core.clock import Clock
from core.errors import (
    DeadlineExceeded,
    InvalidValue,
    Overloaded,
    SpeechError,
    Unavailable,
    UnsupportedLanguage,
)
from core.events import Events
from core.settings import Settings
from core.speech import OPENAI_SAMPLE_RATE, AudioFormat, SpeechRequest, Traits, Utterance, Voice
from core.threads import in_thread
from pool.pool import Pool
from scheduler.admission import Limits, check_unloaded
from scheduler.estimator import estimated_s
from scheduler.job import JobSpec
from synthesis.answer import Answer
from synthesis.order import Order
from synthesis.speakers import Speakers
from synthesis.status import Status
from synthesis.stream import AudioStream
from text.language import canonical, detect
from text.plan import plan
from voices.library import folded
from voices.uploads import Uploads

LONG_TEXT_CHARS = 1000
"""Longer texts are planned in a thread, so that the event loop is never held for more than a few milliseconds."""


class Synthesizer:
    """Resolves, looks up, plans, queues and encodes."""

    def __init__(
        self,
        settings: Settings,
        pool: Pool,
        speakers: Speakers,
        cache: Cache[AudioStream] | None,
        *,
        backend: str,
        uploads: Uploads,
        limits: Limits,
        clock: Clock,
        events: Events,
        threads: Executor,
    ) -> None:
        """cache: None where it is off. backend: its name. uploads: that requests bring. limits: of the queue.

        threads: where encoding blocks.
        """
        self._settings = settings
        self.speakers = speakers
        self.uploads = uploads
        self._pool = pool
        self._cache = cache
        self._backend = backend
        self._clock = clock
        self._events = events
        self._threads = threads
        self._default_language = canonical(settings.speech.default_language)
        self._limits = limits
        self._started = clock.now()
        self._spooled_bytes = 0
        self._outcomes: Counter[str] = Counter()
        self._in_flight = 0
        self._loading = 0
        self._is_stopping = False
        self._draining: asyncio.Task[None] | None = None

    def status(self) -> Status:
        """How things stand."""
        view = self._pool.view()
        load_score = min(1.0, view.drain_s / self._settings.pool.routing_drain_cap_seconds)
        is_full = self._is_full(view.waiting + self._loading, view.drain_s)
        states = {
            "stopping": self._is_stopping,
            "degraded": view.is_ready and bool(view.reason),
            "saturated": view.is_ready and is_full,
            "ready": view.is_ready,
            "failed": view.is_hopeless,
        }
        state = next((state for state, holds in states.items() if holds), "loading")
        return Status(
            state=state,
            reason=view.reason,
            backend=self._backend,
            traits=self._pool.known_traits,
            voices=self.speakers.all,
            pool=view,
            load_score=load_score,
            accepts_requests=state not in ("stopping", "failed") and not is_full,
            pids=self._pool.pids,
            uptime_s=self._clock.now() - self._started,
            in_flight=self._in_flight + self._loading,
            waiting=view.waiting + self._loading,
            outcomes=dict(self._outcomes),
            cache=self._cache.view() if self._cache else None,
        )

    def cache_word(self, request: SpeechRequest) -> str:
        """What a client is told of the cache (X-Cache) as long as no answer was found there."""
        if request.sample is not None:
            return "ADHOC"
        if self._cache is None:
            return "DISABLED"
        return "MISS" if request.cached else "BYPASS"

    async def speak(self, request: SpeechRequest) -> Answer:
        """The answer to a request, as soon as its first bytes exist; waits for the model where it is still loading.

        Raises a SpeechError for whatever goes wrong before that. The caller closes the answer.
        """
        if self._is_stopping:
            raise Unavailable("The server is stopping.")
        traits, waited_s = self._pool.known_traits, None
        if traits is None or not self._knows_voices(traits):
            came = self._clock.now()
            traits = await self._wait_until_loaded(request)
            waited_s = self._clock.now() - came
        if request.params.lora and request.params.lora not in traits.loras:  # its name is the client's: it is not told
            raise InvalidValue("There is no such adapter.", param="lora")
        voice, reference = await self.speakers.resolve(request, traits)
        language = self._asked_language(request, voice, traits)
        order = Order(request, reference, language, traits, self._default_language, waited_s, voice.id)
        began = self._clock.now()
        self._in_flight += 1
        answer = None
        try:
            answer = await self._answer(order)
            try:
                await answer.start()
            except DeadlineExceeded:
                if not answer.is_joined:
                    raise
                # It was the time of who came first that ran out: this one has some left, and a making of its own.
                await answer.aclose()
                waited_s = (waited_s or 0.0) + self._clock.now() - began
                answer = await self._answer(replace(order, waited_s=waited_s))
                await answer.start()
        except BaseException as error:
            self._in_flight -= 1
            if not isinstance(error, SpeechError) or error.status >= 500:  # what cannot be done never began
                self._tell(request, _outcome(error), began)
            if answer:
                await answer.aclose()
            raise

        def close() -> None:
            self._in_flight -= 1
            self._tell(request, answer.outcome, began, answer)

        answer.on_close(close)
        return answer

    async def remove_voice(self, name: str) -> None:
        """Delete one of the operator's voices, and what was kept of its speech. Raises as `Speakers.remove` does."""
        await self.speakers.remove(name)
        if self._cache:
            await self._cache.forget(folded(name))

    async def _answer(self, order: Order) -> Answer:
        """From the disk, from an answer in flight, or from the engine; nothing of it may have come yet."""
        if self._cache is not None and order.request.cached and order.request.sample is None:
            return await self._cached(self._cache, order)
        give_back = self._reserve(order.request)
        try:
            audio = await self._open(order)
        except BaseException:
            give_back()
            raise
        answer = Answer(audio, cache=self.cache_word(order.request), clock=self._clock)
        answer.on_close(give_back)
        return answer

    async def _cached(self, cache: Cache[AudioStream], order: Order) -> Answer:
        key = order.key()
        flight = order.flight(key, self._settings.pool.stream_lead_s)
        if not cache.has(flight) and (found := await cache.find(key)):
            return Answer(found, cache="HIT", clock=self._clock, length=found.size, etag=found.etag)
        give_back = self._reserve(order.request)
        client = order.request.client
        joined = cache.join(flight, client)
        audio = joined or cache.begin(flight, client, key, partial(self._open, order), voice=order.speaker)
        answer = Answer(audio, cache="MISS", clock=self._clock, is_joined=joined is not None)
        answer.on_close(give_back)
        return answer

    def _knows_voices(self, traits: Traits) -> bool:
        return not traits.can_clone or self.speakers.is_read

    async def _wait_until_loaded(self, request: SpeechRequest) -> Traits:
        """For the first worker, and the voices that it can clone. Raises Overloaded, DeadlineExceeded, Unavailable."""
        began = self._clock.now()
        wait_s = self._limits.deadline(0.0, request.max_wait_s)
        self._loading += 1
        try:
            view = self._pool.view()
            refusal = check_unloaded(self._limits, self._loading - 1, view.drain_s, request.max_wait_s)
            if refusal and not view.is_hopeless:  # else the engine's own reason is told
                raise refusal
            async with asyncio.timeout(wait_s):
                traits = await self._pool.traits()
                if not self._knows_voices(traits):
                    await self.speakers.wait()
                return traits
        except BaseException as error:
            if isinstance(error, TimeoutError):
                error = DeadlineExceeded(f"The speech engine or its voices were still loading after {wait_s:.1f} s.")
            self._tell(request, _outcome(error), began)
            raise error from None
        finally:
            self._loading -= 1

    def _is_full(self, waiting: int, drain_s: float) -> bool:
        jobs, wait_s = self._limits.jobs, self._limits.wait_s
        return 0 < jobs <= waiting or 0 < wait_s < drain_s

    async def _open(self, order: Order) -> AudioStream:
        """Plan, and join the queue. Raises Overloaded, InvalidValue, Unavailable."""
        request, traits = order.request, order.traits
        utterances = await self._plan(request.text, self._language(order), traits)
        low, high = traits.native_speed
        native_speed = min(max(request.speed, low), high)
        tempo = request.speed / native_speed
        stream = AudioStream(
            utterances,
            self._encoder(request, traits, tempo=tempo),
            sample_rate=traits.sample_rate,
            speed=native_speed,
            tempo=tempo,
            streamed=request.streamed,
            threads=self._threads,
        )
        try:
            if utterances:
                spec = JobSpec(
                    utterances,
                    order.voice,
                    params=replace(request.params, speed=native_speed),
                    seed=request.seed,
                    client=request.client,
                    max_wait_s=order.wait_s(self._settings.pool.deadline_seconds),
                    streamed=request.streamed,
                    paced=request.paced,
                    is_admitted=order.waited_s is not None,
                )
                stream.start(self._pool.submit(stream.score, spec))
        except BaseException:
            await stream.aclose()
            raise
        return stream

    def _tell(self, request: SpeechRequest, outcome: str, began: float, answer: Answer | None = None) -> None:
        first_at = answer.first_at if answer else None
        self._outcomes[outcome] += 1
        self._events.job_ended(
            outcome=outcome,
            text=request.text,
            cache=answer.cache if answer else "",
            format=request.format.value,
            chars=len(request.text),
            audio_s=answer.audio_s if answer else 0.0,
            first_audio_s=None if first_at is None else first_at - began,
            wall_s=self._clock.now() - began,
        )

    def _asked_language(self, request: SpeechRequest, voice: Voice, traits: Traits) -> str | None:
        """As a request or its voice names it; None where the text is to tell. Raises UnsupportedLanguage."""
        tag = voice.language if request.language is None else request.language
        if tag is None:
            return None
        try:
            return self._spoken(canonical(tag), traits)
        except ValueError as error:
            raise UnsupportedLanguage(str(error)) from None

    def _language(self, order: Order) -> str:
        """The language that will be spoken. Raises UnsupportedLanguage."""
        if order.language is not None:
            return order.language
        known = {*order.traits.languages, *order.traits.missing}
        return self._spoken(detect(order.request.text, languages=known, default=order.default_language), order.traits)

    @staticmethod
    def _spoken(language: str, traits: Traits) -> str:
        if language in traits.missing:
            raise UnsupportedLanguage(traits.missing[language])
        if language not in traits.languages:
            spoken = ", ".join(sorted(traits.languages))
            raise UnsupportedLanguage(f"The {traits.backend} backend does not speak this language; it speaks {spoken}.")
        return language

    async def _plan(self, text: str, language: str, traits: Traits) -> tuple[Utterance, ...]:
        def planned() -> tuple[Utterance, ...]:
            return plan(text, language=language, limit=traits.languages[language], first=traits.first_chars)

        if len(text) <= LONG_TEXT_CHARS:
            return planned()
        return await in_thread(self._threads, planned)

    def _encoder(self, request: SpeechRequest, traits: Traits, *, tempo: float) -> Encoder:
        if request.sample_rate is not None:
            try:
                check_rate(request.format, request.sample_rate)
            except ValueError as error:
                raise InvalidValue(str(error), param="sample_rate") from None
        return Encoder(
            request.format,
            source_rate=traits.sample_rate,
            rate=request.sample_rate,
            tempo=tempo,
            streamed=request.streamed,
        )

    def _reserve(self, request: SpeechRequest) -> Callable[[], None]:
        """Count the memory of an answer that must be whole before it leaves, until what is returned is called.

        Raises Overloaded where there is none.
        """
        if request.streamed:
            return lambda: None
        width = 2 if request.format in (AudioFormat.WAV, AudioFormat.FLAC, AudioFormat.PCM) else 1
        seconds = estimated_s(Utterance(0, request.text, request.language or self._default_language)) / request.speed
        size = int(seconds * (request.sample_rate or OPENAI_SAMPLE_RATE) * width)
        if self._spooled_bytes + size > self._settings.server.max_spool_bytes and self._spooled_bytes:
            raise Overloaded("Too many long answers are being held in memory; try again, or ask for a stream.")
        self._spooled_bytes += size

        def give_back() -> None:
            self._spooled_bytes -= size

        return give_back

    def drain(self) -> None:
        """Let nothing more in; what is not finished after DRAIN_SECONDS ends with an error. Called on the loop."""
        if not self._is_stopping:
            self._is_stopping = True
            self._draining = asyncio.create_task(self._end_after(self._settings.server.drain_seconds))

    async def _end_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._pool.close()

    async def stop(self) -> None:
        """End all work and all workers."""
        self._is_stopping = True
        if self._draining:
            self._draining.cancel()
        await self._pool.close()
        if self._cache:
            await self._cache.close()


def _outcome(error: BaseException) -> str:
    """What the metrics call an answer that ended with an error, or was cancelled."""
    if not isinstance(error, Exception):
        return "cancelled"
    return "rejected" if isinstance(error, Overloaded) else "failed"
