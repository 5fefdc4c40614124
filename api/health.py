"""How things stand: `/health` for people and scripts, `/live` and `/ready` for supervisors."""

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from synthesis.synthesizer import Status, Synthesizer
from telemetry.build_info import PRODUCT, build_version

router = APIRouter()

RETRY_S = 1
"""How soon a client that finds the server not ready may ask again."""

Handler = TypeVar("Handler", bound=Callable[..., Any])


def _probe(path: str) -> Callable[[Handler], Handler]:
    """A route for GET and HEAD, listed once."""

    def add(handler: Handler) -> Handler:
        router.add_api_route(path, handler, methods=["GET", "HEAD"], include_in_schema=False)
        router.add_api_route(path, handler, methods=["GET"])
        return handler

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
    """Everything worth knowing; 503 only where the engine does not start at all."""
    status = _status(request)
    pool = status.pool
    return JSONResponse(
        {
            "status": "ok" if status.state == "ready" else status.state,
            "reason": status.reason or None,
            "version": build_version(),
            "backend": status.backend,
            "model_revision": status.revision or None,
            "default_voice": status.default_voice,
            "uptime_s": round(status.uptime_s, 1),
            "slots": {"total": pool.slots, "busy": pool.busy},
            "queued_utterances": pool.queued,
            "jobs": pool.jobs,
            "worker_restarts": pool.restarts,
            "routing": {
                "load_score": round(status.load_score, 3),
                "accepts_requests": status.state in ("ready", "loading") and status.load_score < 1,
            },
            "smart_routing": {
                "queue_depth": pool.waiting,
                "queue_drain_estimate_seconds": round(pool.drain_s, 1),
                "pool_workers_active": pool.cold_active,
                "pool_workers_loading": pool.cold_loading,
                "pool_workers_optimal": pool.cold_active + pool.cold_loading + pool.cold_wanted,
                "pool_size_cap": pool.cold_cap,
            },
            "requests": {
                "completed": status.completed,
                "failed": status.failed,
                "cancelled": status.cancelled,
                "rejected": status.rejected,
            },
        },
        503 if status.state == "failed" else 200,
    )


@_probe("/live")
async def live() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@_probe("/ready")
async def ready(request: Request) -> JSONResponse:
    """Whether a request would be spoken now instead of waiting for the model; 503 with the reason otherwise."""
    status = _status(request)
    if status.state == "ready":
        return JSONResponse({"status": "ok"})
    return JSONResponse({"status": status.state, "reason": status.reason or None}, 503, {"Retry-After": str(RETRY_S)})


def _status(request: Request) -> Status:
    synthesizer: Synthesizer = request.app.state.synthesizer
    return synthesizer.status()
