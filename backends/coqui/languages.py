"""What XTTS-v2 speaks, how much of it in one go, and text as its tokens."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec

from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer, multilingual_cleaners

CHARS: Mapping[str, int] = {
    "ar": 166, "cs": 186, "de": 253, "en": 250, "es": 239, "fr": 273, "hi": 150, "hu": 224, "it": 213, "ja": 71,
    "ko": 95, "nl": 251, "pl": 224, "pt": 203, "ru": 182, "tr": 226, "zh": 82,
}  # fmt: skip
"""Characters that the model speaks without losing any, by the library's own table."""

PACKAGES: Mapping[str, tuple[str, ...]] = {"zh": ("pypinyin",), "ja": ("cutlet", "fugashi", "unidic_lite")}
"""What spells a language, where the library does not by itself."""

_SPECIAL = str.maketrans(dict.fromkeys("[]{}<>［］【】﹇﹈〔〕｛｝＜＞", " "))
"""The vocabulary's own words stand in square brackets: nobody's text may hold one."""

_PAUSE = re.compile(r"[,;:.!?…،。！？，；：、]+\s*|\s+")


def spoken() -> tuple[dict[str, int], dict[str, str]]:
    """Languages with their characters, and those that are missing with what to do about it."""
    missing = {
        language: f"This language needs {', '.join(lacking)}: ./setup.sh --backend coqui adds it."
        for language, packages in PACKAGES.items()
        if (lacking := [name for name in packages if find_spec(name) is None])
    }
    return {language: limit for language, limit in CHARS.items() if language not in missing}, missing


@cache
def _commands(tokenizer: VoiceBpeTokenizer) -> frozenset[int]:
    """The vocabulary's words that tell the model something, and are not spoken."""
    added = tokenizer.tokenizer.get_added_tokens_decoder()
    return frozenset(token for token, word in added.items() if str(word.content) not in ("[SPACE]", "[UNK]"))


def tokens(tokenizer: VoiceBpeTokenizer, text: str, language: str, limit: int) -> Iterator[list[int]]:
    """Token numbers of a text, in pieces of at most `limit`: text is cut at a pause, else anywhere, never lost."""
    plain = text.translate(_SPECIAL).strip().lower()
    if not plain:
        return
    first, *found = tokenizer.encode(plain, lang=language)
    found = [token for token in found if token not in _commands(tokenizer)]
    # The library writes numbers out in words: what is spoken may be far longer than what was written.
    has_numbers = language != "ja" and any(char.isdigit() for char in plain)
    spoken_chars = len(multilingual_cleaners(plain, language)) if has_numbers else 0
    if (len(found) < limit and spoken_chars <= CHARS[language]) or len(plain) == 1:
        yield [first, *found][:limit]
        return
    middle = len(plain) // 2
    ends = [pause.end() for pause in _PAUSE.finditer(plain) if 0 < pause.end() < len(plain)]
    end = min(ends, key=lambda end: abs(end - middle), default=middle)
    yield from tokens(tokenizer, plain[:end], language, limit)
    yield from tokens(tokenizer, plain[end:], language, limit)
