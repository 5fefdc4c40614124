"""Hindi signs and units in words. The digits stay: its speller reads them, and no library here writes them out."""

import re
from typing import Final

from text.normalize.rules import apply, either, rule, straighten, symbols, tidy

_NUMBER: Final = r"\d{1,18}(?:\.\d{1,18})?"
_UNITS: Final = {
    "km/h": "किलोमीटर प्रति घंटा", "km": "किलोमीटर", "m": "मीटर", "cm": "सेंटीमीटर", "mm": "मिलीमीटर", "kg": "किलोग्राम",
    "g": "ग्राम", "l": "लीटर", "ml": "मिलीलीटर", "GB": "गीगाबाइट", "MB": "मेगाबाइट", "TB": "टेराबाइट",
    "W": "वाट", "kW": "किलोवाट",
    "°C": "डिग्री सेल्सियस", "°F": "डिग्री फ़ारेनहाइट", "°": "डिग्री", "%": "प्रतिशत",
}  # fmt: skip
_CURRENCIES: Final = {"₹": "रुपये", "Rs.": "रुपये", "$": "डॉलर", "€": "यूरो", "£": "पाउंड", "¥": "येन"}
_SYMBOLS: Final = {
    "&": "और", "+": "जमा", "=": "बराबर", "×": "गुणा", "÷": "भाग", "%": "प्रतिशत", "@": "ऐट", "/": "", "|": ",", "#": "",
    "_": "", "*": "", "^": "", "~": "लगभग", "<": "", ">": "", "{": "", "}": "", "[": "", "]": "", "\\": "", "`": "",
}  # fmt: skip


def normalize_hi(text: str) -> str:
    """Hindi prose without signs."""
    return tidy(apply(straighten(text), _RULES))


def _grouped(found: re.Match[str]) -> str:
    return found[0].replace(",", "")


def _address(found: re.Match[str]) -> str:
    return re.sub(r"[./@:]+", lambda mark: {".": " डॉट ", "@": " ऐट "}.get(mark[0][0], " "), found[1])


def _time(found: re.Match[str]) -> str:
    hour, minute = int(found[1]), int(found[2])
    return f"{hour} बजकर {minute} मिनट" if minute else f"{hour} बजे"


_RULES: Final = [
    rule("0123456789", r"\d{19,}", lambda found: " ".join(found[0])),
    rule("@", r"(?<![\w.@-])([\w.-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5})(?![\w@])", _address),
    rule(":", r"\bhttps?://(?:www\.)?([^ ?#]{1,2000})[^\s]{0,2000}", _address),
    rule(",", r"(?<![\w.,])\d{1,3}(?:,\d{2,3})+(?!\d)", _grouped),
    rule(":", r"(?<![\w:])([01]?\d|2[0-4]):([0-5]\d)(?![\w:])(?: बजे)?", _time),
    rule("-", r"(?<![\w.-])-(?=\d)", "माइनस "),
    rule("", rf"({either(_CURRENCIES)}) ?({_NUMBER})", lambda found: f"{found[2]} {_CURRENCIES[found[1]]}"),
    rule("", rf"({_NUMBER}) ?({either(_UNITS)})(?!\w)", lambda found: f"{found[1]} {_UNITS[found[2]]}"),
    rule("-–", r"(?<=\d) ?[-–] ?(?=\d)", " से "),
    symbols(_SYMBOLS),
]
