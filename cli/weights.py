"""weights: the checkpoints of the engines on torch, from a hub."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from backends.base import BackendError
from backends.engines import ENGINES, Engine, place
from backends.weights.download import Listener
from backends.weights.hub import Hub
from backends.weights.release import bring, is_accepted
from cli.settings import settings_or_exit
from core.settings import Settings

STEP = 10
"""Per cent between two lines, where nobody looks at a bar."""

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended."""


class Model(StrEnum):
    """What can be fetched, as `Engine.model` names it."""

    XTTS = "xtts"
    VOXCPM = "voxcpm"


def weights(
    model: Annotated[Model, typer.Argument(help="What to fetch: XTTS-v2 or VoxCPM2.")],
    again: Annotated[bool, typer.Option("--again", help="What the hub has now, whatever was fetched before.")] = False,
) -> None:
    """Fetch the weights of an engine, or look whether they are still what was fetched, and repair them."""
    settings = settings_or_exit(tts_device="cpu")  # no GPU is needed to fetch
    engine = next(engine for engine in ENGINES.values() if engine.model == model)
    folder = place(engine, settings.options(engine.name))
    hub = Hub(settings.weights.hf_endpoint, settings.weights.hf_token.get_secret_value())
    try:
        _agree(engine, is_agreed=settings.weights.coqui_tos_agreed or is_accepted(engine, folder))
        with _screen() as screen:
            bring(engine, folder, hub, screen, again=again)
    except BackendError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    print(f"The weights are whole, in {folder}.")
    _print_what_is_next(engine, settings)


def _print_what_is_next(engine: Engine, settings: Settings) -> None:
    if not engine.is_installed:
        print(f"Its libraries come next: ./setup.sh --backend {engine.name}")
    if settings.pool.tts_backend not in {engine.name, "auto"}:
        print(f"TTS_BACKEND={engine.name} lets the server speak with it.")


def _agree(engine: Engine, *, is_agreed: bool) -> None:
    """Say what the licence allows, and ask where that needs a yes. Raises BackendError where there is none."""
    print(engine.release.terms)
    if is_agreed:
        return
    if not sys.stdin or not sys.stdin.isatty():
        raise BackendError("Nobody is here to ask: COQUI_TOS_AGREED=1 says that you accept this licence.")
    try:
        answer = input("Do you accept it? [y/n] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() not in {"y", "yes"}:
        raise BackendError("Without that nothing is fetched.")


@contextmanager
def _screen() -> Iterator[Listener]:
    if sys.stdout and sys.stdout.isatty() and not Console().is_dumb_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns) as progress:
            yield _Bars(progress)
    else:
        yield _Lines()


class _Bars:
    """A bar for each file, on a terminal."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def say(self, line: str) -> None:
        """A line above the bars."""
        self._bars.console.print(line, markup=False, highlight=False)

    def progress(self, name: str, done: int, total: int) -> None:
        """Move the file's bar."""
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name)
        self._bars.update(self._tasks[name], completed=done, total=total)


class _Lines:
    """A line for each tenth of a file, where nobody looks at a terminal."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}

    def say(self, line: str) -> None:
        """A line."""
        print(line, flush=True)

    def progress(self, name: str, done: int, total: int) -> None:
        """A line where one is due."""
        step = done * 100 // max(1, total) // STEP * STEP
        if step > self._told.get(name, -1):
            self._told[name] = step
            print(f"{name}: {step} % of {total / 1e6:.1f} MB", flush=True)
