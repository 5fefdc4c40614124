"""Time as an argument: decisions read a clock that tests can move by hand."""

import time
from typing import Protocol


class Clock(Protocol):
    """Something that tells monotonic time."""

    def now(self) -> float:
        """Seconds since an arbitrary start; never goes back."""


class SystemClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        return time.monotonic()
