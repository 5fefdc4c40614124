"""English dates, years and times of day."""

import re
from typing import Final

from text.normalize.en_words import LEXICON, MONTHS
from text.normalize.numbers import full_year
from text.normalize.rules import DIGITS, either, rule

_NUMERALS: Final = LEXICON.numerals
_SHORT_MONTHS: Final = {month[:3]: month for month in MONTHS} | {"Sept": "September"}
_MONTH: Final = rf"(?:{either(MONTHS)}|(?:{either(_SHORT_MONTHS)})\.?)"
_BEFORE_YEAR: Final = re.compile(
    r"\b(?:q[1-4]|in|since|by|from|until|till|of|year|circa|between|after|before|during|late|early|mid|spring|summer|autumn|fall"
    rf"|winter|{'|'.join(MONTHS)}) $",
    re.IGNORECASE,
)
_NO_PLURAL: Final = "was|is|has|as|this|his|its|us|thus|perhaps|across|towards|versus|plus|always|yes"
_COUNTED: Final = "people|men|women|children|thousand|million|billion|trillion|percent"
FIRST_YEAR, LAST_YEAR = 1100, 2100
"""Numbers of four digits in between are read as years where nothing speaks against it."""


def year(number: int) -> str:
    """Nineteen ninety-nine, nineteen oh five, two thousand one."""
    century, rest = divmod(number, 100)
    if not FIRST_YEAR <= number < LAST_YEAR or (century == 20 and rest < 10):
        return _NUMERALS.cardinal(number)
    if not rest:
        return f"{_NUMERALS.cardinal(century)} hundred"
    return f"{_NUMERALS.cardinal(century)} {'oh ' if rest < 10 else ''}{_NUMERALS.cardinal(rest)}"


def _date(month: int, day: int, written_year: str | None) -> str:
    said = f"{MONTHS[month - 1]} {_NUMERALS.ordinal(day)}"
    return f"{said}, {year(full_year(written_year))}" if written_year else said


def _iso(found: re.Match[str]) -> str:
    month, day = int(found[2]), int(found[3])
    if not (0 < month < 13 and 0 < day < 32):
        return found[0]
    return _date(month, day, found[1]) + (", " if found[4] else "")


def _slashed(found: re.Match[str]) -> str:
    """American order, unless only the other one is a date."""
    month, day = int(found[1]), int(found[3])
    if month > 12:
        month, day = day, month
    if not (0 < month < 13 and 0 < day < 32):
        return found[0]
    return _date(month, day, found[4])


def _month(written: str) -> str:
    name = written.rstrip(".")
    return _SHORT_MONTHS.get(name, name)


def _named(found: re.Match[str]) -> str:
    name, day, until, written_year = found[1], int(found[2]), found[3], found[4]
    if not (0 < day < 32 and 0 < int(until or 1) < 32):
        return found[0]
    said = f"{_month(name)} {_NUMERALS.ordinal(day)}" + (f" to {_NUMERALS.ordinal(int(until))}" if until else "")
    return f"{said}, {year(int(written_year))}" if written_year else said


def _day_first(found: re.Match[str]) -> str:
    article, day, name, written_year = found[1] or "", int(found[2]), found[3], found[4]
    if not 0 < day < 32:
        return found[0]
    said = f"{article or 'the '}{_NUMERALS.ordinal(day)} of {_month(name)}"
    return f"{said}, {year(int(written_year))}" if written_year else said


def _time(found: re.Match[str]) -> str:
    hour, minute, second, half, until = int(found[1]), int(found[2]), found[3], found[4], found[5]
    parts = [_NUMERALS.cardinal(hour)]
    if minute:
        parts.append(("oh " if minute < 10 else "") + _NUMERALS.cardinal(minute))
    elif not half and not second:
        parts.append("o'clock" if 0 < hour < 13 else "hundred")
    if second:
        parts.append(f"and {_NUMERALS.cardinal(int(second))} seconds")
    return " ".join(parts) + _half(half) + (" to " if until else "")


