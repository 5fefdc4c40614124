"""Number words of a language, and how numbers are written in it.

Every pattern here is linear and bounded: a run of digits that is longer than a number can be is read digit by digit.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from num2words import num2words

MAX_DIGITS = 18
"""Longer runs are no amounts but codes."""

GROUP = 3
"""Digits read in one breath."""

BREATH = 4
"""Digits of a code read in one breath where a digit is one syllable."""

SOLID = 8
"""A code of up to this many of them is not parted."""

LONG_RUN = re.compile(rf"(?<!\d)\d{{{MAX_DIGITS + 1},}}+")

POINT_NUMBER: Final = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
"""1,234.56"""

COMMA_NUMBER: Final = (
    r"(?:\d{1,3}(?:\.\d{3})+(?!\d)(?:,\d+)?|\d{1,3}(?:[\u00a0\u202f ]\d{3})+(?!\d)(?:,\d+)?"
    r"|\d{1,3}(?:,\d{3})+\.\d+|\d+(?:[.,]\d+)?)"
)
"""1.234,56, 1 234,56 and, for the sake of guests, 1,234.56"""

_ENGLISH_SCALES: Final = ("", " thousand", " million", " billion", " trillion", " quadrillion")
_ROMAN_DIGITS: Final = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_ROMAN = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")


@dataclass(frozen=True, slots=True)
class Noun:
    """What can be counted, with its plural and the gender that the number takes from it."""

    one: str
    many: str
    is_feminine: bool = False


def _unchanged(words: str, _is_feminine: bool) -> str:
    return words


@dataclass(frozen=True, slots=True)
class Numerals:
    """How a language writes and says numbers.

    language: as num2words knows it. marks: the names of the decimal marks "." and ",".
    decimal_comma: whether "," is the language's own decimal mark.
    agree: turns number words into the form that stands before a noun, given whether the noun is feminine.
    """

    language: str
    marks: Mapping[str, str]
    decimal_comma: bool = True
    agree: Callable[[str, bool], str] = _unchanged

    @property
    def pattern(self) -> str:
        """A number without its sign, as a pattern without groups."""
        return COMMA_NUMBER if self.decimal_comma else POINT_NUMBER

    def cardinal(self, number: int) -> str:
        """One, two, three."""
        return _english(number) if self.language == "en" else _cardinal(self.language, number)

    def ordinal(self, number: int) -> str:
        """First, second, third."""
        return _ordinal(self.language, number)

    def digits(self, run: str) -> str:
        """Digit by digit, with a breath after every third; a last one is not left alone."""
        names = [self.cardinal(int(digit)) for digit in run]
        starts = list(range(0, max(1, len(names) - 1), GROUP))
        return ", ".join(
            " ".join(names[start:end]) for start, end in zip(starts, [*starts[1:], len(names)], strict=True)
        )

    def code(self, run: str) -> str:
        """A run of digits in a name or code: a number while it is short, then digit by digit."""
        return self.cardinal(int(run)) if len(run) < GROUP and run[0] != "0" else self.digits(run)

    def parts(self, written: str) -> tuple[str, str, str]:
        """Whole digits, decimal mark and decimals of a written number; the latter two empty for an integer."""
        written = re.sub(r"[\s']", "", written)
        marks = [char for char in written if char in ".,"]
        if not marks:
            return written, "", ""
        mark = marks[-1]
        whole, _, decimals = written.rpartition(mark)
        groups = mark == ("." if self.decimal_comma else ",") and len(decimals) == GROUP and len(whole) <= GROUP
        if marks.count(mark) > 1 or (groups and len(marks) == 1):
            return re.sub("[.,]", "", written), "", ""
        return re.sub("[.,]", "", whole), mark, decimals

    def number(self, written: str) -> str:
        """Words of a written number; what cannot be an amount is read digit by digit."""
        whole, mark, decimals = self.parts(written)
        if len(whole) > MAX_DIGITS or (len(whole) > 1 and whole[0] == "0"):
            said = self.digits(whole)
        else:
            said = self.cardinal(int(whole or 0))
        return f"{said} {self.marks[mark]} {self._decimals(decimals)}" if mark else said

    def _decimals(self, decimals: str) -> str:
        if self.decimal_comma and len(decimals) < GROUP and decimals[0] != "0":
            return self.cardinal(int(decimals))
        return " ".join(self.cardinal(int(digit)) for digit in decimals)

    def count(self, written: str, noun: Noun) -> str:
        """A number and what it counts: the noun's own plural, the number's own gender."""
        whole, mark, _ = self.parts(written)
        said = self.number(written)
        if not mark:
            said = self.agree(said, noun.is_feminine)
        is_one = not mark and whole.lstrip("0") == "1"
        return f"{said} {noun.one if is_one else noun.many}"


@lru_cache(maxsize=4096)
def _cardinal(language: str, number: int) -> str:
    return str(num2words(number, lang=language)).replace(",", "")


@lru_cache(maxsize=1024)
def _ordinal(language: str, number: int) -> str:
    return str(num2words(number, lang=language, to="ordinal")).replace(" and ", " ").replace(",", "")


@lru_cache(maxsize=1024)
def _below_thousand(number: int) -> str:
    return str(num2words(number)).replace(" and ", " ")


def _english(number: int) -> str:
    """Put together from groups of three: the library takes a tenth of a millisecond for every new number."""
    groups: list[str] = []
    rest = number
    for scale in _ENGLISH_SCALES:
        rest, group = divmod(rest, 1000)
        if group:
            groups.append(_below_thousand(group) + scale)
    return " ".join(reversed(groups)) or "zero"


def in_breaths(run: str) -> list[str]:
    """The digits of a code in the groups that Chinese and Japanese read them in; no digit is left alone at the end."""
    return [run] if len(run) <= SOLID else re.findall(rf".{{2,{BREATH}}}(?=.{{2}}|$)|.+", run)


def full_year(written: str) -> int:
    """A year of two digits lies between 1951 and 2050."""
    if len(written) > 2:
        return int(written)
    return int(written) + (1900 if int(written) > 50 else 2000)


def roman(numeral: str) -> int:
    """The value of a Roman numeral in capitals, 0 for what is none."""
    if not numeral or not _ROMAN.fullmatch(numeral):
        return 0
    values = [_ROMAN_DIGITS[char] for char in numeral]
    followed = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < following else value for value, following in followed)
