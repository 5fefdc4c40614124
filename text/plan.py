"""From a client's text to utterances: clean, say, cut."""

from core.speech import Utterance
from text.markup import strip_markup
from text.normalize import spoken
from text.pauses import pause_after
from text.split import split_paragraphs


def plan(text: str, *, language: str, limit: int, first: int) -> tuple[Utterance, ...]:
    """Utterances in order, none where there is nothing to say.

    language: ISO 639-1. limit: characters in one utterance at most. first: about how many in the first one.
    """
    said = spoken(strip_markup(text), language)
    pieces = [
        (piece, ends_paragraph)
        for piece, ends_paragraph in split_paragraphs(said, language=language, limit=limit, first=first)
        if any(char.isalnum() for char in piece)
    ]
    return tuple(
        Utterance(
            index,
            piece,
            language,
            pause_after(piece, ends_paragraph=ends_paragraph) if index < len(pieces) - 1 else 0.0,
        )
        for index, (piece, ends_paragraph) in enumerate(pieces)
    )
