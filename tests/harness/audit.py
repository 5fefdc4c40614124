"""What this process does with files, seen by Python's own audit events."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

Watcher = Callable[[str, tuple[Any, ...]], object]


@cache
def _watchers() -> list[Watcher]:
    """Those who are told now. A hook can never be taken off again, so there is one for all of them."""
    watchers: list[Watcher] = []

    def tell(event: str, args: tuple[Any, ...]) -> None:
        for watcher in watchers:
            watcher(event, args)

    sys.addaudithook(tell)
    return watchers


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` with name and arguments of each event: `open`, `os.rename`, `os.remove` and all others."""
    _watchers().append(watcher)
    try:
        yield
    finally:
        _watchers().remove(watcher)
