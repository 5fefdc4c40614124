"""Cut spoken text into utterances: at sentence ends, else at clause marks, else between words, else hard.

Nothing is lost: the pieces hold every character of the text but the white space between them.
"""

import re
import unicodedata
from collections.abc import Iterator

PARAGRAPH = re.compile(r"\s*\n\s*")

_CLOSERS = "\"'”’)\\]}」』）】》"
_SENTENCE_END = re.compile(rf"[.!?…।]+[{_CLOSERS}]*(?=\s)|[。！？．‥]+[{_CLOSERS}]*")
_CLAUSE_END = re.compile(rf"[,;:—–][{_CLOSERS}]*(?=\s)|[，；：、][{_CLOSERS}]*")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:[A-Za-z]|[A-Z][a-z]{0,3}|[a-z]\.[a-z]|etc|vs|approx)\.$")
_LINK_WORD = re.compile(
    r"\s(?=(?:and|or|but|because|that|which|who|when|while|with|from|into|about|after|before|for|in|on|to|of"
    r"|y|o|que|porque|cuando|con|de|en|para|et|ou|qui|quand|avec|dans|pour|e|che|quando|com|em)\s)",
    re.IGNORECASE,
)

WIDE_LANGUAGES = frozenset({"zh", "ja"})
"""One character there is as long as three or four letters elsewhere."""

MERGED_CHARS = 120
"""Short sentences are spoken in one breath up to this length: the melody runs on, and little silence is cut away."""

SECOND_CHARS = 80
"""The second utterance is short too, for it is made while the first one plays."""

FIRST_RANGE = (0.5, 2.0)
"""Where the first cut may lie, as a share of what was asked for, when a mark allows it."""

LONG_FIRST = 3.0
"""A first sentence longer than this share of what was asked for is cut between words too."""


def split(text: str, *, language: str, limit: int, first: int) -> list[str]:
    """Pieces of at most `limit` characters, the first of about `first` where a pause allows."""
    return [piece for paragraph in PARAGRAPH.split(text) for piece in _paragraph(paragraph, language, limit, first)]


def split_paragraphs(text: str, *, language: str, limit: int, first: int) -> Iterator[tuple[str, bool]]:
    """The pieces of `split`, each with whether it ends its paragraph; only the very first one is cut short."""
    is_first = True
    for paragraph in PARAGRAPH.split(text):
        pieces = _paragraph(paragraph, language, limit, first if is_first else 0)
        for number, piece in enumerate(pieces):
            yield piece, number == len(pieces) - 1
        is_first = is_first and not pieces


def _paragraph(text: str, language: str, limit: int, first: int) -> list[str]:
    scale = 3 if language in WIDE_LANGUAGES else 1
    sentences = [piece for sentence in _cut(text.strip(), _SENTENCE_END) for piece in _bounded(sentence, limit)]
    pieces: list[str] = []
    if first and sentences:
        opening, rest = _opening(sentences[0], max(1, first // scale))
        pieces.append(opening)
        sentences = [*([rest] if rest else []), *sentences[1:]]
    return pieces + _merged(sentences, min(limit, MERGED_CHARS // scale), min(limit, SECOND_CHARS // scale))


def _merged(sentences: list[str], size: int, second: int) -> list[str]:
    pieces: list[str] = []
    for sentence in sentences:
        room = second if len(pieces) == 1 else size
        glue = "" if pieces and ord(pieces[-1][-1]) >= 0x3000 else " "
        if pieces and len(pieces[-1]) + len(glue) + len(sentence) <= room:
            pieces[-1] += glue + sentence
        else:
            pieces.append(sentence)
    return pieces


def _opening(sentence: str, first: int) -> tuple[str, str]:
    """The first few words of a sentence and its rest, which is empty for a sentence that is short by itself."""
    low, high = (round(share * first) for share in FIRST_RANGE)
    if len(sentence) <= high:
        return sentence, ""
    ends = [match.end() for match in _CLAUSE_END.finditer(sentence, 0, high + 1) if low <= match.end()]
    if not ends and len(sentence) > LONG_FIRST * first:
        ends = [match.start() for match in _LINK_WORD.finditer(sentence, 0, high + 8) if first <= match.start() <= high]
        ends = ends or [match.start() for match in re.finditer(r"\s", sentence[: high + 1]) if match.start() >= first]
    if not ends:
        return sentence, ""
    end = min(ends, key=lambda place: abs(place - first))
    rest = sentence[end:].strip()
    return (sentence[:end].strip(), rest) if len(rest) >= low else (sentence, "")


def _cut(text: str, mark: re.Pattern[str]) -> list[str]:
    pieces: list[str] = []
    start = 0
    for match in mark.finditer(text):
        if match.group().startswith(".") and _ABBREVIATION.search(text[max(0, match.end() - 12) : match.end()]):
            continue
        pieces.append(text[start : match.end()].strip())
        start = match.end()
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def _bounded(sentence: str, limit: int) -> list[str]:
    """A sentence in pieces of at most `limit`, packed full of clauses, else of words."""
    if len(sentence) <= limit:
        return [sentence]
    pieces: list[str] = []
    rest = sentence
    while len(rest) > limit:
        end = _last_cut(rest, limit)
        pieces.append(rest[:end].strip())
        rest = rest[end:].strip()
    return [piece for piece in [*pieces, rest] if piece]


def _last_cut(text: str, limit: int) -> int:
    window = text[: limit + 1]
    for mark in (_CLAUSE_END, re.compile(r"\s")):
        ends = [match.end() for match in mark.finditer(window) if limit // 4 < match.end() <= limit]
        if ends:
            return ends[-1]
    end = limit
    while end > 1 and unicodedata.combining(text[end]):
        end -= 1
    return end
