"""`main_tts.py` as a command."""

import typer

from cli import say, serve, voices, weights
from telemetry.build_info import PRODUCT, build_version

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(serve.serve)
app.command()(say.say)
app.command()(weights.weights)
app.add_typer(voices.app, name="voices")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(PRODUCT, build_version())
        raise typer.Exit


@app.callback()
def options(version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True)) -> None:
    """A text-to-speech server behind OpenAI's API."""
