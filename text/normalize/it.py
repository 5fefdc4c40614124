"""Italian numbers, dates, times, money and measures."""

import re
from typing import Final

from text.normalize import romance
from text.normalize.amounts import Currency, Lexicon
from text.normalize.numbers import Noun, Numerals
from text.normalize.rules import apply, rule, straighten, tidy
from text.normalize.web import Words


def normalize_it(text: str) -> str:
    """Italian prose without digits and signs."""
    return tidy(apply(straighten(text), _RULES))


def _agree(words: str, is_feminine: bool) -> str:
    return {"uno": "una" if is_feminine else "un"}.get(words, words)


def _time(hour: int, minute: int, half: str) -> str:
    said = "una" if hour == 1 else _NUMERALS.cardinal(hour)
    quarters = {15: "e un quarto", 30: "e mezza"} if hour < 13 else {}
    end = f" {quarters.get(minute) or 'e ' + _NUMERALS.cardinal(minute)}" if minute else ""
    return (
        said
        + end
        + {"am": " di mattina", "pm": " del pomeriggio" if hour < 6 or hour == 12 else " di sera"}.get(half, "")
    )


def _ordinal(found: re.Match[str]) -> str:
    said = _NUMERALS.ordinal(int(found[1]))
    return said[:-1] + "a" if found[2] == "ª" else said


_NUMERALS: Final = Numerals("it", {".": "punto", ",": "virgola"}, agree=_agree)
_DOLLAR: Final = Currency(Noun("dollaro", "dollari"), Noun("centesimo", "centesimi"))
_EURO: Final = Currency(Noun("euro", "euro"), Noun("centesimo", "centesimi"))
_POUND: Final = Currency(Noun("sterlina", "sterline", True), Noun("penny", "pence"))

_LEXICON: Final = Lexicon(
    numerals=_NUMERALS,
    units=romance.units(
        "chilometro|chilometri, metro|metri, centimetro|centimetri, millimetro|millimetri, chilo|chili, grammo|grammi,"
        "milligrammo|milligrammi, litro|litri, millilitro|millilitri, ora|ore, minuto|minuti, secondo|secondi,"
        "millisecondo|millisecondi, byte|byte, kilobyte|kilobyte, megabyte|megabyte, gigabyte|gigabyte,"
        "terabyte|terabyte, watt|watt, chilowatt|chilowatt, megawatt|megawatt, chilowattora|chilowattora, volt|volt,"
        "ampere|ampere, hertz|hertz, chilohertz|chilohertz, megahertz|megahertz, gigahertz|gigahertz,"
        "chilometro all'ora|chilometri all'ora, metro al secondo|metri al secondo, metro quadrato|metri quadrati,"
        "metro cubo|metri cubi, chilometro quadrato|chilometri quadrati, centimetro quadrato|centimetri quadrati,"
        "ettaro|ettari, grado Celsius|gradi Celsius, grado Fahrenheit|gradi Fahrenheit, grado|gradi,"
        "kilobyte|kilobyte, litro|litri, millilitro|millilitri, ettolitro|ettolitri, tonnellata|tonnellate,"
        "volta|volte",
        frozenset({"ora", "tonnellata", "volta"}),
    ),
    glued=frozenset({"A", "x", "B"}),
    currencies={"$": _DOLLAR, "USD": _DOLLAR, "€": _EURO, "EUR": _EURO, "£": _POUND, "¥": Currency(Noun("yen", "yen"))},
    scales=("milioni", "milione", "miliardi", "miliardo", "mila"),
    thousands=frozenset({"mila"}),
    suffixes={"k": Noun("mila", "mila"), "K": Noun("mila", "mila"), "M": Noun("milione", "milioni")},
    percent="per cento", to="a", minus="meno", per="per", both="e", of="di", over="su",
    rates=("ora", "giorno", "mese", "anno", "settimana", "persona", "notte"),
    fractions={
        2: Noun("mezzo", "mezzi"), 3: Noun("terzo", "terzi"), 4: Noun("quarto", "quarti"), 5: Noun("quinto", "quinti"),
        8: Noun("ottavo", "ottavi"), 10: Noun("decimo", "decimi"),
    },
    symbols={
        "&": "e", "+": "più", "=": "uguale", "×": "per", "÷": "diviso", "±": "più o meno", "≈": "circa",
        "<": "minore di", ">": "maggiore di", "§": "paragrafo", "%": "per cento", "°": "gradi", "→": "a",
        "€": "euro", "$": "dollari", "£": "sterline", "¥": "yen", "²": "al quadrato", "³": "al cubo", "№": "numero",
        "@": "chiocciola", "/": "barra", "|": ",", "½": "un mezzo", "¼": "un quarto", "~": "circa",
        "©": "",
    },
)  # fmt: skip

_RULES: Final = romance.rules(
    _LEXICON,
    romance.Calendar(
        months=(
            "gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno", "luglio", "agosto", "settembre", "ottobre",
            "novembre", "dicembre",
        ),
        first="primo", date=romance.joined_date, time=_time,
    ),
    Words(
        dot="punto", at="chiocciola", slash="barra", dash="trattino", underscore="trattino basso", colon="due punti",
        hashtag="hashtag", number="numero", version="versione",
    ),
    before=(
        rule(".°", r"\b[Nn](?:\.|°) ?(?=\d)", "numero "),
        rule("º°ª", r"(?<![\w.,])(\d{1,3})(º|ª|°(?= [a-z]))", _ordinal),
        romance.expand(
            {"Sig": "signor", "Sig.ra": "signora", "Dott": "dottor", "Dott.ssa": "dottoressa", "Prof": "professor",
             "ecc": "eccetera", "es": "esempio", "ca": "circa", "Ing": "ingegner", "Avv": "avvocato"}
        ),
    ),
    behind=(
        romance.ordinals(r"\b([XVI]{1,6})(?= secolo)", _NUMERALS.ordinal),
        *romance.centuries("capitolo|tomo|atto|parte|volume", _NUMERALS.cardinal,
                           rulers="Luigi|Carlo|Enrico|Vittorio Emanuele|Pio|Paolo|Giovanni|Benedetto|secolo",
                           ordinal=_NUMERALS.ordinal),
    ),
)  # fmt: skip
