"""What Chinese and Japanese share: numbers in Han, and one way to write them before they are read."""

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from text.normalize.numbers import LONG_RUN, MAX_DIGITS, Numerals
from text.normalize.rules import DIGITS, Rule, rule

NAMES: Final = "零一二三四五六七八九"
NUMBER: Final = rf"\d{{1,{MAX_DIGITS}}}+(?:\.\d{{1,{MAX_DIGITS}}}+)?+"
ALONE: Final = r"(?<![\dA-Za-z./_+-])"
"""Before a number that is no part of a word, an address or another number."""


class HanNumerals(Numerals):
    """Numbers without spaces, with 点 between their parts."""

    __slots__ = ()

    def number(self, written: str) -> str:
        """三点一四; 三点十四点一, for it has versions."""
        whole, *decimals = written.split(".")
        is_code = len(whole) > MAX_DIGITS or (len(whole) > 1 and whole[0] == "0")
        said = self.digits(whole) if is_code else self.cardinal(int(whole))
        return "点".join([said, *map(self.code if len(decimals) > 1 else self.decimals, decimals)])

    def decimals(self, run: str) -> str:
        """What stands behind the point of a number that has one."""
        return self.digits(run)


def plain(powers: Mapping[str, int], number: str, scale: str = "") -> str:
    """Without zeros at the end; a scale in Latin letters, one of `powers` of ten, is multiplied out."""
    if scale in powers:
        number, scale = f"{Decimal(number).scaleb(powers[scale]):f}", ""
    return (number.rstrip("0").rstrip(".") if "." in number else number) + scale


def writing(numerals: HanNumerals) -> tuple[Rule, ...]:
    """One way to write a number: no run too long for one, no commas, no point in front, no fraction in one sign."""
    return (
        rule(".", rf"(?<=\d)\.(?=\d{{{MAX_DIGITS + 1}}})", "点"),
        Rule(DIGITS, LONG_RUN, lambda found: numerals.digits(found[0])),
        rule(",", r"(?<![\d.,])\d{1,3}(?:,\d{3}){1,5}(?![\d,])", lambda found: found[0].replace(",", "")),
        rule(".", r"(?<![\w.])\.(?=\d)", "0."),
        rule("¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞", r"(\d?)([¼-¾⅐-⅞])", _vulgar),
    )


def _vulgar(found: re.Match[str]) -> str:
    return found[1] + " " * bool(found[1]) + unicodedata.normalize("NFKC", found[2]).replace("⁄", "/")
