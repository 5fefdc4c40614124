"""Which language: of a tag that a client sent, and of a text that came without one."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

SAMPLE_CHARS = 4000
"""As much of a text as is looked at."""

_NAMES: Final[Mapping[str, str]] = {
    "english": "en", "chinese": "zh", "mandarin": "zh", "japanese": "ja", "spanish": "es", "french": "fr",
    "italian": "it", "portuguese": "pt", "hindi": "hi", "german": "de", "korean": "ko", "russian": "ru",
    "cmn": "zh", "zho": "zh", "chi": "zh", "yue": "zh", "jpn": "ja", "eng": "en", "spa": "es", "fra": "fr", "fre": "fr",
    "ita": "it", "por": "pt", "hin": "hi", "deu": "de", "ger": "de", "kor": "ko", "rus": "ru", "ara": "ar", "nld": "nl",
    "dut": "nl", "pol": "pl", "tur": "tr", "ces": "cs", "cze": "cs", "hun": "hu", "ell": "el", "heb": "he", "tha": "th",
    "vie": "vi", "ukr": "uk", "swe": "sv", "dan": "da", "nor": "no", "fin": "fi", "ind": "id", "ron": "ro",
}  # fmt: skip

_TAG = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]{1,8}){0,8}")

_SCRIPTS: Final[Mapping[str, str]] = {
    "ja": "\u3041-\u30ff\uff66-\uff9d",
    "ko": "\uac00-\ud7af\u1100-\u11ff",
    "ru": "\u0400-\u04ff",
    "ar": "\u0600-\u06ff",
    "he": "\u0590-\u05ff",
    "hi": "\u0900-\u097f",
    "el": "\u0370-\u03ff",
    "th": "\u0e00-\u0e7f",
}
_SCRIPT_PATTERNS: Final = {language: re.compile(f"[{chars}]") for language, chars in _SCRIPTS.items()}
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_UKRAINIAN: Final = re.compile("[іїєґІЇЄҐ]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_ABBREVIATION: Final = re.compile(r"\b(?:[A-Za-z]\.){2,}|\bNo\.(?= ?\d)")
_LINK: Final = re.compile(r"https?://\S+|\S+@\S+|`[^`]*`")

_SCRIPT_SHARE = 3
"""One letter in three makes a text one of that script's language."""

_HAN_LETTERS = 2
"""A Han character stands for about so many letters at least, when it is weighed against Latin ones."""

_HAN_SHARE = 4
"""One letter in four, weighed so, makes a text Chinese; fewer are a quotation."""

_KANA_SHARE = 8
"""Among Han and kana, one kana in so many makes a text Japanese; fewer are a brand or a quotation in Chinese."""

_ENOUGH = 2
"""Points below which words do not tell a language."""

_WORDS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the of and to in is you that it he was for on are with as his they be at this have from or had by not "
        "but what all were we when your can said there an which their if will would could should hello thank please "
        "my how where who do does did has she her them than then been its our about good morning it's don't i'm",
        "es": "el la los las de que y en un una es por con para se no lo su al del como más pero sus le ya este esta "
        "sí porque cuando muy sin sobre también hasta hay donde quien desde todo nos durante estoy está qué hola "
        "gracias buenos buenas días hoy tengo son cómo usted me mi te tu",
        "fr": "le la les des et est un une que qui dans ce il elle ne pas pour sur avec au aux par je vous nous se "
        "mais ou où du en bonjour merci être cette plus sont tout comme fait c'est très aujourd'hui mon ma de j'ai "
        "l'on n'est qu'il d'un d'une",
        "it": "il lo la gli le di che è e un una per non con sono del della dei nel nella si ma come anche più "
        "questo questa ho ha al alla dove quando perché ciao grazie buongiorno oggi molto mi ci andiamo i tutti",
        "pt": "o a os as de que e é em um uma para com não por mais do da dos das no na se ao como mas foi ele ela "
        "você eu está são muito também obrigado obrigada bom dia hoje isso meu minha vamos quando porque olá",
        "de": "der die das und ist nicht ein eine ich du sie es wir ihr zu mit auf für von den dem im an auch sich "
        "wie aber nur noch war wird bei nach einen guten hallo danke in",
        "nl": "de het een en van ik is niet dat je op te zijn met voor er maar ook naar hebben wij deze in",
        "pl": "i w nie na się z do to że jest jak co ale za od po dla przez są tak czy dzień dobry",
    }.items()
}
_MARKED: Final[Mapping[str, str]] = {"es": "ñ¿¡", "pt": "ãõ", "fr": "œùûêç", "de": "ßäöü", "pl": "łążęś", "it": "ìò"}


def canonical(tag: str) -> str:
    """ISO 639-1 of a tag: BCP 47, an engine's own code, ISO 639-3, or a language's English name.

    Raises ValueError for what is no tag; the message does not repeat it.
    """
    folded = tag.strip().lower()
    if folded in _NAMES:
        return _NAMES[folded]
    match = _TAG.fullmatch(folded)
    code = _NAMES.get(match.group(1), match.group(1)) if match else ""
    if len(code) != 2:
        raise ValueError("A language is a tag such as en, en-US or zh-CN, or a name such as English.")
    return code


def detect(text: str, *, languages: Iterable[str], default: str) -> str:
    """The language of a text: by its script, else by its frequent words; `default` where they do not tell.

    languages: the possible ones. A text whose script belongs to none of them is told by its script all the same, so
    that it can be refused instead of being garbled.
    """
    sample = _ABBREVIATION.sub(" ", _LINK.sub(" ", text[:SAMPLE_CHARS]))
    return _by_script(sample) or _by_words(sample, frozenset(languages), default)


def _by_script(sample: str) -> str:
    letters = len(_LETTER.findall(sample))
    han = len(_HAN.findall(sample))
    kana = len(_SCRIPT_PATTERNS["ja"].findall(sample))
    wide = han + kana
    if wide and wide * _HAN_LETTERS * _HAN_SHARE > wide * _HAN_LETTERS + letters - wide:
        return "ja" if kana * _KANA_SHARE > wide else "zh"
    for language, pattern in _SCRIPT_PATTERNS.items():
        if language != "ja" and len(pattern.findall(sample)) * _SCRIPT_SHARE > letters:
            return "uk" if language == "ru" and _UKRAINIAN.search(sample) else language
    return ""


def _by_words(sample: str, languages: frozenset[str], default: str) -> str:
    words = [word.lower().replace("’", "'") for word in _WORD.findall(sample)]
    folded = sample.lower()
    scores = {
        language: _score([word for word in words if word in frequent], folded, _MARKED.get(language, ""))
        for language, frequent in _WORDS.items()
        if language in languages
    }
    ranked = sorted(scores.items(), key=lambda item: (item[1], item[0] == default), reverse=True)
    if not ranked or ranked[0][1] < _ENOUGH:
        return default
    (best, most), second = ranked[0], ranked[1][1] if len(ranked) > 1 else 0
    return best if most > second or best == default else default


def _score(found: list[str], folded: str, marked: str) -> int:
    """Frequent words and marked letters of one language. Lone letters, which are also names, prove nothing alone."""
    marks = sum(folded.count(char) for char in marked)
    return len(found) + 2 * marks if marks or any(len(word) > 1 for word in found) else 0
