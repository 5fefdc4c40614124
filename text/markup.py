"""Markdown, HTML, emoji and control characters: what is written for eyes becomes what can be read aloud.

Every pattern is linear, or bounded by a small number, for the text is anybody's.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

_INFO = r"[ \t]*+[\w+#./-]*+[ \t]*+(?:(?:\{|\w++[ \t]*+[=:])[^\n]*+)?"
"""What a fence may say of its code; prose behind three backticks opens none."""

_FENCE = re.compile(
    rf"^[ \t]*+(`{{3,}}+|~{{3,}}+){_INFO}\n.*?(?:^[ \t]*+\1[`~]*+[ \t]*+$|\Z)", re.MULTILINE | re.DOTALL
)
_UNSPOKEN: Final = tuple(
    (re.compile(opening, re.IGNORECASE), re.compile(closing, re.IGNORECASE))
    for opening, closing in (
        ("<!--", "-->"),
        (r"<script\b[^<>]{0,300}>", r"</script\s{0,9}>"),
        (r"<style\b[^<>]{0,300}>", r"</style\s{0,9}>"),
    )
)
"""What opens and closes that which no browser shows either; without its close it is prose about HTML."""

_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^<>\s]{1,2000}|[\w.+-]{1,64}@[\w.-]{1,255})>")
_BREAK_TAG = re.compile(r"</?(?:br|p|div|li|ul|ol|tr|table|blockquote|h[1-6])\b[^<>\n]{0,300}>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][\w:-]{0,40}(?:\s[^<>\n]{0,300})?/?>")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z]{2,8});")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,1000})\]\([^()\n]{0,2000}(?:\([^()\n]{0,500}\)[^()\n]{0,500})?\)")
_REFERENCE = re.compile(r"!?\[(?!\d{1,4}\])([^\[\]\n]{1,1000})\]\[[^\[\]\n]{0,100}\]")
_DEFINITION = re.compile(
    r"^[ \t]{0,3}\[[^\[\]\n]{1,100}\]:[ \t]+(?:[a-zA-Z][\w+.-]{1,20}:\S|[</#]|\.{1,2}/)[^\n]*$", re.MULTILINE
)
_FOOTNOTE = re.compile(r"\[\^[^\[\]\s]{1,40}\]:?")
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+([^\n]*)$", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•▪◦‣]|\(?\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?", re.MULTILINE)
_QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_RULE = re.compile(r"^[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,})$", re.MULTILINE)
_TABLE_RULE = re.compile(
    r"^[ \t]*+\|?[ \t]*+:?-{2,}+:?[ \t]*+(?:\|[ \t]*+:?-{2,}+:?[ \t]*+)*+\|?[ \t]*+$", re.MULTILINE
)
_TABLE_ROW = re.compile(r"^[ \t]*\|[^\n]*$", re.MULTILINE)
_CODE = re.compile(r"`+([^`\n]*)`+")
_STARS = re.compile(
    r"(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])|(?<=[^\W\d][^\W\d])\*{1,3}|\*{1,3}(?=[^\W\d]{2})|\*{4,}"
)
_UNDERSCORES = re.compile(r"(?<![\w_])_{1,3}(?=\w)|(?<=[^\W_])_{1,3}(?![\w_])")
_ESCAPE = re.compile(r"\\(?=[\\`*_{}\[\]()#+.!|~-])")
_SOFT = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u20e3\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]")
_FOREIGN = re.compile(r"[^\x20-\x7e\n]")

_KEPT_SYMBOLS: Final = frozenset("°+=<>±×÷≈≠≤≥−~|§©®™²³µ√∞→№℃℉^¬")
_FULL_WIDTH_SIGNS: Final = frozenset("％＠＄＋＝＃＆＊／＜＞＿｜＾")
_SENTENCE_MARKS: Final = ".!?:…。！？："
_WRAPPED_CHARS = 60
"""A line of this length goes on in the next one: it was wrapped, or they are sentences of one paragraph."""

_LIKELY_WRAPPED_CHARS = 40
"""The same for a line whose next one begins in lower case."""


def strip_markup(text: str) -> str:
    """Plain text; the ends of paragraphs, headings and list items are line ends. May be empty."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _without_html(_FENCE.sub("\n\n", text))
    text = _DEFINITION.sub("", _FOOTNOTE.sub("", text))
    for pattern in (_LINK, _REFERENCE, _CODE):
        text = pattern.sub(r"\1", text)
    text = _HEADING.sub(lambda found: f"\n\n{found[1].rstrip('# ')}\n\n", text)
    text = _TABLE_RULE.sub("", _RULE.sub("", text))
    text = _TABLE_ROW.sub(_row, text)
    text = _BULLET.sub("\n\n", _QUOTE.sub("", text))
    for pattern in (_ESCAPE, _STARS, _UNDERSCORES):
        text = pattern.sub("", text)
    return _plain(text.replace("~~", ""))


