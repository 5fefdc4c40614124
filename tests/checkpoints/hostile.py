"""What a file of weights must not be able to do."""

from pathlib import Path
from typing import Any


class Opener:
    """Stands for code in a file of weights: unpickling it would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (str(self.path), "w"))
