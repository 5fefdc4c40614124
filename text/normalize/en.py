"""English, as an American reads it aloud."""

import re
from typing import Final

from text.normalize import web
from text.normalize.amounts import (
    ABROAD,
    DASHED,
    digit_groups,
    money_rules,
    number_rules,
    range_rule,
    sign_rule,
    unit_rules,
)
from text.normalize.en_dates import BARE_YEAR, DATE_RULES, TIME_RULES, YEAR_RULES
from text.normalize.en_words import (
    ABBREVIATIONS,
    CHAPTERS,
    COUNTED,
    KNOWN_CAPITALS,
    LEXICON,
    RULERS,
    SOFTWARE,
    WEB,
)
from text.normalize.numbers import roman
from text.normalize.rules import DIGITS, MARK_RULES, Rule, apply, either, rule, straighten, tidy

_NUMERALS: Final = LEXICON.numerals
_MAX_DENOMINATOR = 100
_VULGAR: Final = {
    "½": "1/2",
    "⅓": "1/3",
    "⅔": "2/3",
    "¼": "1/4",
    "¾": "3/4",
    "⅛": "1/8",
    "⅜": "3/8",
    "⅝": "5/8",
    "⅞": "7/8",
}
_SCREAM_LETTERS = 8
"""Capitals that make a shout rather than a row of initials."""

_SHOUT = re.compile(r"\b[A-Z][A-Z']*(?:[,;:]?[ -]+(?:[A-Z][A-Z']*)\b)+")
_LAST_WORD = re.compile(r"([A-Za-z]+) $")
_INITIALS = re.compile(r"[^AEIOUY]+")


def normalize_en(text: str) -> str:
    """English prose without digits, signs and abbreviations."""
    return tidy(_calm(apply(straighten(text), _RULES)))


def _fraction(found: re.Match[str]) -> str:
    whole, above, below = found[1], int(found[2]), int(found[3])
    if above == below and not whole:
        return f"{_NUMERALS.cardinal(above)} {_NUMERALS.cardinal(below)}"
    if not below or below > _MAX_DENOMINATOR or above >= below:
        return f"{whole or ''}{_NUMERALS.cardinal(above)} over {_NUMERALS.cardinal(below)}"
    if below in {10, 100} and above > 1 and not whole:
        return f"{_NUMERALS.cardinal(above)} out of {_NUMERALS.cardinal(below)}"
    part = {2: "half", 4: "quarter"}.get(below) or _NUMERALS.ordinal(below)
    said = f"{'a' if whole and above == 1 else _NUMERALS.cardinal(above)} {part}{'s' if above > 1 else ''}"
    return f"{_NUMERALS.cardinal(int(whole))} and {said}" if whole else said


def _ratio(found: re.Match[str]) -> str:
    """Two digits behind the colon are minutes or seconds."""
    return f"{found[1]}{' ' if len(found[2]) == 2 else ' to '}{found[2]}"


def _phone(found: re.Match[str]) -> str:
    return digit_groups(LEXICON, found[0])


def _ordinal(found: re.Match[str]) -> str:
    return _NUMERALS.ordinal(int(found[1].replace(",", "")))


def _digit(char: str) -> str:
    return _NUMERALS.cardinal(int(char))


def _version(found: re.Match[str]) -> str:
    return f"{found[1]} " + " point ".join(_NUMERALS.code(part) for part in found[2].split("."))


def _feet(found: re.Match[str]) -> str:
    return f"{_NUMERALS.cardinal(int(found[1]))} foot {_NUMERALS.cardinal(int(found[2]))}"


def _numeral(found: re.Match[str]) -> str:
    """A Roman numeral by the word before it; alone only where it can be nothing else."""
    before = found.string[max(0, found.start() - 16) : found.start()]
    word = _LAST_WORD.search(before)
    value = roman(found[1])
    if not value or (before and (before[-1].isalnum() or before[-1] in "_.-'")):
        return found[0]
    if word and word[1] in RULERS and found[1] not in {"L", "C", "I"}:
        return f"the {_NUMERALS.ordinal(value)}{found[2]}"
    if word and word[1].lower() in CHAPTERS and (len(found[1]) > 1 or found[1] in "IVX"):
        return _NUMERALS.cardinal(value) + found[2]
    if len(found[1]) < 2 or set(found[1]) - set("IVX"):
        return found[0]
    return f"{_NUMERALS.ordinal(value) if found[2] else _NUMERALS.cardinal(value)}{found[2]}"


