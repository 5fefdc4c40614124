"""How long a speaker pauses behind a piece of text, by the mark that ends it."""

from collections.abc import Mapping
from typing import Final

PARAGRAPH_S = 0.6
SENTENCE_S = 0.35
CLAUSE_S = 0.15
CUT_S = 0.03
"""Behind a piece that was cut where no mark asks for a pause."""

_CLOSERS: Final = "\"'”’)]}」』）】》 "

_MARKS: Final[Mapping[float, str]] = {SENTENCE_S: ".!?…。！？．‥।", CLAUSE_S: ",;:—–，；：、"}


def pause_after(piece: str, *, ends_paragraph: bool) -> float:
    """Seconds of silence behind a piece, at speed 1."""
    if ends_paragraph:
        return PARAGRAPH_S
    last = piece.rstrip(_CLOSERS)[-1:]
    return next((seconds for seconds, marks in _MARKS.items() if last and last in marks), CUT_S)
