"""Markdown, HTML, emoji and control characters: what is written for eyes becomes what can be read aloud."""

import re
import unicodedata

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,300}>")
_BREAK_TAG = re.compile(r"<(?:br|p|div|li|h[1-6])\b[^<>\n]{0,300}>", re.IGNORECASE)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,1000})\]\([^()\n]{0,2000}\)")
_REFERENCE = re.compile(r"!?\[([^\[\]\n]{1,1000})\]\[[^\[\]\n]{0,100}\]")
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•▪◦‣]|\(?\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?", re.MULTILINE)
_QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_RULE = re.compile(r"^[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,})$", re.MULTILINE)
_TABLE_RULE = re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)*\|?[ \t]*$", re.MULTILINE)
_TABLE_ROW = re.compile(r"^[ \t]*\|(.*?)\|?[ \t]*$", re.MULTILINE)
_CODE = re.compile(r"`+([^`\n]*)`+")
_STARS = re.compile(r"(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])|(?<=[^\W\d])\*{1,3}|\*{1,3}(?=[^\W\d])")
_UNDERSCORES = re.compile(r"(?<![\w_])_{1,3}(?=\w)|(?<=\w)_{1,3}(?![\w_])")
_STRIKE = re.compile(r"~~")
_SOFT = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]")

_KEPT_SYMBOLS = frozenset("°%€£$¥₹¢+=<>±×÷≈≠≤≥&@#/*^~|§©®™²³µΩ√π∞→½¼¾№℃℉")


def strip_markup(text: str) -> str:
    """Plain text; the ends of paragraphs, headings and list items are line ends. May be empty."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _FENCE.sub("\n", _COMMENT.sub(" ", text))
    text = _TAG.sub(" ", _BREAK_TAG.sub("\n", text))
    for pattern in (_LINK, _REFERENCE, _CODE, _HEADING):
        text = pattern.sub(r"\1", text)
    text = _TABLE_RULE.sub("", _RULE.sub("", text))
    text = _TABLE_ROW.sub(lambda row: ", ".join(cell.strip() for cell in row[1].split("|") if cell.strip()), text)
    text = _BULLET.sub("", _QUOTE.sub("", text))
    for pattern in (_STARS, _UNDERSCORES, _STRIKE):
        text = pattern.sub("", text)
    return _plain(text)


def _plain(text: str) -> str:
    """Composed characters, ASCII for full-width Latin, no emoji, no control characters, single spaces."""
    text = unicodedata.normalize("NFC", _SOFT.sub("", text))
    text = "".join(_plain_char(char) for char in text)
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def _plain_char(char: str) -> str:
    if char.isascii() and char.isprintable():
        return char
    if char in "\n":
        return char
    if "０" <= char <= "９" or "Ａ" <= char <= "Ｚ" or "ａ" <= char <= "ｚ":
        return unicodedata.normalize("NFKC", char)
    kind = unicodedata.category(char)
    if kind[0] in "LMNP" or char in _KEPT_SYMBOLS:
        return char
    if kind == "Sc":
        return char
    return " "
