"""Spanish, as it is read in Spain."""

import re
from typing import Final

from text.normalize import romance
from text.normalize.amounts import Currency, Lexicon
from text.normalize.numbers import Noun, Numerals
from text.normalize.rules import DIGITS, apply, rule, straighten, tidy
from text.normalize.web import Words

_MASCULINE: Final = re.compile(r"(veinti)?uno$")
_TEN_ORDINALS: Final = (
    "",
    "primero",
    "segundo",
    "tercero",
    "cuarto",
    "quinto",
    "sexto",
    "séptimo",
    "octavo",
    "noveno",
    "décimo",
)


def normalize_es(text: str) -> str:
    """Spanish prose without digits, signs and abbreviations."""
    return tidy(apply(straighten(text), _RULES))


def _agree(words: str, is_feminine: bool) -> str:
    """Un, una; veintiún, veintiuna; doscientas."""
    if is_feminine:
        words = re.sub(r"(cient|quinient)os\b", r"\1as", words)
        return re.sub(r"uno$", "una", words)
    return _MASCULINE.sub(lambda found: "veintiún" if found[1] else "un", words)


def _time(hour: int, minute: int, half: str) -> str:
    """Nueve y media; from noon on in the 24-hour clock as numbers."""
    said = "una" if hour == 1 else "veintiuna" if hour == 21 else _NUMERALS.cardinal(hour)
    quarters = {15: "y cuarto", 30: "y media"}
    if hour > 12 or (minute and minute not in quarters and minute > 9):
        zero = "cero " if minute < 10 else ""
        end = f" {zero}{_NUMERALS.cardinal(minute)}" if minute else " horas" if hour > 12 else ""
    else:
        end = f" {quarters.get(minute) or 'y ' + _NUMERALS.cardinal(minute)}" if minute else ""
    if half == "am":
        return f"{said}{end} de la mañana"
    if half == "pm":
        return f"{said}{end} {'del mediodía' if hour == 12 else 'de la tarde' if hour < 8 else 'de la noche'}"
    return said + end


def _ordinal(found: re.Match[str]) -> str:
    number, is_feminine = int(found[1]), found[2] in {"ª", "a"}
    if found[2] == "er":
        return {1: "primer", 3: "tercer"}.get(number) or _NUMERALS.ordinal(number)
    said = _TEN_ORDINALS[number] if 0 < number < 11 else _NUMERALS.ordinal(number)
    return re.sub(r"o(?=\s|$)", "a", said) if is_feminine else said


def _ruler(number: int) -> str:
    return _TEN_ORDINALS[number] if 0 < number < 11 else _NUMERALS.cardinal(number)


_PLACES: Final = {
    "p": "página", "pp": "páginas", "pág": "página", "págs": "páginas", "cap": "capítulo", "vol": "volumen",
    "art": "artículo",
}  # fmt: skip


def _counted(found: re.Match[str]) -> str:
    """A number takes the gender of the word that it counts."""
    number, word = found[1], found[2]
    is_feminine = bool(re.search(r"(?:as|ciones|dades)$|(?<!m)(?<!dí)a$", word)) and not re.search(
        r"(?:m|di|dí)as$", word
    )
    _, mark, _ = _NUMERALS.parts(number)
    said = _NUMERALS.number(number)
    return said if mark or word in _NO_NOUNS else _NUMERALS.agree(said, is_feminine)


_NO_NOUNS: Final = frozenset(
    "de del y o a en con por para que es son más menos entre sobre se no al como hasta fue e u".split()
)

_NUMERALS: Final = Numerals("es", {".": "punto", ",": "coma"}, agree=_agree)

_FEMININE: Final = frozenset({"hora", "tonelada", "hectárea"})

_DOLLAR: Final = Currency(Noun("dólar", "dólares"), Noun("centavo", "centavos"))
_EURO: Final = Currency(Noun("euro", "euros"), Noun("céntimo", "céntimos"))
_POUND: Final = Currency(Noun("libra", "libras", True), Noun("penique", "peniques"))
_YEN: Final = Currency(Noun("yen", "yenes"))