def _abbreviation(found: re.Match[str]) -> str:
    """The dot stays where it also ends the sentence."""
    end = "." if re.match(r"\s*$|\s+[A-Z]", found.string[found.end() : found.end() + 4]) else ""
    is_ending = found[1] in {"etc", "al", "Jr", "Sr", "Inc", "Ltd", "Corp", "Ave", "Blvd", "Rd", "Co", "Bros"}
    return ABBREVIATIONS[found[1]] + (end if is_ending else "")


def _calm(text: str) -> str:
    """Words that are shouted become words; what is short and known stays initials."""
    return _SHOUT.sub(_calmed, text)


def _calmed(found: re.Match[str]) -> str:
    words = re.findall(r"[A-Z']+", found[0])
    shouted = [word for word in words if not _is_initials(word)]
    if sum(map(len, shouted)) < _SCREAM_LETTERS or len(shouted) * 2 < len(words):
        return found[0]
    said = re.sub(r"[A-Z']+", lambda word: word[0] if _is_initials(word[0]) else word[0].lower(), found[0])
    return said[0].upper() + said[1:]


def _is_initials(word: str) -> bool:
    return (
        word in KNOWN_CAPITALS
        or word == "I"
        or word.startswith("I'")
        or (len(word) > 1 and bool(_INITIALS.fullmatch(word)))
    )


_TITLES: Final = [
    rule("D", r"\bDr\.(?=\s+[A-Z])", "Doctor"),
    rule("M", r"\bMs\.(?=\s+[A-Z])", "Miz"),
    rule("S", r"\b([A-Z][a-z]{1,30}) St\.(?=[,;]|\s[a-z])", r"\1 Street"),
    rule("S", r"\b([A-Z][a-z]{1,30}) St(?=,|\.\s*(?:$|\n))", r"\1 Street"),
    rule("S", r"\bSt\.(?=\s+[A-Z])", "Saint"),
    rule("C", r"(?<=[a-z&] )Co\.", "Company"),
]

_PHRASES: Final = [
    rule("~≈", r"(?<![\w~])[~≈] ?(?=[$€£]?\d)", "about "),
    rule("B", r"(?<=\d)B(?= (?:param|model|token|user|people|view|row))", " billion"),
    rule("+-=*/^", r"(?<=\d)([xyz])(?= ?[-+=*/^])", r" \1"),
    rule(".", r"\bNo\. of\b", "Number of"),
    rule("/", r"\bHTTP/(?=\d)", "HTTP "),
    rule("/", r"\b([A-Z]{2,4})/([A-Z]{2,4})\b(?!/)", r"\1 \2"),
    rule("+", r"\bC\+\+", "C plus plus"),
    rule("#", r"\b([CF])#(?!\w)", r"\1 sharp"),
    rule(".", r"(?<!\w)\.NET\b", "dot net"),
    rule("K", r"\b([48])K\b(?! \w+s\b)", r"\1 K"),
    rule("/", r"\b24/7\b", "twenty-four seven"),
    rule("/", r"\b9/11\b", "nine eleven"),
    rule("/", r"\b([Aa])nd/or\b", r"\1nd or"),
    rule("/", r"\b([Hh]e|[Ss]?he|[Hh]is|[Hh]im)/(s?he|hers?|his)\b", r"\1 or \2"),
    rule("/", r"(?<!\w)w/o\b", "without"),
    rule("/", r"(?<!\w)w/(?=\s)", "with"),
    rule("=-", r"(?<!\w)(?:->|=>)(?!\w)|(?<=\w)(?:->|=>)(?=\w)", " to "),
    rule("<", r"<=|=<", "≤"),
    rule(">", r">=", "≥"),
    rule("!", r"!=", "≠"),
    rule("=", r"={2,}", "="),
    rule("".join(_VULGAR), rf"(\d?) ?([{''.join(_VULGAR)}])", lambda found: f"{found[1]} {_VULGAR[found[2]]}"),
]

_CODES: Final = [
    rule("x", r"(?<!\w)0x([\dA-Fa-f]{1,16})(?!\w)", lambda found: "zero x " + " ".join(found[1])),
    rule("+", ABROAD, _phone),
    rule("(", r"(?<!\w)\(\d{3}\) ?\d{3}[ .-]\d{4}(?!\w)", _phone),
    rule("-.", r"(?<![\w.-])(?:1[.-])?\d{3}([.-])\d{3}\1\d{4}(?![\w-])", _phone),
    rule("-", r"(?<![\w.,-])\d{3}-\d{4}(?![\w-])", _phone),
    rule("-", DASHED, _phone),
    rule(
        DIGITS,
        rf"(?<!\w)({either(SOFTWARE)})[ -](\d{{1,4}}(?:\.\d{{1,4}}){{1,3}})(?![\w.]*\d)",
        _version,
    ),
]

