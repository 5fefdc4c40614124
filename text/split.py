"""Cut spoken text into utterances: at sentence ends, else at clause marks, else between words, else hard.

Nothing is lost: the pieces hold every character of the text but the white space between them.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

_CLOSERS: Final = "\"'”’)\\]}」』）】》»"
_SENTENCE_END = re.compile(
    rf"(?<![.!?…।])[.!?…।]++[{_CLOSERS}]*+(?=\s)|(?<![。！？．‥])[。！？．‥]++[{_CLOSERS}]*+"  # runs are tried once
)
_CLAUSE_END = re.compile(rf"(?<![,;:—–])[,;:—–]++[{_CLOSERS}]*+(?=\s)|[，；：、]++[{_CLOSERS}]*+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'])(?:[A-HJ-Z]|Mr|Mrs|Ms|Dr|Prof|St|Sr|Sra|Srta|Dra|Jr|Mt|Lt|Col|Gen|Rev|No|vs|etc|approx|Mme|Mlle|MM"
    r"|Sig|Dott|ca|cf|al|e\.g|i\.e|p\.ej|z\.B|bzw|ggf|usw|Nr)\.$"
)
_DOTTED = re.compile(r"\w\.\w\.$")
_SPACE = re.compile(r"\s")
_LINK_WORD = re.compile(
    r"\s(?=(?:and|or|but|because|that|which|who|when|while|with|from|into|about|after|before|for|in|on|to|of|at|by|over"
    r"|under|through|between|as|if|than|near|during|without|against|since|until|behind|beside|above|below|across|along"
    r"|around|outside|inside|within|toward|towards|so|where|how|do|does|did|been"
    r"|is|are|was|were|has|have|had|will|would|can|could|should|must|may|might"
    r"|y|o|que|porque|cuando|con|de|en|para|et|ou|qui|quand|avec|dans|pour|e|che|quando|com|em|und|oder|dass)\s)",
    re.IGNORECASE,
)

WIDE_LANGUAGES: Final = frozenset({"zh", "ja"})
"""One character there is as long as three or four letters elsewhere."""

WIDE_SCALE = 3

MERGED_CHARS = 120
"""Short sentences are spoken in one breath up to this length: the melody runs on, and little silence is cut away."""

SECOND_CHARS = 80
"""The second utterance is short too, for it is made while the first one plays."""

SECOND_SHARE = 3.5
"""How many times as long as the first one it may be: a longer one is not there when the first has been heard."""

FIRST_RANGE = (0.5, 1.6, 2.0)
"""Where the first cut may lie, as shares of what was asked for: from, rather not behind, at most."""

LONG_FIRST = 3.0
"""A first sentence longer than this share of what was asked for is cut between words too."""

LINKED_FROM = 0.9
"""From where on it may then be cut before a word that begins a new phrase, or else between any two from 1 on."""


@dataclass(frozen=True, slots=True)
class _Sizes:
    """In characters: what one utterance may hold, how far sentences are merged, how long the first two should be."""

    limit: int
    merged: int
    second: int
    first: int


def split(text: str, *, language: str, limit: int, first: int) -> list[str]:
    """Pieces of at most `limit` characters, the first of about `first` where a pause allows."""
    return [piece for piece, _ in split_paragraphs(text, language=language, limit=limit, first=first)]


def split_paragraphs(text: str, *, language: str, limit: int, first: int) -> Iterator[tuple[str, bool]]:
    """The pieces of `split`, each with whether it ends its paragraph; paragraphs are lines."""
    scale = WIDE_SCALE if language in WIDE_LANGUAGES else 1
    limit = max(1, limit)
    sizes = _Sizes(limit, min(limit, MERGED_CHARS // scale), min(limit, SECOND_CHARS // scale), max(1, first // scale))
    done = 0
    for paragraph in text.split("\n"):
        pieces = _paragraph(paragraph.strip(), sizes, done)
        done += len(pieces)
        for number, piece in enumerate(pieces, 1):
            yield piece, number == len(pieces)


def _paragraph(text: str, sizes: _Sizes, done: int) -> list[str]:
    """The pieces of one paragraph. done: how many pieces there are before it."""
    sentences = [piece for sentence in _sentences(text) for piece in _bounded(sentence, sizes.limit)]
    pieces: list[str] = []
    if done == 0 and sentences:
        pieces, sentences = _opened(sentences, sizes)
        sizes = replace(sizes, second=min(sizes.second, round(SECOND_SHARE * len(pieces[0]))))
    if done + len(pieces) == 1 and sentences and len(sentences[0]) > sizes.second:
        sentences = [*_halved(sentences[0], sizes.second), *sentences[1:]]
    is_second = done + len(pieces) == 1
    return pieces + _merged(sentences, sizes, is_second=is_second)


def _opened(sentences: list[str], sizes: _Sizes) -> tuple[list[str], list[str]]:
    """The first piece, and the sentences that are left. One that is hardly a word takes the next one with it."""
    low, _, high = _first_range(sizes.first)
    if (
        len(sentences) > 1
        and len(sentences[0]) < low
        and len(sentences[0]) + len(sentences[1]) < min(high, sizes.limit)
    ):
        return [sentences[0] + _glue(sentences[0]) + sentences[1]], sentences[2:]
    opening, rest = _opening(sentences[0], sizes.first)
    return [opening], [*([rest] if rest else []), *sentences[1:]]


def _opening(sentence: str, first: int) -> tuple[str, str]:
    """The first few words of a sentence and its rest, which is empty for a sentence that is short by itself."""
    low, near, high = _first_range(first)
    if len(sentence) <= high:
        return sentence, ""
    marks = [(_CLAUSE_END, low, near), (_CLAUSE_END, near, high)]
    if len(sentence) > LONG_FIRST * first:
        marks.insert(1, (_LINK_WORD, round(LINKED_FROM * first), near))
        marks += [(_LINK_WORD, near, high), (_SPACE, first, near)]
    places = next((found for mark in marks if (found := _places(mark[0], sentence, *mark[1:]))), [])
    for end in sorted(places, key=lambda place: abs(place - first)):
        opening, rest = sentence[:end].strip(), sentence[end:].strip()
        if len(rest) >= first // 2 and (len(rest.split()) > 1 or (end and not sentence[end - 1].isascii())):
            return opening, rest
    return sentence, ""


def _first_range(first: int) -> tuple[int, int, int]:
    low, near, high = (round(share * first) for share in FIRST_RANGE)
    return low, near, high


def _halved(sentence: str, size: int) -> list[str]:
    """A long second piece in two at a pause, or before a new phrase."""
    places = _places(_CLAUSE_END, sentence, size // 3, size)
    if not places and len(sentence) > 1.5 * size:
        places = _places(_LINK_WORD, sentence, size // 2, size) or _places(_SPACE, sentence, size // 2, size)
    if not places:
        return [sentence]
    return [piece for piece in (sentence[: places[-1]].strip(), sentence[places[-1] :].strip()) if piece]


def _places(mark: re.Pattern[str], text: str, low: int, high: int) -> list[int]:
    """Where the text can be cut between `low` and `high`."""
    return [found.end() for found in mark.finditer(text[: high + 1]) if low <= found.end() <= high]


def _merged(sentences: list[str], sizes: _Sizes, *, is_second: bool) -> list[str]:
    """Short neighbours together. is_second: whether the first of them is the second piece of the text."""
    pieces: list[list[str]] = []
    length = 0
    for sentence in sentences:
        room = sizes.second if is_second and len(pieces) == 1 else sizes.merged
        glue = _glue(pieces[-1][-1]) if pieces else ""
        if pieces and length + len(glue) + len(sentence) <= room:
            pieces[-1].append(glue + sentence)
            length += len(glue) + len(sentence)
        else:
            pieces.append([sentence])
            length = len(sentence)
    return ["".join(parts) for parts in pieces]


def _glue(piece: str) -> str:
    return "" if piece[-1] >= "\u3000" else " "


def _sentences(text: str) -> list[str]:
    pieces: list[str] = []
    start = 0
    for found in _SENTENCE_END.finditer(text):
        if _ends_sentence(text, found):
            pieces.append(text[start : found.end()].strip())
            start = found.end()
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def _ends_sentence(text: str, found: re.Match[str]) -> bool:
    following = text[found.end() + 1 : found.end() + 3]
    goes_on = following[:1].islower()
    if goes_on and found[0][-1] not in ".!?…।。！？．‥":
        return False
    if found[0] != ".":
        return True
    tail = text[max(0, found.end() - 12) : found.end()]
    is_followed_by_capitals = following.isalpha() and following.isupper()
    if _DOTTED.search(tail) and (goes_on or is_followed_by_capitals):
        return False
    return not _ABBREVIATION.search(tail)


def _bounded(sentence: str, limit: int) -> list[str]:
    """A sentence in pieces of at most `limit`, packed full of clauses, else of words; the last one is no crumb."""
    pieces: list[str] = []
    start = 0
    while len(sentence) - start > limit:
        room = min(limit, max(limit // 2, len(sentence) - start - limit // 4, 1))
        end = start + _last_cut(sentence[start : start + room + 1], room)
        pieces.append(sentence[start:end].strip())
        start = end
    return [piece for piece in [*pieces, sentence[start:].strip()] if piece]


def _last_cut(window: str, limit: int) -> int:
    """Where to end a piece of at most `limit` characters; the window holds one more."""
    for mark in (_CLAUSE_END, _SPACE):
        places = _places(mark, window, limit // 4 + 1, limit)
        if places:
            return places[-1]
    end = limit
    while end > 1 and unicodedata.combining(window[end]):
        end -= 1
    return end if not unicodedata.combining(window[end]) else limit
