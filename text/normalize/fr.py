"""French numbers, dates, times, money and measures."""

import re
from typing import Final

from text.normalize import romance
from text.normalize.amounts import Currency, Lexicon
from text.normalize.numbers import Noun, Numerals
from text.normalize.rules import DIGITS, apply, rule, straighten, tidy
from text.normalize.web import Words


def normalize_fr(text: str) -> str:
    """French prose without digits and signs."""
    return tidy(apply(straighten(text), _RULES))


def _agree(words: str, is_feminine: bool) -> str:
    return re.sub(r"\bun$", "une", words) if is_feminine else words


def _time(hour: int, minute: int, half: str) -> str:
    if hour in {0, 12} and not half:
        said = "midi" if hour else "minuit"
    else:
        said = _NUMERALS.count(str(hour), Noun("heure", "heures", True))
    quarters = {15: "et quart", 30: "et demie"} if hour < 12 else {}
    end = f" {quarters.get(minute) or _NUMERALS.cardinal(minute)}" if minute else ""
    return (
        said
        + end
        + {"am": " du matin", "pm": " de l'après-midi" if hour < 6 or hour == 12 else " du soir"}.get(half, "")
    )


def _ordinal(found: re.Match[str]) -> str:
    number = int(found[1])
    if number == 1:
        return "première" if found[2] in {"re", "ère"} else "premier"
    return _NUMERALS.ordinal(number)


_NUMERALS: Final = Numerals("fr", {".": "point", ",": "virgule"}, agree=_agree)
_DOLLAR: Final = Currency(Noun("dollar", "dollars"), Noun("cent", "cents"))
_EURO: Final = Currency(Noun("euro", "euros"), Noun("centime", "centimes"))
_POUND: Final = Currency(Noun("livre", "livres", True), Noun("penny", "pence"))

_LEXICON: Final = Lexicon(
    numerals=_NUMERALS,
    units=romance.units(
        "kilomètre, mètre, centimètre, millimètre, kilogramme, gramme, milligramme, litre, millilitre, heure, minute,"
        "seconde, milliseconde, octet, kilooctet, mégaoctet, gigaoctet, téraoctet, watt, kilowatt, mégawatt,"
        "kilowattheure, volt, ampère, hertz|hertz, kilohertz|kilohertz, mégahertz|mégahertz, gigahertz|gigahertz,"
        "kilomètre par heure|kilomètres par heure, mètre par seconde|mètres par seconde, mètre carré|mètres carrés,"
        "mètre cube|mètres cubes, kilomètre carré|kilomètres carrés, centimètre carré|centimètres carrés, hectare,"
        "degré Celsius|degrés Celsius, degré Fahrenheit|degrés Fahrenheit, degré, kilooctet, litre, millilitre,"
        "hectolitre, tonne, fois|fois",
        frozenset({"heure", "minute", "seconde", "milliseconde", "tonne", "fois"}),
    )
    | {"Go": Noun("gigaoctet", "gigaoctets"), "Mo": Noun("mégaoctet", "mégaoctets")},
    glued=frozenset({"A", "x", "B"}),
    currencies={
        "$": _DOLLAR, "USD": _DOLLAR, "€": _EURO, "EUR": _EURO, "£": _POUND, "¥": Currency(Noun("yen", "yens")),
    },
    scales=("millions", "million", "milliards", "milliard", "mille"),
    thousands=frozenset({"mille"}),
    suffixes={"k": Noun("mille", "mille"), "K": Noun("mille", "mille"), "M": Noun("million", "millions")},
    percent="pour cent", to="à", minus="moins", per="par", both="et", of="de", over="sur",
    rates=("heure", "jour", "mois", "an", "semaine", "personne", "nuit"),
    fractions={2: Noun("demi", "demis"), 3: Noun("tiers", "tiers"), 4: Noun("quart", "quarts")},
    symbols={
        "&": "et", "+": "plus", "=": "égale", "×": "fois", "÷": "divisé par", "±": "plus ou moins", "≈": "environ",
        "<": "inférieur à", ">": "supérieur à", "§": "paragraphe", "%": "pour cent", "°": "degrés", "→": "à",
        "€": "euros", "$": "dollars", "£": "livres", "¥": "yens", "²": "au carré", "³": "au cube", "№": "numéro",
        "@": "arobase", "/": "sur", "|": ",", "½": "un demi", "¼": "un quart", "~": "environ",
        "©": "",
    },
)  # fmt: skip

_RULES: Final = romance.rules(
    _LEXICON,
    romance.Calendar(
        months=(
            "janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre",
            "décembre",
        ),
        first="premier", date=romance.joined_date, time=_time,
    ),
    Words(
        dot="point", at="arobase", slash="slash", dash="tiret", underscore="tiret bas", colon="deux-points",
        hashtag="hashtag", number="numéro", version="version",
    ),
    before=(
        rule("°º", r"\b[Nn][°º] ?(?=\d)", "numéro "),
        rule(DIGITS, r"(?<![\w.,])(\d{1,3})(er|re|ère|ème|e)\b", _ordinal),
        romance.expand(
            {"M": "monsieur", "MM": "messieurs", "Dr": "docteur", "etc": "et cetera", "p. ex": "par exemple",
             "av": "avenue", "bd": "boulevard", "env": "environ"}
        ),
        rule("M", r"\bMme\b", "madame"),
        rule("M", r"\bMlle\b", "mademoiselle"),
    ),
    behind=(
        romance.ordinals(r"\b([XVI]{1,6})e(?= siècle)", _NUMERALS.ordinal),
        *romance.centuries("chapitre|tome|acte|partie|volume", _NUMERALS.cardinal,
                           rulers="Louis|Napoléon|Charles|Henri|Philippe|Jean|Paul", ordinal=_NUMERALS.cardinal),
    ),
)  # fmt: skip
