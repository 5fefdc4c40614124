"""serve: the server."""

import signal
from typing import Annotated

import typer
import uvicorn

from api.app import create_app
from api.wire import BoundedHttp
from cli.settings import settings_or_exit
from telemetry.logs import set_up

LAST_WORD_S = 3
"""For those whose answer was not finished in time to be told so."""

STARTUP_FAILED = 3
"""Exit code of a server that could not listen."""


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. [HOST, else 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on. [PORT, else 9004]")] = None,
) -> None:
    """Serve speech until interrupted."""
    settings = settings_or_exit(host=host, port=port)
    set_up(debug=settings.server.debug)
    config = uvicorn.Config(
        create_app(settings),
        host=settings.server.host,
        port=settings.server.port,
        http=BoundedHttp,
        proxy_headers=False,  # TRUSTED_PROXIES says whom to believe
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=settings.server.drain_seconds + LAST_WORD_S,
    )
    server = uvicorn.Server(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn sends itself the signal again at its end, to die of it: a server that was asked to stop, and did, is
        # to end with 0.
        signal.signal(number, server.handle_exit)
    server.run()
    if not server.started:
        raise typer.Exit(STARTUP_FAILED)
