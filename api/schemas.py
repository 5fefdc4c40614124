"""The fields of a request for speech: OpenAI's, and ours beside them."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from core.speech import AudioFormat

_HALF = re.compile("[\ud800-\udfff]")


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("should be a number")
    return value


def _voice_name(value: Any) -> Any:
    """A voice is a name, or OpenAI's object with an id."""
    name = value["id"] if isinstance(value, dict) and isinstance(value.get("id"), str) else value
    if name == "":
        raise ValueError("should name a voice")
    return name


def _whole_text(value: Any) -> Any:
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("should hold text to speak")
        if _HALF.search(value):
            raise ValueError("holds half of a Unicode surrogate pair")
    return value


Format = Annotated[AudioFormat, WithJsonSchema({"type": "string", "enum": [*AudioFormat]})]  # a reference would dangle
Number = Annotated[float, BeforeValidator(_no_bool), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_no_bool)]


class SpeechBody(BaseModel):
    """A request for speech, as JSON or as a form. Unknown fields are ignored, and null means the default."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True, protected_namespaces=())

    input: Annotated[str, BeforeValidator(_whole_text)] = Field(description="The text to speak.")
    model: str = Field("tts-1", max_length=256, description="Any name; this server speaks with the model it runs.")
    voice: Annotated[str, BeforeValidator(_voice_name)] | None = Field(
        None, description='A voice\'s name, or {"id": name}. Absent: the default voice.'
    )
    response_format: Format | None = Field(None, description="mp3 where absent; wav on the streaming path.")
    speed: Number = Field(1.0, ge=0.25, le=4, description="Above 1 is faster, at the same pitch.")
    stream_format: Literal["audio", "sse"] = Field("audio", description="sse: events with base64 audio.")
    stream: bool | None = Field(None, description="Send while speaking. Absent: as the format allows.")
    instructions: str | None = Field(None, max_length=4096, description="Accepted, without effect on this model.")
    language: str | None = Field(None, max_length=64, description="BCP 47. Absent: the voice's, or the text's own.")
    sample_rate: Whole | None = Field(None, ge=1, le=192_000, description="Hz. Absent: 24000.")
    temperature: Number | None = Field(None, ge=0, le=2)
    top_k: Whole | None = Field(None, ge=1, le=1000)
    top_p: Number | None = Field(None, gt=0, le=1)
    repetition_penalty: Number | None = Field(None, ge=1, le=20)
    length_penalty: Number | None = Field(None, ge=-10, le=10, description="No effect without beam search.")
    cfg_value: Number | None = Field(None, ge=0.5, le=5)
    lora: str | None = Field(None, max_length=128, description="Name of an adapter in VLLM_LORA_DIR.")
    seed: Whole | None = Field(None, ge=0, lt=2**63, description="The same seed gives the same audio.")
    transcript: str | None = Field(None, max_length=4096, description="What is said in custom_voice_file.")
    cache: bool = Field(True, description="false: leave no trace of this request on disk.")
