"""Addresses in words: URLs, e-mail, IP addresses, file names, mentions, hashtags, versions."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from text.normalize.numbers import LONG_RUN, Numerals
from text.normalize.rules import DIGITS, Rule, apply, rule

_ENDINGS: Final = (
    "com|org|net|edu|gov|io|ai|dev|app|info|co|me|tv|cloud|tech|site|xyz|uk|es|fr|it|pt|br|de|nl|eu|us|ca|mx|ar|cl|in|cn"
    "|jp|kr|ru|ch|at|be|se|au|nz"
)
_FILES: Final = (
    "py|js|ts|rs|go|cpp|md|txt|pdf|csv|json|yaml|yml|toml|html|css|xml|zip|png|jpg|jpeg|svg|mp3|mp4|wav|docx|sh"
)
_LABEL: Final = r"[A-Za-z\d](?:[\w-]{0,61})"
_HOST: Final = rf"{_LABEL}(?:\.{_LABEL})*"
_EMAIL: Final = (
    rf"(?<![\w.+%@-])(?:mailto:)?([\w+%-]{{1,64}}(?:\.[\w+%-]{{1,64}}){{0,8}})@({_HOST}\.[A-Za-z]{{2,24}})(?![\w@])"
)
_PATH: Final = r"[^\s<>\"'`]{0,2000}"
_URL: Final = rf"\b(?:https?|ftp|wss?|file)://({_PATH})"
_BARE: Final = (
    rf"(?<![\w.@/-])(?:localhost(?=[:/])|www\.{_HOST}|(?:{_LABEL}\.){{1,5}}(?:{_ENDINGS}))(?![\w@-])"
    rf"(?::\d{{1,5}}(?!\d))?(?:/{_PATH})?"
)
_FILE: Final = rf"(?<![\w.@/-])[\w-]{{1,80}}\.(?:{_FILES})(?![\w@-])"
_TOKEN = re.compile(r"\d+|[^\W\d_]+|[./:_~+=&#@-]")
_ADDRESS_MARK: Final = re.compile(r"[.@:/]|[vV]\d")
_LOOSE_HAN: Final = re.compile(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|_+")
_CLOSERS: Final = ".,;:!?)]}'\"*"


@dataclass(frozen=True, slots=True)
class Words:
    """What the marks in an address are called."""

    dot: str
    at: str
    slash: str
    dash: str
    underscore: str
    colon: str
    hashtag: str
    number: str
    version: str


def rules(words: Words, numerals: Numerals) -> list[Rule]:
    """Everything that is an address rather than prose. To be applied before any rule for numbers."""
    names = {".": words.dot, "/": words.slash, "-": words.dash, "_": words.underscore, ":": words.colon, "@": words.at}

    def pieces(address: str) -> Iterator[str]:
        for token in _TOKEN.findall(address):
            yield numerals.code(token) if token.isdigit() else names.get(token, token if token.isalpha() else "")

    def read(address: str) -> str:
        return " ".join(piece for piece in pieces(address) if piece)

    def url(found: re.Match[str]) -> str:
        whole = found[found.re.groups]
        address = whole.rstrip(_CLOSERS)
        tail = whole[len(address) :]
        address = re.split(r"[?#]", address, maxsplit=1)[0].removeprefix("www.").rstrip("/")
        return read(re.sub(r"%[\dA-Fa-f]{2}", " ", address)) + tail

    def octets(found: re.Match[str]) -> str:
        is_address = all(int(part) < 256 for part in found[1].split("."))
        return points(found, words.dot) if is_address else found[0]

    def points(found: re.Match[str], mark: str) -> str:
        return f" {mark} ".join(_component(numerals, part) for part in found[1].split("."))

    return [
        rule("@", _EMAIL, lambda found: f"{read(found[1])} {words.at} {read(found[2])}"),
        rule(":", _URL, url),
        rule(".:/", _BARE.join(["(", ")"]), url),
        rule(".", _FILE.join(["(", ")"]), lambda found: read(found[1])),
        rule(".", r"(?<![\w.])(\d{1,3}(?:\.\d{1,3}){3})(?![.,]?\d|\w)", octets),
        rule(
            "vV",
            r"(?<![\w.])[vV]\.? ?(\d{1,6}(?:\.\d{1,6})*)(?![\d\w])",
            lambda found: f"{words.version} {points(found, numerals.marks['.'])}",
        ),
        rule(
            ".",
            r"(?<![\w.,])(?!\d{1,3}(?:\.\d{3})+(?!\d|\.\d))(\d{1,6}(?:\.\d{1,6}){2,})(?![\w])",
            lambda found: points(found, numerals.marks["."]),
        ),
        rule("@", r"(?<![\w@])@([A-Za-z_]\w{0,80})", lambda found: f"{words.at} {_words(found[1])}"),
        rule("#", r"(?<![\w#&])# ?(?=\d)", f"{words.number} "),
        rule("#", r"(?<![\w#&])#([^\W\d]\w{0,80})", lambda found: f"{words.hashtag} {_words(found[1])}"),
    ]


def isolated(addresses: Iterable[Rule]) -> Rule:
    """The same rules for runs of ASCII alone: next to Han, which are letters to the patterns, they find nothing."""

    def address(found: re.Match[str]) -> str:
        return _LOOSE_HAN.sub("", apply(found[0], addresses)) if _ADDRESS_MARK.search(found[0]) else found[0]

    return rule(".@:/vV", r"(?<![!-~])[!-?\[-`{-~]*+[@-Za-z][!-~]+", address)


def long_runs(numerals: Numerals) -> Rule:
    """Runs of digits that are too long for a number, before any other rule has to walk them."""
    return Rule(DIGITS, LONG_RUN, lambda found: f" {numerals.digits(found[0])} ")


def _component(numerals: Numerals, part: str) -> str:
    if len(part) > 1 and part[0] == "0":
        return " ".join(numerals.cardinal(int(digit)) for digit in part)
    return numerals.cardinal(int(part))


def _words(name: str) -> str:
    return " ".join(part for part in _CAMEL.split(name) if part)
