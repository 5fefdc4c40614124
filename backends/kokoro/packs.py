"""Voice packs: who speaks, in which language.

A pack is float16 of shape (510, 256): one style vector for each length of an utterance in phonemes. They lie in
`voices.npz`; `python -m backends.kokoro.packs FOLDER` makes that file from the original `.bin` files.
"""

import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from core.speech import Samples, Voice

FILE: Final = Path(__file__).parent / "voices.npz"

ROWS, WIDTH = 510, 256

OPENAI_PACKS: Final[Mapping[str, str]] = {
    "alloy": "af_alloy",
    "ash": "am_michael",
    "ballad": "bm_george",
    "cedar": "am_adam",
    "coral": "af_heart",
    "echo": "am_echo",
    "fable": "bm_fable",
    "marin": "bf_emma",
    "nova": "af_nova",
    "onyx": "am_onyx",
    "sage": "af_sarah",
    "shimmer": "af_bella",
    "verse": "am_puck",
}
"""OpenAI's names. Chosen so that a speaker encoder tells them apart."""

LANGUAGE_PACKS: Final[Mapping[str, tuple[str, str]]] = {
    "zh": ("zf_xiaobei", "zm_yunjian"),
    "ja": ("jf_alpha", "jm_kumo"),
    "es": ("ef_dora", "em_alex"),
    "fr": ("ff_siwis", "im_nicola"),
    "it": ("if_sara", "im_nicola"),
    "pt": ("pf_dora", "pm_alex"),
    "hi": ("hf_alpha", "hm_omega"),
}
"""A woman and a man for each language but English: an English pack speaks the others with wrong words.

The model has no French man; the Italian one is understood.
"""

SHIPPED: Final = tuple(sorted({*OPENAI_PACKS.values(), *(name for pair in LANGUAGE_PACKS.values() for name in pair)}))
"""The packs that there are, by their own names."""

_LANGUAGES: Final = {"a": "en", "b": "en", "e": "es", "f": "fr", "h": "hi", "i": "it", "j": "ja", "p": "pt", "z": "zh"}


def voices() -> tuple[Voice, ...]:
    """The packs as voices of their own: each speaks its language unless a request names another."""
    return tuple(Voice(name, name[3:].title(), _LANGUAGES[name[0]]) for name in SHIPPED)


OWN_SHARE: Final = 0.35
"""Of a voice's own pack in the mix through which it speaks another language.

With it the voice stays itself, and English words in a Chinese sentence are understood: 13 % of the characters of eight
such sentences came back wrong from a recogniser, 23 % with the language's pack alone.
"""


@lru_cache(maxsize=32)
def style_of(voice: str, language: str) -> Samples:
    """Style vectors by which `voice` (OpenAI's name or a pack's) speaks `language`, float32 of shape (510, 256).

    A pack speaks its own language. Another one is spoken by a mix with the pack of that language and of the same
    gender. Raises KeyError for an unknown voice.
    """
    name = OPENAI_PACKS.get(voice, voice)
    own = _load(name)
    if _LANGUAGES[name[0]] == language or language not in LANGUAGE_PACKS:
        return own
    woman, man = LANGUAGE_PACKS[language]
    return OWN_SHARE * own + (1 - OWN_SHARE) * _load(woman if name[1] == "f" else man)


def _load(name: str) -> Samples:
    if name not in SHIPPED:
        raise KeyError(name)
    with np.load(FILE) as packs:
        return np.asarray(packs[name], np.float32)


def build(folder: Path) -> None:
    """Write `voices.npz` from float32 files of shape (510, 1, 256) named `<pack>.bin`."""
    packs = {name: np.fromfile(folder / f"{name}.bin", "<f4").reshape(ROWS, WIDTH) for name in SHIPPED}
    np.savez_compressed(FILE, **{name: pack.astype(np.float16) for name, pack in packs.items()})  # type: ignore[arg-type]


if __name__ == "__main__":
    build(Path(sys.argv[1]))
