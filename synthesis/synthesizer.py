"""The one way from a request to audio: used by routes, WebSocket and `say` alike."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from audio.encode import Encoder
from audio.formats import check_rate
from backends.registry import resolve
from core.clock import Clock, SystemClock
from core.errors import (
    CloningNotSupported,
    DeadlineExceeded,
    InvalidValue,
    Overloaded,
    Unavailable,
    UnsupportedLanguage,
)
from core.events import Events
from core.settings import PROJECT, PoolSettings, Settings
from core.speech import AudioFormat, Reference, SpeechRequest, Traits, Utterance, Voice
from pool.memory import open_memory
from pool.notebook import Notebook
from pool.pool import Pool
from pool.process import WorkerSpec
from scheduler.admission import Limits, check_unloaded
from scheduler.autoscaler import ColdPool
from scheduler.estimator import estimated_s
from scheduler.job import JobSpec
from scheduler.messages import CPU, View
from scheduler.scheduler import Scheduler
from scheduler.watchdog import Patience
from synthesis.stream import AudioStream
from text.language import canonical, detect
from text.plan import plan
from voices.library import Library

LONG_TEXT_CHARS = 1000
"""Longer texts are planned in a thread, so that the event loop is never held for more than a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Status:
    """The synthesizer at one moment. state: loading, ready, saturated, degraded, failed or stopping.

    load_score: 0 idle, 1 full. accepts_requests: whether one would be let in. pids: process id of each worker.
    traits: of the engine, None as long as none has loaded. voices: that a request can name, the default first.
    in_flight: answers that are not at their end. waiting: those of them without a slot so far.
    """

    state: str
    reason: str
    backend: str
    traits: Traits | None
    voices: tuple[Voice, ...]
    pool: View
    load_score: float
    accepts_requests: bool
    pids: Mapping[int, int]
    uptime_s: float
    in_flight: int
    waiting: int
    outcomes: Mapping[str, int]

    @property
    def is_ready(self) -> bool:
        """Whether a request would be spoken now."""
        return self.state in ("ready", "saturated", "degraded")


class Synthesizer:
    """Resolves, plans, queues and encodes. Made by `open_synthesizer`."""

    def __init__(
        self, settings: Settings, pool: Pool, *, backend: str, clock: Clock, events: Events, threads: Executor
    ) -> None:
        """backend: its name. threads: where encoding and planning block."""
        self._settings = settings
        self._pool = pool
        self._backend = backend
        self._clock = clock
        self._events = events
        self._threads = threads
        self._library = Library(settings.speech.default_voice)
        self._default_language = canonical(settings.speech.default_language)
        self._limits = _limits(settings.pool)
        self._started = clock.now()
        self._spooled_bytes = 0
        self._outcomes: Counter[str] = Counter()
        self._in_flight = 0
        self._loading = 0
        self._is_stopping = False
        self._draining: asyncio.Task[None] | None = None

    @property
    def voices(self) -> tuple[Voice, ...]:
        """All voices that a request can name, the default first; a backend's own ones once it has loaded."""
        traits = self._pool.known_traits
        return (self._library.with_built_in(traits.voices) if traits else self._library).all

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
            voices=self.voices,
            pool=view,
            load_score=load_score,
            accepts_requests=state not in ("stopping", "failed") and not is_full,
            pids=self._pool.pids,
            uptime_s=self._clock.now() - self._started,
            in_flight=self._in_flight + self._loading,
            waiting=view.waiting + self._loading,
            outcomes=dict(self._outcomes),
        )

    async def speak(self, request: SpeechRequest) -> AudioStream:
        """Audio of a request, as soon as its first bytes exist; waits for the model where it is still loading.

        Raises a SpeechError for whatever goes wrong before that. The caller closes the stream.
        """
        if self._is_stopping:
            raise Unavailable("The server is stopping.")
        traits = self._pool.known_traits
        is_admitted = traits is None
        if traits is None:
            traits, request = await self._wait_for_traits(request)
        voice = self._library.with_built_in(traits.voices).resolve(request.voice)
        if request.has_sample and not traits.can_clone:
            raise CloningNotSupported(
                f"The {traits.backend} backend cannot clone voices; coqui, voxcpm and voxcpm-vllm can (TTS_BACKEND).",
                param="custom_voice_file",
            )
        language = self._language(request, voice, traits)
        utterances = await self._plan(request.text, language, traits)
        return await self._start(request, Reference(voice.id), utterances, traits, is_admitted=is_admitted)

    async def _wait_for_traits(self, request: SpeechRequest) -> tuple[Traits, SpeechRequest]:
        """For the first worker. Returns the request too, with what is left of its time.

        Raises Overloaded, DeadlineExceeded, Unavailable.
        """
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
        except BaseException as error:
            if isinstance(error, TimeoutError):
                error = DeadlineExceeded(f"The speech engine was still loading after {wait_s:.1f} s.")
            self._tell(request, _outcome(error), began)
            raise error from None
        finally:
            self._loading -= 1
        if wait_s is not None:
            request = replace(request, max_wait_s=max(0.0, wait_s - (self._clock.now() - began)))
        return traits, request

    def _is_full(self, waiting: int, drain_s: float) -> bool:
        jobs, wait_s = self._limits.jobs, self._limits.wait_s
        return 0 < jobs <= waiting or 0 < wait_s < drain_s

    async def _start(
        self,
        request: SpeechRequest,
        voice: Reference,
        utterances: tuple[Utterance, ...],
        traits: Traits,
        *,
        is_admitted: bool,
    ) -> AudioStream:
        low, high = traits.native_speed
        native_speed = min(max(request.speed, low), high)
        params = replace(request.params, speed=native_speed)
        tempo = request.speed / native_speed
        stream = AudioStream(
            utterances,
            self._encoder(request, traits, tempo=tempo),
            sample_rate=traits.sample_rate,
            speed=native_speed,
            tempo=tempo,
            streamed=request.streamed,
            threads=self._threads,
            clock=self._clock,
        )
        began = self._clock.now()
        self._in_flight += 1

        def close() -> None:
            self._in_flight -= 1
            self._tell(request, stream.outcome, began, stream)

        stream.on_close(close)
        try:
            self._reserve(request, utterances, stream)
            ticket = None
            if utterances:
                spec = JobSpec(
                    utterances,
                    voice,
                    params=params,
                    seed=request.seed,
                    client=request.client,
                    max_wait_s=request.max_wait_s,
                    streamed=request.streamed,
                    paced=request.paced,
                    is_admitted=is_admitted,
                )
                ticket = self._pool.submit(stream.score, spec)
            await stream.start(ticket)
        except BaseException as error:
            stream.outcome = _outcome(error)
            await stream.aclose()
            raise
        return stream

    def _tell(self, request: SpeechRequest, outcome: str, began: float, stream: AudioStream | None = None) -> None:
        sounding_at = stream.sounding_at if stream else None
        self._outcomes[outcome] += 1
        self._events.job_ended(
            outcome=outcome,
            format=request.format.value,
            chars=len(request.text),
            audio_s=stream.audio_s if stream else 0.0,
            first_audio_s=None if sounding_at is None else sounding_at - began,
            wall_s=self._clock.now() - began,
        )

    def _language(self, request: SpeechRequest, voice: Voice, traits: Traits) -> str:
        known = {*traits.languages, *traits.missing}
        if request.language is not None:
            try:
                language = canonical(request.language)
            except ValueError as error:
                raise UnsupportedLanguage(str(error)) from None
        else:
            language = voice.language or detect(request.text, languages=known, default=self._default_language)
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
        return await asyncio.get_running_loop().run_in_executor(self._threads, planned)

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

    def _reserve(self, request: SpeechRequest, utterances: tuple[Utterance, ...], stream: AudioStream) -> None:
        """Count the memory of an answer that must be whole before it leaves. Raises Overloaded where there is none."""
        if request.streamed:
            return
        width = 2 if request.format in (AudioFormat.WAV, AudioFormat.FLAC, AudioFormat.PCM) else 1
        seconds = sum(estimated_s(utterance) for utterance in utterances) / request.speed
        size = int(seconds * stream.sample_rate * width)
        if self._spooled_bytes + size > self._settings.server.max_spool_bytes and self._spooled_bytes:
            raise Overloaded("Too many long answers are being held in memory; try again, or ask for a stream.")
        self._spooled_bytes += size

        def give_back() -> None:
            self._spooled_bytes -= size

        stream.on_close(give_back)

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