def _hour(found: re.Match[str]) -> str:
    start = f"{_NUMERALS.cardinal(int(found[1]))} to " if found[1] else ""
    return start + _NUMERALS.cardinal(int(found[2])) + _half(found[3]) + (" to " if found[4] else "")


def _half(written: str | None) -> str:
    return f" {written[0].upper()}.M." if written else ""


def _decade(found: re.Match[str]) -> str:
    century, decade = found[1], int(found[2])
    tens = "hundreds" if not decade else _NUMERALS.cardinal(decade).removesuffix("y") + "ies" if decade > 10 else "tens"
    if century == "20" and not decade:
        return "two thousands"
    return f"{_NUMERALS.cardinal(int(century))} {tens}" if century else tens


def _years(found: re.Match[str]) -> str:
    first, second = int(found[1]), found[2]
    last = int(second) if len(second) == 4 else first - first % 100 + int(second)
    if not (FIRST_YEAR <= first < LAST_YEAR and FIRST_YEAR <= last < LAST_YEAR):
        return f"{_NUMERALS.cardinal(first)} to {_NUMERALS.cardinal(int(second))}"
    return f"{year(first)} to {year(last if len(second) == 4 else int(second))}"


def _bare_year(found: re.Match[str]) -> str:
    """A year, unless it counts what follows and nothing before it says that it is one."""
    if found[2] and not _BEFORE_YEAR.search(found.string[max(0, found.start() - 12) : found.start()]):
        return found[0]
    return year(int(found[1]))


_HALF: Final = r"([AaPp]\.[Mm]\.?|[AaPp][Mm]\.?)(?!\w)"
_OF_YEAR: Final = r"(?:,? (\d{4})\b(?![:,.]?\d))?"
_TH: Final = "(?:st|nd|rd|th)?"
_UNTIL: Final = r"( ?[-–] ?(?=\d))"

DATE_RULES: Final = [
    rule("-/", r"(?<![\w/-])(\d{4})-(\d{2})-(\d{2})(?!\d|-)(?:(T)(?=\d{2}:))?", _iso),
    rule("/", r"(?<![\w/-])(\d{4})/(\d{1,2})/(\d{1,2})(?![\w/-])()", _iso),
    rule("/-", r"(?<![\w/.-])(\d{1,2})([/-])(\d{1,2})\2(\d{4}|\d{2})(?![\w/-]|\.\d)", _slashed),
    rule(
        DIGITS,
        rf"\b({_MONTH}) (\d{{1,2}}){_TH}(?: ?[-–] ?(\d{{1,2}}){_TH})?\b(?![:.,/-]?\d){_OF_YEAR}",
        _named,
    ),
    rule(
        DIGITS,
        rf"\b(the )?(\d{{1,2}}){_TH} (?:of )?({_MONTH})(?!\w){_OF_YEAR}",
        _day_first,
    ),
]

TIME_RULES: Final = [
    rule(
        ":",
        rf"(?<![\w:.,])([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d)(?:\.\d{{1,6}})?)?(?!\d|:\d)Z?(?: ?{_HALF})?{_UNTIL}?",
        _time,
    ),
    rule("mM", rf"(?<![\w:.,$€£])(?:(\d{{1,2}}) ?[-–] ?)?(1[0-2]|[1-9]) ?{_HALF}{_UNTIL}?", _hour),
]

YEAR_RULES: Final = [
    rule("s", r"(?<![\w.,])1(?:00|(,?000))s(?= of\b)", lambda found: "thousands" if found[1] else "hundreds"),
    rule("s", r"(?<![\w.,])'?(1[1-9]|20)?(\d0)'?s\b", _decade),
    rule("-–", r"(?<![\w.,/$€£-])(\d{4}) ?[-–] ?(\d{4}|\d{2})(?![\w/%°-]|[.,]\d)", _years),
]

BARE_YEAR: Final = rule(
    DIGITS,
    rf"(?<![\w.,/-])(1[1-9]\d\d|20\d\d)(?![\w/-]|[.,]\d)(?=(\s(?!(?:{_NO_PLURAL})\b)(?:[a-z]{{2,30}}s|{_COUNTED})\b)?)",
    _bare_year,
)
