"""The voices, in every shape that clients read."""

from typing import Any

from fastapi import APIRouter, Request

from core.settings import Settings
from synthesis.synthesizer import Synthesizer

router = APIRouter()


@router.get("/v1/voices")
@router.get("/v1/audio/voices")
async def list_voices(request: Request) -> dict[str, Any]:
    """All voices, the default first. `voices` is what Open WebUI reads, `data` OpenAI's way of listing."""
    synthesizer: Synthesizer = request.app.state.synthesizer
    settings: Settings = request.app.state.settings
    voices = synthesizer.voices
    return {
        "object": "list",
        "default": voices[0].id,
        "data": [
            {
                "id": voice.id,
                "object": "voice",
                "name": voice.name,
                "wav_path": voice.path,
                "language": voice.language or settings.speech.default_language,
            }
            for voice in voices
        ],
        "voices": [{"voice_id": voice.id, "id": voice.id, "name": voice.name} for voice in voices],
    }