_NUMBERS: Final = [
    rule("'\"", r"(?<![\w'])(\d{1,2})' ?(\d{1,2})(?:\"|'')", _feet),
    rule("/", r"(?<![\w/.,])(?:(\d{1,3})[ -])?(\d{1,3})/(\d{1,4})(?![\w/])", _fraction),
    rule(DIGITS, r"(?<![\w.,])(\d{1,3}(?:,\d{3})+|\d{1,18})(?:st|nd|rd|th)\b", _ordinal),
    rule(".", rf"\b({either(COUNTED)})\. ?(?=\d|[IVX]+\b)", lambda found: COUNTED[found[1]] + " "),
    rule(".", r"(?<![\w.])\.(\d{1,18})(?!\w)", lambda found: f"point {' '.join(map(_digit, found[1]))}"),
    rule("xX×", r"(?<!\w)(\d{3,5}) ?[xX×] ?(\d{3,5})(?!\w)", r"\1 by \2"),
    rule("×*xX", r"(?<=\d) ?[x×X*] ?(?=\d)|(?<=\w) [×*] (?=\w)|(?<=\b[a-zA-Z])\*(?=[a-zA-Z]\b)", " times "),
    rule("^²", r"(?<=\w)(?:\^2|²)(?!\w)", " squared"),
    rule("^³", r"(?<=\w)(?:\^3|³)(?!\w)", " cubed"),
    rule("^", r"(?<=\w)\^(?=\w)", " to the power of "),
    rule("-", r"(?<=\d) - (?=\d)|(?:(?<=squared)|(?<=cubed)|(?<=\b[a-z])) - (?=\d)|(?<=[=+] )-(?=\w)", " minus "),
    rule("-", r"(?<=[=+(])-(?=\d)", "minus "),
    rule("-", r"(?<=\b[a-z])-(?=\d+\b)|(?<=\b\d)-(?=[a-z]\b)", " minus "),
    rule(":", r"(?<![\w:])(\d{1,4}):(\d{1,4})(?![\w:])", _ratio),
    rule("/", r"/(?=(?:second|minute|hour|day|week|month|year|night|person|unit|user|kg)s?\b)", " per "),
    rule("h", r"(?<=per )kg\b", "kilogram"),
]

_ROMANS: Final = [rule("IVXLC", r"([IVXLC]{1,8})(?!['.]?\w)((?: [Cc]entur(?:y|ies)\b)?)", _numeral)]

_ABBREVIATED: Final = [
    *_TITLES,
    rule(".", r"\bet al\.", "and others"),
    rule(".", rf"(?<![\w.])({either(ABBREVIATIONS)})\.(?!\w)", _abbreviation),
]

_NAMES: Final = [
    rule("-", r"\b([A-Z]{1,6})-(\d{1,18})(?!\w)", lambda found: f"{found[1]} {_NUMERALS.code(found[2])}"),
    rule(
        DIGITS,
        r"\b((?i:id|code|pin|order|account|ticket|case|flight|invoice|serial|zip|ref|reference|isbn)"
        r"(?: (?i:number|is|no\.?))?[:#]? ?)(\d{4,18})(?![\w.,]*\d)",
        lambda found: found[1] + _NUMERALS.digits(found[2]),
    ),
]
"""Digits that name something are no amounts."""

_LETTER_A: Final = rule(
    "A", r"\bA-?(\d{1,18})(?=([A-Za-z])?)", lambda found: f"A-{_NUMERALS.code(found[1])}{' ' if found[2] else ''}"
)
"""Tied to its number, it is a letter and no article."""

_RULES: Final[list[Rule]] = [
    web.long_runs(_NUMERALS),
    *_PHRASES,
    *web.rules(WEB, _NUMERALS),
    *DATE_RULES,
    *_CODES,
    *TIME_RULES,
    sign_rule(LEXICON),
    *_NAMES,
    *YEAR_RULES,
    *money_rules(LEXICON),
    *unit_rules(LEXICON),
    *_NUMBERS,
    range_rule(LEXICON),
    BARE_YEAR,
    *_ROMANS,
    *_ABBREVIATED,
    *MARK_RULES,
    _LETTER_A,
    *number_rules(LEXICON),
]
