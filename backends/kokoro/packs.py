"""Voice packs: who speaks, in which language.

A pack is float16 of shape (510, 256): one style vector for each length of an utterance in phonemes. They lie in
`voices.npz`; `python -m backends.kokoro.packs FOLDER` makes that file from the original `.bin` files.
"""

import sys
from collections.abc import Mapping
from functools import cache
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
    "zh": ("zf_xiaobei", "zm_yunxi"),
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


def pack_for(voice: str, language: str) -> str:
    """The pack that lets `voice` (OpenAI's name or a pack's) speak `language`. Raises KeyError for an unknown voice.

    A pack speaks its own language; another one is spoken by a pack of that language and of the same gender.
    """
    pack = OPENAI_PACKS.get(voice, voice)
    if pack not in SHIPPED:
        raise KeyError(voice)
    if _LANGUAGES[pack[0]] == language or language not in LANGUAGE_PACKS:
        return pack
    woman, man = LANGUAGE_PACKS[language]
    return woman if pack[1] == "f" else man


@cache
def load_pack(name: str) -> Samples:
    """Style vectors of a pack, float32 of shape (510, 256)."""
    with np.load(FILE) as packs:
        return np.asarray(packs[name], np.float32)


def build(folder: Path) -> None:
    """Write `voices.npz` from float32 files of shape (510, 1, 256) named `<pack>.bin`."""
    packs = {name: np.fromfile(folder / f"{name}.bin", "<f4").reshape(ROWS, WIDTH) for name in SHIPPED}
    np.savez_compressed(FILE, **{name: pack.astype(np.float16) for name, pack in packs.items()})  # type: ignore[arg-type]


if __name__ == "__main__":
    build(Path(sys.argv[1]))
