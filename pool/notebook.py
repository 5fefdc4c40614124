"""What the scheduler learned of this machine, on disk: the next life of the server begins with it."""

import asyncio
from collections.abc import Callable, Iterator
from math import isfinite
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from core.errors import place_of
from core.events import Events
from core.files import write_whole
from scheduler.fleet import Learned

WRITE_INTERVAL_S = 60.0
"""Between two writings of what is new: at most so much is lost when the server is killed."""

_LEARNED = TypeAdapter(Learned)


class Notebook:
    """One file. What cannot be read counts as never learned; what cannot be written is lost, and told once."""

    def __init__(self, path: Path, events: Events) -> None:
        """path: of the file; its folder is made when it is needed."""
        self._path = path
        self._events = events
        self._written: Learned | None = None
        self._is_told = False

    def read(self) -> Learned | None:
        """What an earlier life learned, None where there was none or it cannot be believed."""
        try:
            learned = _LEARNED.validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return None
        is_sane = learned.priors.rates and all(isfinite(figure) and figure > 0 for figure in _figures(learned))
        return learned if is_sane else None

    async def keep(self, learned: Callable[[], Learned]) -> None:
        """Write down what is new, again and again, until this is cancelled."""
        while True:
            await asyncio.sleep(WRITE_INTERVAL_S)
            writing = asyncio.create_task(asyncio.to_thread(self.write, learned()))
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                await writing  # it must not come behind what is written after this
                raise

    def write(self, learned: Learned) -> None:
        """Replace the file by what is known now: the old or the new is there, whenever the power fails."""
        if learned == self._written or not learned.starts:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, [_LEARNED.dump_json(learned)])
        except OSError as error:
            if not self._is_told:
                self._events.notes_lost(reason=place_of(error))
            self._is_told = True
        else:
            self._written = learned


def _figures(learned: Learned) -> Iterator[float]:
    yield from (*learned.priors.rates, learned.priors.start_s, learned.priors.memory_bytes)
    yield from learned.starts.values()
    for curve in learned.curves.values():
        yield from curve.speeds
        for sums in (*curve.speeds.values(), *curve.lengths.values(), *([curve.words] if curve.words else [])):
            yield from sums