def _without_html(text: str) -> str:
    if "<" in text:
        for opening, closing in _UNSPOKEN:
            text = " ".join(_outside(text, opening, closing))
        text = _AUTOLINK.sub(r"\1", text)
        text = _TAG.sub(_tag, _BREAK_TAG.sub("\n\n", text))
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text


def _outside(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> Iterator[str]:
    """What lies between a close and the next opening; linear, for a search that finds no close is the last one."""
    start = 0
    while (begin := opening.search(text, start)) and (end := closing.search(text, begin.end())):
        yield text[start : begin.start()]
        start = end.end()
    yield text[start:]


def _tag(found: re.Match[str]) -> str:
    """Nothing, but for a comparison that only looks like a tag."""
    return found[0] if " " in found[0].rstrip("/> ") and "=" not in found[0] else " "


def _row(found: re.Match[str]) -> str:
    cells = (cell.strip() for cell in found[0].split("|"))
    return "\n\n" + ", ".join(cell for cell in cells if cell) + "\n\n"


def _plain(text: str) -> str:
    """Composed characters, ASCII for full-width Latin, no emoji, no control characters, single spaces."""
    text = unicodedata.normalize("NFC", _SOFT.sub("", text))
    return "\n".join(_unwrapped(_FOREIGN.sub(_plain_char, text).split("\n")))


def _plain_char(found: re.Match[str]) -> str:
    char = found[0]
    if "０" <= char <= "９" or "Ａ" <= char <= "Ｚ" or "ａ" <= char <= "ｚ" or char in _FULL_WIDTH_SIGNS:
        return unicodedata.normalize("NFKC", char)
    kind = unicodedata.category(char)
    if kind in ("So", "No") and char not in _KEPT_SYMBOLS:
        return _other_spelling(char) or (char if kind == "No" else " ")
    return char if kind[0] in "LMNP" or kind == "Sc" or char in _KEPT_SYMBOLS else " "


def _other_spelling(sign: str) -> str:
    """What a sign is made of, where that can be read; empty where it cannot."""
    plain = unicodedata.normalize("NFKC", sign)
    if "₀" <= sign <= "₉" or "㌀" <= sign <= "㏿":  # an index; a unit in one sign
        return plain
    if "⁴" <= sign <= "⁹" or sign == "⁰":
        return f"^{plain}"
    is_circled = "①" <= sign <= "⑳" or (unicodedata.category(sign) == "So" and any(part.isalnum() for part in plain))
    return f" {plain} " if is_circled else ""


def _unwrapped(lines: list[str]) -> list[str]:
    """Lines with something to say, put together where a paragraph was only wrapped."""
    paragraphs: list[list[str]] = []
    last = ""
    for each in lines:
        line = " ".join(each.split())
        if not any(char.isalnum() for char in line):
            last = last if line else ""
            continue
        if last and _goes_on(last, line):
            paragraphs[-1].append(line if last[-1] >= "\u3000" else " " + line)
        else:
            paragraphs.append([line])
        last = line
    return ["".join(parts) for parts in paragraphs]


def _goes_on(line: str, following: str) -> bool:
    length = len(line) * (2 if line[-1] >= "\u3000" else 1)
    if length >= _WRAPPED_CHARS:
        return True
    is_open = line[-1] not in _SENTENCE_MARKS
    return line[-1] == "," or (is_open and length >= _LIKELY_WRAPPED_CHARS and following[0].islower())
