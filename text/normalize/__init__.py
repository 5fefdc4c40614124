"""Written form to spoken form, a file a language."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from text.normalize.en import normalize_en
from text.normalize.es import normalize_es
from text.normalize.fr import normalize_fr
from text.normalize.hi import normalize_hi
from text.normalize.it import normalize_it
from text.normalize.ja import normalize_ja
from text.normalize.pt import normalize_pt
from text.normalize.rules import straighten, tidy
from text.normalize.zh import normalize_zh

BLOCK_CHARS = 500
"""Lines are put together up to this length, for a rule costs some time even where it finds nothing."""

_LANGUAGES: Final[Mapping[str, Callable[[str], str]]] = {
    "en": normalize_en,
    "es": normalize_es,
    "fr": normalize_fr,
    "hi": normalize_hi,
    "it": normalize_it,
    "ja": normalize_ja,
    "pt": normalize_pt,
    "zh": normalize_zh,
}


def spoken(text: str, language: str) -> str:
    """The text as it is said; line ends stay. A language without a file of its own keeps its digits and signs."""
    normalize = _LANGUAGES.get(language, _straight)
    return "\n".join(normalize(block) for block in _blocks(text))


def _straight(text: str) -> str:
    return tidy(straighten(text))


def _blocks(text: str) -> Iterator[str]:
    """Lines in blocks of some length: one without a digit then skips the rules for digits."""
    block: list[str] = []
    length = 0
    for line in text.split("\n"):
        block.append(line)
        length += len(line)
        if length > BLOCK_CHARS:
            yield "\n".join(block)
            block, length = [], 0
    if block:
        yield "\n".join(block)