_LEXICON: Final = Lexicon(
    numerals=_NUMERALS,
    units=romance.units(
        "kilómetro, metro, centímetro, milímetro, kilogramo, gramo, miligramo, litro, mililitro, hora, minuto, segundo,"
        "milisegundo, byte, kilobyte, megabyte, gigabyte, terabyte, vatio, kilovatio, megavatio,"
        "kilovatio hora|kilovatios hora, voltio, amperio, hercio, kilohercio, megahercio, gigahercio,"
        "kilómetro por hora|kilómetros por hora, metro por segundo|metros por segundo,"
        "metro cuadrado|metros cuadrados, metro cúbico|metros cúbicos, kilómetro cuadrado|kilómetros cuadrados,"
        "centímetro cuadrado|centímetros cuadrados, hectárea, grado Celsius|grados Celsius,"
        "grado Fahrenheit|grados Fahrenheit, grado, kilobyte, litro, mililitro, hectolitro, tonelada, vez|veces",
        _FEMININE | {"vez"},
    )
    | {"mph": Noun("milla por hora", "millas por hora", True), "lb": Noun("libra", "libras", True)},
    glued=frozenset({"A", "x", "B"}),
    currencies={
        "$": _DOLLAR, "US$": _DOLLAR, "USD": _DOLLAR, "€": _EURO, "EUR": _EURO, "£": _POUND, "GBP": _POUND, "¥": _YEN,
        "MXN": Currency(Noun("peso mexicano", "pesos mexicanos"), Noun("centavo", "centavos")),
        "ARS": Currency(Noun("peso argentino", "pesos argentinos"), Noun("centavo", "centavos")),
    },
    scales=("mil millones", "millones", "millón", "mil", "billones", "billón"),
    thousands=frozenset({"mil"}),
    suffixes={"k": Noun("mil", "mil"), "K": Noun("mil", "mil"), "M": Noun("millón", "millones")},
    percent="por ciento", to="a", minus="menos", per="por", both="con", of="de", over="sobre",
    rates=("hora", "día", "mes", "año", "semana", "minuto", "segundo", "persona", "noche", "kilogramo"),
    fractions={
        2: Noun("medio", "medios"), 3: Noun("tercio", "tercios"), 4: Noun("cuarto", "cuartos"),
        5: Noun("quinto", "quintos"), 6: Noun("sexto", "sextos"), 7: Noun("séptimo", "séptimos"),
        8: Noun("octavo", "octavos"), 9: Noun("noveno", "novenos"), 10: Noun("décimo", "décimos"),
    },
    symbols={
        "&": "y", "+": "más", "=": "es igual a", "×": "por", "÷": "entre", "±": "más menos", "≈": "aproximadamente",
        "≠": "distinto de", "≤": "menor o igual que", "≥": "mayor o igual que", "<": "menor que", ">": "mayor que",
        "§": "sección", "%": "por ciento", "°": "grados", "→": "a", "√": "raíz de", "π": "pi", "∞": "infinito",
        "№": "número", "€": "euros", "$": "dólares", "£": "libras", "¥": "yenes", "²": "al cuadrado", "³": "al cubo",
        "½": "un medio", "¼": "un cuarto", "¾": "tres cuartos", "@": "arroba", "/": "barra", "~": "unos", "|": ",",
        "©": "",
        "•": "", "º": "", "ª": "",
    },
)  # fmt: skip

_WEB: Final = Words(
    dot="punto", at="arroba", slash="barra", dash="guion", underscore="guion bajo", colon="dos puntos",
    hashtag="hashtag", number="número", version="versión",
)  # fmt: skip

_CALENDAR: Final = romance.Calendar(
    months=(
        "enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre",
        "diciembre",
    ),
    first="uno", date=romance.linked_date, time=_time,
)  # fmt: skip

_ABBREVIATIONS: Final = {
    "Sr": "señor", "Sra": "señora", "Srta": "señorita", "Sres": "señores", "Dr": "doctor", "Dra": "doctora",
    "D": "don", "Dña": "doña", "Prof": "profesor", "Profa": "profesora", "Ud": "usted", "Uds": "ustedes",
    "Vd": "usted", "Vds": "ustedes", "etc": "etcétera", "p. ej": "por ejemplo", "p.ej": "por ejemplo",
    "aprox": "aproximadamente", "Avda": "avenida", "Av": "avenida", "Gral": "general", "Sto": "santo", "Sta": "santa",
    "EE. UU": "Estados Unidos", "EE.UU": "Estados Unidos", "EEUU": "Estados Unidos", "a. C": "antes de Cristo",
    "a.C": "antes de Cristo", "d. C": "después de Cristo", "d.C": "después de Cristo", "tel": "teléfono",
    "Tel": "teléfono", "máx": "máximo", "mín": "mínimo", "Ing": "ingeniero", "Lic": "licenciado", "Cía": "compañía",
}  # fmt: skip

_RULES: Final = romance.rules(
    _LEXICON,
    _CALENDAR,
    _WEB,
    before=(
        rule(".", r"\b(?:[Nn][úu]m|[Nn]ro)\. ?(?=\d)|\b[Nn]\.?º ?(?=\d)", "número "),
        rule("º", r"\b[Nn]\.?º ?(?=\d)", "número "),
        rule(
            ".",
            r"\b(pp?|págs?|[Cc]ap|[Vv]ol|[Aa]rt)\. ?(?=\d|[IVX]+\b)",
            lambda found: _PLACES[found[1].lower()] + " ",
        ),
        rule("º°ªer", r"(?<![\w.,])(\d{1,3})\.?(º|ª|°(?! ?[CF]\b)(?= [a-zñ])|er)(?!\w)", _ordinal),
        rule("/", r"\by/o\b", "y o"),
        rule("E", r"\bEEUU\b|\bEE\. ?UU\.(?=\s+[a-záéíóú])", "Estados Unidos"),
        romance.expand(_ABBREVIATIONS),
        rule(
            "s", r"\b([Ll]os )(?:años )?(?:19)?(\d0)s\b", lambda found: f"{found[1]}{_NUMERALS.cardinal(int(found[2]))}"
        ),
    ),
    behind=(
        rule("I", r"\bI(I?)(?= Guerra)", lambda found: "segunda" if found[1] else "primera"),
        *romance.centuries(
            "siglos?|capítulo|tomo|volumen|parte|acto|artículo|título|guerra mundial|anexo|fase|tipo|libro",
            _NUMERALS.cardinal,
            rulers="Alfonso|Felipe|Carlos|Fernando|Isabel|Enrique|Luis|Juan|Pablo|Pío|Benedicto|Juan Pablo|León|Pedro"
            "|Napoleón|Jorge|Guillermo|Federico|Sancho|Jaime|Ramiro|Gregorio|Clemente|Francisco|Nicolás|Alejandro",
            ordinal=_ruler,
        ),
        rule(DIGITS, rf"(?<![\w.,])({_NUMERALS.pattern}) ([^\W\d_]+)", lambda found: f"{_counted(found)} {found[2]}"),
    ),
)
