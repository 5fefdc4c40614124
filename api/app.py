"""The application, composed from settings. Making it starts nothing; its lifespan does."""

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from types import FrameType
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from api import admin, health, models, speech, voices
from api.client import is_own
from api.edge import Edge
from api.errors import on_client_gone, on_http_error, on_speech_error
from api.rate import RateLimit
from core.clock import SystemClock
from core.errors import SpeechError
from core.events import Events
from core.settings import ServerSettings, Settings, load_settings
from synthesis.compose import open_synthesizer
from synthesis.synthesizer import Synthesizer
from telemetry.build_info import PRODUCT, build_version
from telemetry.logs import LogEvents, set_up
from telemetry.node_registry import registered

EXPOSED_HEADERS = [
    *("X-Request-ID", "X-Cache", "X-Route", "X-Sample-Rate", "ETag", "Retry-After", "Retry-After-Ms"),
    *(f"X-RateLimit-{name}-Requests" for name in ("Limit", "Remaining", "Reset")),
]


def create_app(settings: Settings | None = None) -> FastAPI:
    """An app that speaks. settings: read from the environment where not given, which may raise SettingsError."""
    settings = settings or load_settings()
    app = FastAPI(
        title=PRODUCT,
        version=build_version(),
        lifespan=_lifespan,
        docs_url=None,  # both pages load scripts from a foreign host
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.rate_limit = RateLimit(rpm, SystemClock()) if (rpm := settings.server.rate_limit_rpm) else None
    for room in (speech, voices, models, health, admin):
        app.include_router(room.router)
    app.add_exception_handler(SpeechError, on_speech_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(ClientDisconnect, on_client_gone)
    origins = [origin.strip() for origin in settings.server.cors_allow_origins.split(",") if origin.strip()]
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=EXPOSED_HEADERS,
        )
    app.add_middleware(Edge)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    set_up(debug=settings.server.debug)
    refuse_more_processes()
    events = LogEvents(log_text=settings.server.log_text)
    tell_if_exposed(settings.server, events)
    async with (
        open_synthesizer(settings, events) as synthesizer,
        registered(settings, tell=partial(_told_to_routers, synthesizer), events=events) as leave,
    ):
        app.state.synthesizer = synthesizer

        def drain() -> None:
            synthesizer.drain()
            leave()

        call_on_signal(drain)
        yield


def tell_if_exposed(settings: ServerSettings, events: Events) -> None:
    """An event where anybody in a network may speak. Under plain uvicorn its own --host decides, which nobody knows."""
    if not settings.api_keys and not is_own(settings.host):
        events.server_exposed(host=settings.host)


def _told_to_routers(synthesizer: Synthesizer) -> dict[str, object]:
    status = synthesizer.status()
    return {
        "load_score": round(status.load_score, 3),
        "accepts_requests": status.accepts_requests,
        "version": build_version(),
        "engine": status.backend,
        "model": status.traits.model if status.traits else "",
    }


def call_on_signal(call: Callable[[], None]) -> None:
    """Call on the loop, besides what is done anyway, when the server is told to stop.

    uvicorn tells its app only when the last connection is closed, which is too late to stop letting jobs in.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # there are no signals: the app runs inside of something else
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)
        if callable(before):
            signal.signal(number, partial(_both, before, loop, call))


def _both(
    before: Callable[[int, FrameType | None], Any],
    loop: asyncio.AbstractEventLoop,
    call: Callable[[], None],
    number: int,
    frame: FrameType | None,
) -> None:
    before(number, frame)
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)


def refuse_more_processes() -> None:
    """End a server that was started as several processes: each would load the model, and none would know the queue."""
    asked = [*sys.argv, f"--workers={os.environ.get('WEB_CONCURRENCY', '')}"]
    counts = [
        word.partition("=")[2] or following
        for word, following in zip(asked, [*asked[1:], ""], strict=True)
        if word.partition("=")[0] == "--workers"
    ]
    if multiprocessing.parent_process() is None or not any(count.isdecimal() and int(count) > 1 for count in counts):
        return
    logging.getLogger("uttera_tts").error(
        "More than one server process is refused: one process serves every request, and has its own worker processes "
        "for the model. Start without --workers (and without WEB_CONCURRENCY)."
    )
    os.kill(os.getppid(), signal.SIGTERM)  # or it would start the next process for ever
    os._exit(2)  # nothing has started yet, and an exception here would be logged as a crash
