"""OpenAI's events for a stream of speech: deltas in base64, then done with usage, or an error."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from api.errors import error_body
from core.errors import SpeechError
from synthesis.answer import Answer

MIME = "text/event-stream"

DELTA_BYTES = 24 * 1024
"""Audio in one event at most: readers of lines keep a line in memory."""

CHARS_PER_TOKEN = 4
TOKENS_PER_SECOND = 20
"""Usage as OpenAI counts it, roughly: text by length, audio by duration. There is no tokenizer here to ask."""


def delta(data: bytes) -> Iterator[bytes]:
    """Events that carry audio, each a whole number of base64 groups."""
    for start in range(0, len(data), DELTA_BYTES):
        audio = base64.b64encode(data[start : start + DELTA_BYTES]).decode("ascii")
        yield _event({"type": "speech.audio.delta", "audio": audio})


def done(answer: Answer) -> bytes:
    """The last event of a whole answer."""
    text, audio = -(-answer.chars // CHARS_PER_TOKEN), round(answer.audio_s * TOKENS_PER_SECOND)
    usage = {"input_tokens": text, "output_tokens": audio, "total_tokens": text + audio}
    return _event({"type": "speech.audio.done", "usage": usage})


def failed(error: SpeechError) -> bytes:
    """The last event of an answer that broke off."""
    return _event({"type": "speech.audio.error", **error_body(error)})


def _event(fields: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(fields, separators=(",", ":")).encode() + b"\n\n"
