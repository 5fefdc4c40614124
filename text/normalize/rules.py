"""A rule: where it applies, and what is said instead. A language is a list of them, in order."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

Said = Callable[[re.Match[str]], str]

DIGITS: Final = "0123456789"

_QUOTES: Final = str.maketrans(
    {
        "‘": "'", "’": "'", "‛": "'", "ʼ": "'", "′": "'", "“": '"', "”": '"', "„": '"', "‟": '"', "″": '"',
        "«": '"', "»": '"', "‹": "'", "›": "'", "−": "-", "‐": "-", "‑": "-", "‒": "–", "―": "—",
        "℃": "°C", "℉": "°F", "μ": "µ", "Ω": "Ω", "\t": " ", "\u00a0": " ", "\u2009": " ", "\u202f": " ",
    }
)  # fmt: skip
_SPACES = re.compile(r"[^\S\n]{2,}")
_STRAY = re.compile(r"[^\S\n]++(?=[,.;:!?](?:\s|$)|\))|(?<=\()[^\S\n]++")
_EDGE = re.compile(r"[^\S\n]*\n[^\S\n]*")
_DOUBLED = re.compile(r",(?:[^\S\n]*,)+")


@dataclass(frozen=True, slots=True)
class Rule:
    """Everything that `pattern` finds is said as `say` tells.

    needles: characters of which a text must hold at least one for the pattern to be worth a try; empty for always.
    """

    needles: str
    pattern: re.Pattern[str]
    say: Said | str


def rule(needles: str, pattern: str, say: Said | str, *, any_case: bool = False) -> Rule:
    """A rule from the text of its pattern."""
    return Rule(needles, re.compile(pattern, re.IGNORECASE if any_case else 0), say)


MARK_RULES: Final = (
    rule("–", r"(?<=\w)–(?=\w)", "-"),
    rule("-–", r"(?<=\s)(?:–|-{1,3})(?=\s)|(?<=\w)-{2,3}(?=\w)", "—"),
    rule("-", r"(?<![\w-])-+(?=\w)|(?<=\w)-+(?![\w-])", " "),
    rule("/", r"/{2,}", "/"),
)
"""Dashes and slashes that are left when numbers, ranges and addresses have taken theirs."""


def apply(text: str, rules: Iterable[Rule]) -> str:
    """The text after all rules, one after the other."""
    for each in rules:
        if not each.needles or any(needle in text for needle in each.needles):
            text = each.pattern.sub(each.say, text)
    return text


def straighten(text: str) -> str:
    """One sign for each of the many quotes, hyphens, minus signs and spaces."""
    return text.translate(_QUOTES)


def tidy(text: str) -> str:
    """Single spaces, none before a mark, no comma twice."""
    text = _STRAY.sub("", _SPACES.sub(" ", text))
    text = _DOUBLED.sub(",", text)
    return _EDGE.sub("\n", text).strip()


def either(words: Iterable[str]) -> str:
    """A pattern for any of the words, the longest first."""
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def symbols(words: Mapping[str, str]) -> Rule:
    """Each symbol by its name, with spaces around; an empty name leaves a space."""
    return rule("", f"[{re.escape(''.join(words))}]", lambda found: f" {words[found[0]]} ")
