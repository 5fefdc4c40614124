"""Everything put together from settings: the one place that knows which parts there are."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from backends.choice import choose
from backends.engines import ENGINES
from backends.registry import device as device_of
from backends.registry import is_heavy
from cache.cache import Cache, Troubles
from cache.store import Store
from core.cgroups import usable_cores
from core.clock import Clock, SystemClock
from core.environment import PROJECT
from core.events import Events
from core.settings import CacheSettings, PoolSettings, Settings
from core.threads import in_thread
from pool.forks import Template
from pool.memory import open_memory
from pool.mps import Mps, is_installed
from pool.notebook import Notebook
from pool.pool import Pool
from pool.process import WorkerSpec
from scheduler.admission import Limits
from scheduler.autoscaler import ColdPool
from scheduler.messages import CPU
from scheduler.scheduler import Scheduler
from scheduler.watchdog import Patience
from synthesis.machine import look
from synthesis.order import learn_rules
from synthesis.rehearsal import Rehearsal
from synthesis.speakers import Speakers
from synthesis.stream import AudioStream
from synthesis.synthesizer import Synthesizer
from voices.collection import open_collection
from voices.library import Library
from voices.uploads import Uploads

DISK_THREADS = 2
"""For the cache."""

LATENTS = "latents"
"""Folder below STATE_DIR of what engines made of registered voices."""


def _limits(settings: PoolSettings) -> Limits:
    return Limits(settings.max_queue_length, settings.max_queue_seconds, settings.deadline_seconds)


def _backend(settings: Settings, events: Events) -> str:
    """The backend that the settings mean, and what is to be said of it."""
    name = settings.pool.tts_backend
    if name == "auto":
        choice = choose(look(settings))
        name = choice.backend
        events.backend_chosen(backend=name, passed_over="; ".join(choice.passed_over))
    if (engine := ENGINES.get(name)) and engine.hazard:
        events.backend_hazard(backend=name, hazard=engine.hazard)
    return name


def _batches(backend: str) -> bool:
    """Whether one worker fills a GPU: no other one shares it, and none is worth a process to fork it from."""
    return backend in ENGINES and ENGINES[backend].batches


def _mps(settings: PoolSettings, backend: str, device: str) -> Mps | None:
    """A daemon of MPS where it is asked for and of use. Blocks; raises SettingsError where it does not start."""
    if settings.gpu_mps == "off" or device == CPU or not is_heavy(backend) or _batches(backend):
        return None
    return Mps() if settings.gpu_mps == "on" or is_installed() else None


def _worker(settings: Settings, backend: str, mps: Mps | None) -> WorkerSpec:
    return WorkerSpec(
        backend,
        settings.options(backend),
        latents=str(PROJECT / settings.pool.state_dir / LATENTS),
        is_guarded=settings.pool.quality_guard,
        environment=mps.environment if mps else {},
    )


def _cold_pool(settings: PoolSettings, device: str, *, shares_fate: bool) -> ColdPool:
    return ColdPool(
        shares_fate=shares_fate,
        size=settings.cold_pool_size,
        idle_s=settings.cold_worker_idle_timeout,
        stagger_s=settings.cold_worker_idle_stagger,
        interval_s=settings.cold_pool_manager_interval,
        safety=settings.hot_queue_safety_factor,
        streams=settings.stream_on_cold,
        hot_idle_s=settings.hot_idle_timeout,
        least_bytes=int((settings.min_cold_ram_gb if device == CPU else settings.min_cold_vram_gb) * 2**30),
    )


def _scheduler(
    settings: PoolSettings, limits: Limits, device: str, *, notebook: Notebook, shares_fate: bool
) -> Scheduler:
    return Scheduler(
        lead_s=settings.stream_lead_s,
        limits=limits,
        cold=_cold_pool(settings, device, shares_fate=shares_fate),
        device=device,
        patience=Patience(task_s=settings.hang_seconds),
        learned=notebook.read(),
    )


def _cache(
    settings: CacheSettings, events: Events, clock: Clock, threads: Executor
) -> tuple[Cache[AudioStream] | None, Callable[[], Coroutine[Any, Any, None]]]:
    """The cache, and what is to be done for it; where it is off, what was kept before goes."""
    troubles = Troubles(events)
    store = Store(
        PROJECT / settings.audio_cache_dir,
        ttl_s=settings.cache_ttl_minutes * 60,
        max_bytes=settings.cache_max_bytes,
        on_trouble=troubles,
    )
    if not settings.cache_ttl_minutes:
        return None, partial(in_thread, threads, store.clear)
    learn_rules()
    if store.is_exposed:
        events.cache_exposed(folder=str(settings.audio_cache_dir))
    cache: Cache[AudioStream] = Cache(store, troubles, clock=clock, threads=threads)
    return cache, cache.sweep


def _speakers(settings: Settings, pool: Pool, events: Events, *, threads: Executor, desk: Executor) -> Speakers:
    return Speakers(
        Library(settings.speech.default_voice),
        open_collection(settings.speech),
        traits=lambda: pool.known_traits,
        events=events,
        threads=threads,
        desk=desk,
        latents=PROJECT / settings.pool.state_dir / LATENTS,
    )


@asynccontextmanager
async def open_synthesizer(
    settings: Settings, events: Events, *, clock: Clock | None = None
) -> AsyncIterator[Synthesizer]:
    """Compose everything and start loading; returns before the model is there. Ends all workers on the way out."""
    clock = clock or SystemClock()
    backend = _backend(settings, events)
    state = PROJECT / settings.pool.state_dir
    memory, device = open_memory(device_of(backend, settings.pool.tts_device))
    mps = await asyncio.to_thread(_mps, settings.pool, backend, device)
    spec = _worker(settings, backend, mps)
    name = re.sub(r"\W+", "-", backend) + ("-mps" if mps else "")  # it is another speed
    notebook = Notebook(state / f"{name}.json", events)
    limits = _limits(settings.pool)
    scheduler = _scheduler(settings.pool, limits, device, notebook=notebook, shares_fate=mps is not None)
    forks = is_heavy(backend) and not _batches(backend) and settings.pool.cold_pool_size != 0
    template = Template(backend, events) if forks else None
    pool = Pool(spec, scheduler, clock=clock, events=events, memory=memory, template=template)
    with (
        ThreadPoolExecutor(max_workers=max(2, usable_cores()), thread_name_prefix="encode") as threads,
        ThreadPoolExecutor(max_workers=DISK_THREADS, thread_name_prefix="disk") as disk,  # no encoder waits for a disk
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="voices") as desk,
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="uploads") as reader,
    ):
        cache, tend = _cache(settings.cache, events, clock, disk)
        speakers = _speakers(settings, pool, events, threads=threads, desk=desk)
        synthesizer = Synthesizer(
            settings,
            pool,
            speakers,
            cache,
            backend=backend,
            uploads=Uploads(settings.server.max_upload_bytes, reader),
            limits=limits,
            clock=clock,
            events=events,
            threads=threads,
        )
        events.server_started(backend=backend)
        pool.open()
        speakers.open()
        rehearsal = Rehearsal(pool, speakers, events, clock)
        works = notebook.keep(lambda: scheduler.learned), tend(), rehearsal.run()
        chores = {asyncio.create_task(work) for work in works}
        try:
            yield synthesizer
        finally:
            for chore in chores:
                chore.cancel()
            await synthesizer.stop()
            await speakers.close()
            await asyncio.wait(chores)
            notebook.write(scheduler.learned)
            if mps:
                await asyncio.to_thread(mps.close)
