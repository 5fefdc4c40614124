"""How things stand: `/health` for people and scripts, `/live` and `/ready` for supervisors."""

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from api.auth import is_stranger
from synthesis.status import Status
from synthesis.synthesizer import Synthesizer
from telemetry.build_info import PRODUCT, build_version

router = APIRouter()

RETRY_S = 1
"""How soon a client that finds the server not ready may ask again."""

FOR_STRANGERS = ("status", "engine_ready", "routing")
"""Of `/health`. Not why something is wrong: that names files and libraries."""

Route = TypeVar("Route", bound=Callable[..., Any])


def _probe(path: str) -> Callable[[Route], Route]:
    """A route for GET and HEAD, listed once."""

    def add(route: Route) -> Route:
        router.add_api_route(path, route, methods=["GET", "HEAD"], include_in_schema=False)
        router.add_api_route(path, route, methods=["GET"])
        return route

    return add


@_probe("/")
@_probe("/v1")
async def root() -> dict[str, Any]:
    """What this is, for whoever opens the address."""
    return {
        "name": PRODUCT,
        "version": build_version(),
        "speech": "POST /v1/audio/speech",
        "voices": "GET /v1/voices",
        "health": "GET /health",
    }


@_probe("/health")
async def health(request: Request) -> JSONResponse:
    """Everything worth knowing, to strangers its beginning; 503 only where the engine does not start at all."""
    status = _status(request)
    told = _told(status)
    if is_stranger(request):
        told = {name: told[name] for name in FOR_STRANGERS}
    return JSONResponse(told, 503 if status.state == "failed" else 200)


@_probe("/live")
async def live() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@_probe("/ready")
async def ready(request: Request) -> JSONResponse:
    """Whether a request would be spoken now instead of waiting for the model; 503 with the reason otherwise."""
    status = _status(request)
    told = {"status": _word(status), "reason": None if is_stranger(request) else status.reason or None}
    if status.is_ready:
        return JSONResponse(told)
    return JSONResponse(told, 503, {"Retry-After": str(RETRY_S)})


def _status(request: Request) -> Status:
    synthesizer: Synthesizer = request.app.state.synthesizer
    return synthesizer.status()


def _word(status: Status) -> str:
    return "ok" if status.state == "ready" else status.state


def _told(status: Status) -> dict[str, Any]:
    """Names and units that pollers of the servers before this one read; where one has two, both are told."""
    pool, traits = status.pool, status.traits
    states = {"loaded": pool.is_hot, "unloaded": pool.is_unloaded, "failed": pool.is_hopeless}
    return {
        "status": _word(status),
        "reason": status.reason or None,
        "version": build_version(),
        "backend": status.backend,
        "model": (traits.model if traits else "") or None,
        "precision": (traits.precision if traits else "") or None,
        "model_revision": traits.revision if traits else None,
        "hot_worker": next((state for state, holds in states.items() if holds), "loading"),
        "hot_worker_loaded": pool.is_hot,
        "hot_worker_error": pool.reason or None,
        "engine_ready": pool.is_ready,
        "cold_workers_active": pool.cold.active,
        "voices_loaded": len(status.voices),
        "default_voice": status.voices[0].id,
        "uptime_s": round(status.uptime_s, 1),
        "slots": {"total": pool.slots, "busy": pool.busy},
        "jobs": pool.jobs,
        "queued_utterances": pool.queued,
        "worker_restarts": pool.restarts,
        "routing": {"load_score": round(status.load_score, 3), "accepts_requests": status.accepts_requests},
        "smart_routing": _smart_routing(status),
        "metrics": {
            "in_flight": status.in_flight,
            "total_completed": status.outcomes.get("done", 0),
            "total_errors": status.outcomes.get("failed", 0),
            "total_cancelled": status.outcomes.get("cancelled", 0),
            "total_rejected": status.outcomes.get("rejected", 0),
        },
        **_gpu(status),
        "cache": _cache(status),
        "workers": _workers(status),
    }


def _smart_routing(status: Status) -> dict[str, Any]:
    """What decides about cold workers. Where there is no GPU, their memory is main memory, and is called so."""
    pool = status.pool
    kind = "vram" if pool.gpu else "ram"
    return {
        "ema_spw": round(pool.word_s, 4),
        "cold_start_calibrated": pool.is_start_known,
        "cold_ema_start_seconds": round(pool.start_s, 2),
        "queue_depth": status.waiting,
        "queue_words": pool.words,
        "queue_drain_estimate_seconds": round(pool.drain_s, 1),
        "pool_workers_active": pool.cold.active,
        "pool_workers_loading": pool.cold.loading,
        "pool_workers_optimal": pool.cold.active + pool.cold.loading + pool.cold.wanted,
        "pool_size_cap": pool.cold.cap,
        "vram_free_gb": None,
        "cold_vram_ema_gb": None,
        "vram_sufficient_for_cold": pool.cold.room_bytes >= pool.cold.need_bytes,
        f"{kind}_free_gb": _gb(pool.memory.free_bytes) if pool.memory else None,
        f"cold_{kind}_ema_gb": _gb(pool.cold.need_bytes),
    }


def _gpu(status: Status) -> dict[str, Any]:
    gpu = status.pool.gpu
    return {
        "gpu_memory_used_gb": _gb(gpu.total_bytes - gpu.free_bytes) if gpu else None,
        "gpu_memory_total_gb": _gb(gpu.total_bytes) if gpu else None,
    }


def _cache(status: Status) -> dict[str, Any] | None:
    cache = status.cache
    if cache is None:
        return None
    return {
        "hits": cache.hits,
        "shared": cache.shared,
        "misses": cache.misses,
        "troubles": cache.troubles,
        "answers": cache.usage.answers,
        "bytes": cache.usage.bytes,
    }


def _workers(status: Status) -> list[dict[str, Any]]:
    return [
        {
            "id": worker.id,
            "kind": worker.kind,
            "pid": status.pids.get(worker.id),
            "state": worker.state,
            "device": worker.device,
            "uptime_s": round(worker.uptime_s, 1),
            "slots": worker.slots,
            "busy": worker.busy,
            "jobs": worker.finished,
            "memory_gb": None if worker.memory_bytes is None else _gb(worker.memory_bytes),
        }
        for worker in status.pool.workers
    ]


def _gb(size: int) -> float:
    return round(size / 2**30, 3)
