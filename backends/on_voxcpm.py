"""What both engines of VoxCPM do alike: languages, what may be said to the model, how much it may speak."""

from collections.abc import Mapping

from backends.base import BackendError
from core.speech import REFERENCE_RATE, Reference, Samples

_SPACED = "da de el en es fi fr he hi id it ko ms nl no pl pt ru sv sw tl tr vi ar".split()
_UNSPACED = "ja km lo my th zh".split()
CHARS: Mapping[str, int] = {**dict.fromkeys(_SPACED, 240), **dict.fromkeys(_UNSPACED, 80)}
"""Languages of VoxCPM2, and characters of an utterance: about 16 s. It would take more, and drift."""

FIRST_CHARS = 40
"""Of the first utterance, so that sound starts early."""

REFERENCE_S = 30
"""Seconds of a recording that are listened to."""

DEFAULT_CFG = 2.0
"""How closely it keeps to voice and text, where a request leaves it open."""

_COMMANDS = str.maketrans(
    {**dict.fromkeys("()[]", ","), **dict.fromkeys("（）", "，"), **dict.fromkeys("<>|＜＞｜", " ")}
)
"""Parentheses at the start of a text would be taken for a description of the voice, and not be spoken; the vocabulary's
own words stand between the others."""

SPARE_TOKENS = 8
"""For marks that the library puts between text, reference and sound."""

LEAST_PATCHES, MOST_PATCHES = 2, 6
"""Of sound that the model must have room for, and of what it may speak before it is told to stop, a token of text."""

AT_LIMIT = "The model came to its limit before it came to the end of the text."


def spoken(text: str) -> str:
    """A text as the model may read it: nothing in it is a command. Empty where there is nothing to say."""
    return " ".join(text.translate(_COMMANDS).split()).lstrip(",， ")


def heard(transcript: str) -> str:
    """The words of a recording as the model may read them."""
    return transcript.translate(_COMMANDS)


def sample_of(voice: Reference) -> Samples:
    """What is listened to of a recording. Raises KeyError where there is none: no voice is built in."""
    if voice.sample is None:
        raise KeyError(voice.key)
    return voice.sample[: REFERENCE_S * REFERENCE_RATE]


def is_whole(voice: Reference) -> bool:
    """Whether all of a recording is listened to; else its transcript would be of more than is heard."""
    return voice.sample is None or len(voice.sample) <= REFERENCE_S * REFERENCE_RATE


def most_patches(tokens: int, *, told: int, room: int) -> int:
    """Patches of 0.16 s that the model may speak: what it has room for behind what it is told, and what makes sense.

    tokens: of the text. told: of the voice and its transcript. room: that the model has for all of it.
    Raises BackendError where that is not enough for the text.
    """
    left = room - tokens - told - SPARE_TOKENS
    if left < LEAST_PATCHES * tokens + 1:
        raise BackendError("The voice's recording and its transcript are so long that the model has no room to speak.")
    return min(left, MOST_PATCHES * tokens + 10)
