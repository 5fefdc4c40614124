"""Money, measures, percentages, ranges and bare numbers: the rules that differ between languages in words alone."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from text.normalize.numbers import Noun, Numerals
from text.normalize.rules import DIGITS, Rule, either, rule, symbols

_DASH: Final = r"(?:-| ?[–—] ?)"
_SIGNS: Final = "€$£¥₹"

SILENT: Final = dict.fromkeys("_\\^*#{}[]`·®™", "")
"""Signs that no language says, where no other rule has taken them."""

ABROAD: Final = r"(?<![\w+])\+\d{1,4}(?:[ .-]?\(\d{1,4}\))?(?:[ .-]?\d{1,4}){2,6}(?!\w)"
"""A phone number with its country's code."""

DASHED: Final = r"(?<![\w.-])\d{1,18}(?:-\d{1,18}){2,8}(?![\w-])"
"""Three groups of digits and more, which are a number of something rather than an amount."""


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency and its hundredth; None for one that has none in daily use."""

    unit: Noun
    cent: Noun | None = None


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words of one language for what is written in digits and signs.

    units: sign to noun; a sign in `glued` counts only directly behind its number ("5in" but not "5 in").
    currencies: by sign and by ISO 4217 code. scales: words as people write them behind a number ("million").
    suffixes: letters directly behind a number that multiply it ("k"). of: between a million and its noun.
    thousands: those of `scales` that stand before their noun without `of`.
    over: between the parts of a fraction that has no name in `fractions`, which are by denominator.
    rates: words before which a slash is said `per`.
    symbols: signs that are left at the end, by name.
    """

    numerals: Numerals
    units: Mapping[str, Noun]
    currencies: Mapping[str, Currency]
    scales: tuple[str, ...]
    suffixes: Mapping[str, Noun]
    percent: str
    to: str
    minus: str
    per: str
    both: str
    symbols: Mapping[str, str]
    of: str = ""
    over: str = ""
    rates: tuple[str, ...] = ()
    fractions: Mapping[int, Noun] = field(default_factory=dict)
    thousands: frozenset[str] = field(default_factory=frozenset)
    glued: frozenset[str] = field(default_factory=frozenset)


def sign_rule(lexicon: Lexicon) -> Rule:
    """A minus before a number, in words; the number stays."""
    return rule("-", rf"(?<![\w)\]%°.,:/-])-(?=[{_SIGNS}]?\d)", f"{lexicon.minus} ")


def money_rules(lexicon: Lexicon) -> list[Rule]:
    """$5.3 billion, 12,50 €, 5 USD, $10-20."""
    number, signs = lexicon.numerals.pattern, either(lexicon.currencies)
    scale = rf"(?: ?({either(lexicon.scales)})(?!\w)|({either(lexicon.suffixes)})(?!\w))?"
    before = rf"(?<!\w)({signs}) ?({number})(?:{_DASH}(?:{signs})?({number}))?{scale}(?!\w)"
    behind = rf"(?<![\w.,])({number})(?:{_DASH}({number}))?{scale} ?({signs})(?!\w)"
    return [
        rule("", before, lambda found: _money(lexicon, found[1], (found[2], found[3], found[4], found[5]))),
        rule("", behind, lambda found: _money(lexicon, found[5], (found[1], found[2], found[3], found[4]))),
    ]


def _money(lexicon: Lexicon, sign: str, amount: tuple[str | None, str | None, str | None, str | None]) -> str:
    low, high, scale, suffix = amount
    currency = lexicon.currencies[sign]
    start = f"{lexicon.numerals.number(low or '0')} {lexicon.to} " if high else ""
    last = high or low or "0"
    if scale or suffix:
        return start + _scaled(lexicon, last, scale or "", suffix or "", currency.unit)
    return start + _exact(lexicon, last, currency)


def _scaled(lexicon: Lexicon, number: str, scale: str, suffix: str, noun: Noun) -> str:
    multiplier = lexicon.suffixes[suffix] if suffix else Noun(scale, scale)
    is_round = suffix not in {"k", "K"} and scale not in lexicon.thousands
    of = f" {lexicon.of}" if lexicon.of and is_round else ""
    return f"{lexicon.numerals.count(number, multiplier)}{of} {noun.many}"


