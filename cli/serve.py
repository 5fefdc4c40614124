"""serve: the server."""

from typing import Annotated

import typer
import uvicorn

from api.app import create_app
from cli.settings import settings_or_exit
from telemetry.logs import set_up


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. [HOST, else 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on. [PORT, else 9004]")] = None,
) -> None:
    """Serve speech until interrupted."""
    settings = settings_or_exit(host=host, port=port)
    set_up(debug=settings.server.debug)
    uvicorn.run(
        create_app(settings),
        host=settings.server.host,
        port=settings.server.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=settings.server.graceful_shutdown_s,
    )