def _outcome(error: BaseException) -> str:
    """What the metrics call an answer that ended with an error, or was cancelled."""
    if not isinstance(error, Exception):
        return "cancelled"
    return "rejected" if isinstance(error, Overloaded) else "failed"


def _limits(settings: PoolSettings) -> Limits:
    return Limits(settings.max_queue_length, settings.max_queue_seconds, settings.deadline_seconds)


def _cold_pool(settings: PoolSettings, device: str) -> ColdPool:
    return ColdPool(
        size=settings.cold_pool_size,
        idle_s=settings.cold_worker_idle_timeout,
        stagger_s=settings.cold_worker_idle_stagger,
        interval_s=settings.cold_pool_manager_interval,
        safety=settings.hot_queue_safety_factor,
        streams=settings.stream_on_cold,
        hot_idle_s=settings.hot_idle_timeout,
        least_bytes=int((settings.min_cold_ram_gb if device == CPU else settings.min_cold_vram_gb) * 2**30),
    )


@asynccontextmanager
async def open_synthesizer(
    settings: Settings, events: Events, *, clock: Clock | None = None
) -> AsyncIterator[Synthesizer]:
    """Compose everything and start loading; returns before the model is there. Ends all workers on the way out."""
    clock = clock or SystemClock()
    backend = resolve(settings.pool.tts_backend)
    spec = WorkerSpec(backend, settings.options(backend))
    memory, device = open_memory(on_gpu=settings.pool.tts_device == "gpu")
    name = re.sub(r"\W+", "-", backend)
    notebook = Notebook(PROJECT / settings.pool.state_dir / f"{name}.json", events)
    scheduler = Scheduler(
        lead_s=settings.pool.stream_lead_s,
        limits=_limits(settings.pool),
        cold=_cold_pool(settings.pool, device),
        device=device,
        patience=Patience(task_s=settings.pool.hang_seconds),
        learned=notebook.read(),
    )
    pool = Pool(spec, scheduler, clock=clock, events=events, memory=memory)
    with ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 2), thread_name_prefix="encode") as threads:
        synthesizer = Synthesizer(settings, pool, backend=backend, clock=clock, events=events, threads=threads)
        events.server_started(backend=backend)
        pool.open()
        keeping = asyncio.create_task(notebook.keep(lambda: scheduler.learned))
        try:
            yield synthesizer
        finally:
            keeping.cancel()
            await synthesizer.stop()
            await asyncio.wait({keeping})
            notebook.write(scheduler.learned)