def _exact(lexicon: Lexicon, number: str, currency: Currency) -> str:
    numerals = lexicon.numerals
    whole, _, decimals = numerals.parts(number)
    if len(decimals) != 2 or not currency.cent:
        return _counted(lexicon, number, currency.unit)
    if not int(decimals):
        return _counted(lexicon, whole, currency.unit)
    cents = numerals.count(str(int(decimals)), currency.cent)
    return f"{_counted(lexicon, whole, currency.unit)} {lexicon.both} {cents}" if int(whole or 0) else cents


def _counted(lexicon: Lexicon, number: str, noun: Noun) -> str:
    whole, mark, _ = lexicon.numerals.parts(number)
    said = lexicon.numerals.count(number, noun)
    if lexicon.of and not mark and whole.endswith("000000") and whole.strip("0"):
        return f"{said.removesuffix(noun.many)}{lexicon.of} {noun.many}"
    return said


def unit_rules(lexicon: Lexicon) -> list[Rule]:
    """25°C, 40–60 °C, 100 km/h, 50 %, 5k; what is left of "/month" behind them."""
    number = lexicon.numerals.pattern
    units = either(lexicon.units)
    loose = either(unit for unit in lexicon.units if unit not in lexicon.glued)
    span = rf"(?<![\w.,/])(?:({number}) ?(?:{units})?(?:{_DASH}| {lexicon.to} ))?({number})"
    return [
        rule(
            "%",
            rf"(?<![\w.,])(?:({number}) ?%?{_DASH})?({number}) ?%",
            lambda found: _spanned(lexicon, found[1], f"{lexicon.numerals.number(found[2])} {lexicon.percent}"),
        ),
        rule(
            DIGITS,
            rf"{span}(?: ?({loose})|({units}))(?![\w²³])",
            lambda found: _spanned(
                lexicon, found[1], lexicon.numerals.count(found[2], lexicon.units[found[3] or found[4]])
            ),
        ),
        rule(
            DIGITS,
            rf"{span}({either(lexicon.suffixes.keys() - {'B'})})(?!\w)",
            lambda found: _spanned(lexicon, found[1], lexicon.numerals.count(found[2], lexicon.suffixes[found[3]])),
        ),
    ]


def _spanned(lexicon: Lexicon, low: str | None, rest: str) -> str:
    return f"{lexicon.numerals.number(low)} {lexicon.to} {rest}" if low else rest


def digit_groups(lexicon: Lexicon, written: str) -> str:
    """A phone number and the like: group by group, digit by digit."""
    groups = ", ".join(lexicon.numerals.digits(group) for group in re.findall(r"\d+", written))
    return f"{lexicon.symbols['+']} {groups}" if written.startswith("+") else groups


def range_rule(lexicon: Lexicon) -> Rule:
    """10-20, 1990–1999, 3 – 5."""
    number = lexicon.numerals.pattern
    return rule(
        "-–",
        rf"(?<![\w.,/-])({number})(?:-| ?– ?)({number})(?![\w/-])",
        lambda found: f"{lexicon.numerals.number(found[1])} {lexicon.to} {lexicon.numerals.number(found[2])}",
    )


def number_rules(lexicon: Lexicon) -> list[Rule]:
    """Bare numbers, then letters and digits that are mixed in one word, then every sign that is left."""
    numerals = lexicon.numerals
    return [
        rule(DIGITS, rf"(?<![\w.,])({numerals.pattern})(?!\w)", lambda found: numerals.number(found[1])),
        rule(DIGITS, r"(?<=[^\W\d_])-(?=\d)|(?<=\d)-(?=[^\W\d_])", " "),
        Rule("", re.compile(r"\d+"), lambda found: f" {numerals.code(found[0][:5000])} "),
        symbols({**SILENT, **lexicon.symbols}),
    ]
