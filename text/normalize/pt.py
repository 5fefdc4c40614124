"""Portuguese numbers, dates, times, money and measures, as they are read in Brazil."""

import re
from typing import Final

from text.normalize import romance
from text.normalize.amounts import Currency, Lexicon
from text.normalize.numbers import Noun, Numerals
from text.normalize.rules import DIGITS, apply, rule, straighten, tidy
from text.normalize.web import Words


def normalize_pt(text: str) -> str:
    """Portuguese prose without digits and signs."""
    return tidy(apply(straighten(text), _RULES))


def _agree(words: str, is_feminine: bool) -> str:
    if not is_feminine:
        return words
    words = re.sub(r"(cent|quinhent)os\b", r"\1as", words)
    return re.sub(r"\bum$", "uma", re.sub(r"\bdois$", "duas", words))


def _time(hour: int, minute: int, half: str) -> str:
    said = _NUMERALS.count(str(hour), Noun("hora", "horas", True))
    if minute:
        said = said.rpartition(" ")[0] + f" e {'meia' if minute == 30 and hour < 13 else _NUMERALS.cardinal(minute)}"
    return said + {"am": " da manhã", "pm": " da tarde" if hour < 7 or hour == 12 else " da noite"}.get(half, "")


def _ordinal(found: re.Match[str]) -> str:
    said = _NUMERALS.ordinal(int(found[1]))
    return re.sub(r"o(?=\s|$)", "a", said) if found[2] == "ª" else said


_NUMERALS: Final = Numerals("pt_BR", {".": "ponto", ",": "vírgula"}, agree=_agree)
_REAL: Final = Currency(Noun("real", "reais"), Noun("centavo", "centavos"))
_DOLLAR: Final = Currency(Noun("dólar", "dólares"), Noun("centavo", "centavos"))
_EURO: Final = Currency(Noun("euro", "euros"), Noun("cêntimo", "cêntimos"))
_POUND: Final = Currency(Noun("libra", "libras", True), Noun("pêni", "pence"))

_LEXICON: Final = Lexicon(
    numerals=_NUMERALS,
    units=romance.units(
        "quilômetro, metro, centímetro, milímetro, quilo, grama, miligrama, litro, mililitro, hora, minuto, segundo,"
        "milissegundo, byte, kilobyte, megabyte, gigabyte, terabyte, watt, quilowatt, megawatt,"
        "quilowatt-hora|quilowatts-hora, volt, ampere, hertz|hertz, quilohertz|quilohertz, megahertz|megahertz,"
        "gigahertz|gigahertz, quilômetro por hora|quilômetros por hora, metro por segundo|metros por segundo,"
        "metro quadrado|metros quadrados, metro cúbico|metros cúbicos, quilômetro quadrado|quilômetros quadrados,"
        "centímetro quadrado|centímetros quadrados, hectare, grau Celsius|graus Celsius,"
        "grau Fahrenheit|graus Fahrenheit, grau, kilobyte, litro, mililitro, hectolitro, tonelada, vez|vezes",
        frozenset({"hora", "tonelada", "vez"}),
    ),
    glued=frozenset({"A", "x", "B"}),
    currencies={
        "R$": _REAL, "BRL": _REAL, "$": _DOLLAR, "US$": _DOLLAR, "USD": _DOLLAR, "€": _EURO, "EUR": _EURO, "£": _POUND,
        "¥": Currency(Noun("iene", "ienes")),
    },
    scales=("milhões", "milhão", "bilhões", "bilhão", "mil"),
    thousands=frozenset({"mil"}),
    suffixes={"k": Noun("mil", "mil"), "K": Noun("mil", "mil"), "M": Noun("milhão", "milhões")},
    percent="por cento", to="a", minus="menos", per="por", both="e", of="de", over="sobre",
    rates=("hora", "dia", "mês", "ano", "semana", "pessoa", "noite"),
    fractions={
        2: Noun("meio", "meios"), 3: Noun("terço", "terços"), 4: Noun("quarto", "quartos"),
        5: Noun("quinto", "quintos"), 8: Noun("oitavo", "oitavos"), 10: Noun("décimo", "décimos"),
    },
    symbols={
        "&": "e", "+": "mais", "=": "igual a", "×": "vezes", "÷": "dividido por", "±": "mais ou menos",
        "≈": "aproximadamente", "<": "menor que", ">": "maior que", "§": "parágrafo", "%": "por cento", "°": "graus",
        "→": "a", "€": "euros", "$": "dólares", "£": "libras", "¥": "ienes", "²": "ao quadrado", "³": "ao cubo",
        "№": "número", "@": "arroba", "/": "barra", "|": ",", "½": "meio", "¼": "um quarto", "~": "cerca de",
        "©": "",
    },
)  # fmt: skip

_RULES: Final = romance.rules(
    _LEXICON,
    romance.Calendar(
        months=(
            "janeiro", "fevereiro", "março", "abril", "maio", "junho", "julho", "agosto", "setembro", "outubro",
            "novembro", "dezembro",
        ),
        first="primeiro", date=romance.linked_date, time=_time,
    ),
    Words(
        dot="ponto", at="arroba", slash="barra", dash="hífen", underscore="sublinhado", colon="dois pontos",
        hashtag="hashtag", number="número", version="versão",
    ),
    before=(
        rule("º", r"\b[Nn]\.?º ?(?=\d)", "número "),
        rule("º°ª", r"(?<![\w.,])(\d{1,3})(º|ª|°(?= [a-z]))", _ordinal),
        romance.expand(
            {"Sr": "senhor", "Sra": "senhora", "Dr": "doutor", "Dra": "doutora", "Prof": "professor", "etc": "etcétera",
             "p. ex": "por exemplo", "Av": "avenida", "aprox": "aproximadamente"}
        ),
    ),
    behind=(
        *romance.centuries("século|capítulo|tomo|ato|parte|volume", _NUMERALS.cardinal,
                           rulers="Dom João|João|Pedro|Paulo|Luís|Pio|Bento|Manuel", ordinal=_NUMERALS.ordinal),
        rule(
            DIGITS,
            r"(?<![\w.,])(\d{1,3}) ([^\W\d_]+[aã]s?)\b",
            lambda found: f"{_NUMERALS.agree(_NUMERALS.number(found[1]), not found[2].startswith('dia'))} {found[2]}",
        ),
    ),
)  # fmt: skip
