"""What Spanish, French, Italian and Portuguese share: decimal commas, dates with the day first, the metric system."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from text.normalize import web
from text.normalize.amounts import (
    ABROAD,
    DASHED,
    Lexicon,
    digit_groups,
    money_rules,
    number_rules,
    range_rule,
    sign_rule,
    unit_rules,
)
from text.normalize.numbers import Noun, full_year, roman
from text.normalize.rules import DIGITS, MARK_RULES, Rule, either, rule

_UNITS: Final = (
    "km m cm mm kg g mg l ml h min s ms B kB MB GB TB W kW MW kWh V A Hz kHz MHz GHz km/h m/s m² m³ km² cm² ha °C °F ° "
    "KB L mL hl t x"
).split()


@dataclass(frozen=True, slots=True)
class Calendar:
    """How dates and times are said.

    months: twelve of them, in lower case. first: what the first of a month is called.
    date: from day, month and year in words; the year may be empty. time: from hour, minute and "am", "pm" or "".
    """

    months: tuple[str, ...]
    first: str
    date: Callable[[str, str, str], str]
    time: Callable[[int, int, str], str]


def units(words: str, feminine: frozenset[str] = frozenset()) -> dict[str, Noun]:
    """The metric units by sign, from "one|many" in the order of the signs; "-" leaves one out."""
    found: dict[str, Noun] = {}
    for sign, entry in zip(_UNITS, words.split(","), strict=True):
        one, _, many = entry.strip().partition("|")
        if one != "-":
            found[sign] = Noun(one, many or one + "s", one.split()[0] in feminine)
    return found


def rules(
    lexicon: Lexicon,
    calendar: Calendar,
    words: web.Words,
    *,
    before: tuple[Rule, ...] = (),
    behind: tuple[Rule, ...] = (),
) -> list[Rule]:
    """All rules of such a language. before, behind: its own ones, ahead of numbers and after all but bare numbers."""
    return [
        web.long_runs(lexicon.numerals),
        *before,
        *web.rules(words, lexicon.numerals),
        *_date_rules(lexicon, calendar),
        *_code_rules(lexicon),
        *_time_rules(calendar),
        sign_rule(lexicon),
        *money_rules(lexicon),
        *unit_rules(lexicon),
        _fraction_rule(lexicon),
        *_math_rules(lexicon),
        range_rule(lexicon),
        *behind,
        *MARK_RULES,
        *number_rules(lexicon),
    ]


def linked_date(day: str, month: str, year: str) -> str:
    """Tres de abril de dos mil."""
    return f"{day} de {month} de {year}" if year else f"{day} de {month}"


def joined_date(day: str, month: str, year: str) -> str:
    """Trois avril deux mille."""
    return f"{day} {month} {year}".strip()


def _date_rules(lexicon: Lexicon, calendar: Calendar) -> list[Rule]:
    cardinal = lexicon.numerals.cardinal

    def said(day: int, month: int, year: str) -> str:
        full = full_year(year) if year else 0
        first = calendar.first if day == 1 and calendar.first else cardinal(day)
        return calendar.date(first, calendar.months[month - 1], cardinal(full) if full else "")

    def numeric(found: re.Match[str], day: str, month: str, year: str) -> str:
        if not 0 < int(month) < 13:
            day, month = month, day
        is_date = 0 < int(month) < 13 and 0 < int(day) < 32
        return said(int(day), int(month), year) if is_date else found[0]

    def named(found: re.Match[str]) -> str:
        is_date = 0 < int(found[1]) < 32
        return said(int(found[1]), calendar.months.index(found[2].lower()) + 1, found[3] or "") if is_date else found[0]

    month_names = "|".join(calendar.months)
    return [
        rule(
            "-",
            r"(?<![\w/-])(\d{4})-(\d{2})-(\d{2})(?![\d-])(?:T(?=\d{2}:))?",
            lambda found: numeric(found, found[3], found[2], found[1]) + (", " if found[0].endswith("T") else ""),
        ),
        rule(
            "/-",
            r"(?<![\w/.-])(\d{1,2})([/-])(\d{1,2})\2(\d{4}|\d{2})(?![\w/-])",
            lambda found: numeric(found, found[1], found[3], found[4]),
        ),
        rule(
            DIGITS,
            rf"(?<![\w.,/])(\d{{1,2}})(?:º|°|er)?(?: de | d[eo] | )({month_names})\b(?:(?: de | del | )(\d{{4}})\b)?",
            named,
            any_case=True,
        ),
    ]


def _code_rules(lexicon: Lexicon) -> list[Rule]:
    numerals = lexicon.numerals

    def phone(found: re.Match[str]) -> str:
        return digit_groups(lexicon, found[0])

    return [
        rule("+", ABROAD, phone),
        rule(" ", r"(?<![\w.,])[6789]\d{2}(?: \d{3}){2}(?! ?\d|\w)(?! (?:€|\$|%))", phone),
        rule(" ", r"(?<![\w.,])0\d(?: \d{2}){4}(?! ?\d|\w)", phone),
        rule("-", DASHED, phone),
        rule("-", r"\b([A-Z]{1,6})-(\d{1,18})(?!\w)", lambda found: f"{found[1]} {numerals.code(found[2])}"),
    ]


def _time_rules(calendar: Calendar) -> list[Rule]:
    def time(found: re.Match[str]) -> str:
        half = re.sub(r"[^apm]", "", (found[3] or "").lower())
        return calendar.time(int(found[1]), int(found[2]), half)

    def hour(found: re.Match[str]) -> str:
        return calendar.time(int(found[1]), 0, re.sub(r"[^apm]", "", found[2].lower()))

    half = r"([AaPp]\. ?[Mm]\b\.?|[AaPp][Mm]\b)"
    return [
        rule(":", rf"(?<![\w:.,])([01]?\d|2[0-4]):([0-5]\d)(?::[0-5]\d)?(?!\w*\d|:\d)(?: ?{half}| ?h\b)?", time),
        rule("h", r"(?<![\w:.,])([01]?\d|2[0-4]) ?h ?([0-5]\d)\b()", time),
        rule("mM", rf"(?<![\w:.,])(1[0-2]|[1-9]) ?{half}", hour),
    ]


def _fraction_rule(lexicon: Lexicon) -> Rule:
    numerals = lexicon.numerals

    def fraction(found: re.Match[str]) -> str:
        above, below = int(found[1]), int(found[2])
        name = lexicon.fractions.get(below)
        if not name or above >= below:
            return f"{numerals.cardinal(above)} {lexicon.over} {numerals.cardinal(below)}"
        return numerals.count(found[1], name)

    return rule("/", r"(?<![\w/.,])(\d{1,3})/(\d{1,4})(?![\w/])", fraction)


def _math_rules(lexicon: Lexicon) -> list[Rule]:
    times, minus = lexicon.symbols["×"], lexicon.minus
    return [
        rule("×*xX", r"(?<=\d) ?[x×X*] ?(?=\d)|(?<=\w) [×*] (?=\w)", f" {times} "),
        rule("-", r"(?<=\d) - (?=\d)|(?<=[=+] )-(?=\w)", f" {minus} "),
        rule("-", r"(?<=[=+(])-(?=\d)", f"{minus} "),
        rule("=", r"={2,}", "="),
        rule("/", rf"/(?=(?:{either(lexicon.rates)})\b)", f" {lexicon.per} "),
    ]


def expand(abbreviations: Mapping[str, str]) -> Rule:
    """Abbreviations without their last dot, which stays where it ends the sentence too."""

    def said(found: re.Match[str]) -> str:
        is_end = re.match(r"\s*$|\s*\n", found.string[found.end() : found.end() + 4])
        return abbreviations[found[1]] + ("." if is_end else "")

    return rule(".", rf"(?<![\w.])({either(abbreviations)})\.(?!\w)", said)


def ordinals(pattern: str, ordinal: Callable[[int], str]) -> Rule:
    """Roman numerals, the pattern's one group, that are said as ordinals."""

    def said(found: re.Match[str]) -> str:
        value = roman(found[1])
        return ordinal(value) if value else found[0]

    return rule("IVX", pattern, said)


def centuries(nouns: str, say: Callable[[int], str], *, rulers: str, ordinal: Callable[[int], str]) -> list[Rule]:
    """Roman numerals behind "century" and the like, behind rulers' names, and alone."""

    def numbered(found: re.Match[str], name: Callable[[int], str]) -> str:
        value = roman(found[2])
        return f"{found[1]}{name(value)}" if value else found[0]

    return [
        rule("IVX", rf"\b((?i:{nouns}) )([IVXLC]{{1,8}})\b", lambda found: numbered(found, say)),
        rule("IVX", rf"\b((?:{rulers}) )([IVX]{{1,6}})\b", lambda found: numbered(found, ordinal)),
        rule("IVX", r"(?<![\w.-])()([IVX]{2,8})(?![\w'])", lambda found: numbered(found, say)),
    ]
