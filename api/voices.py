"""The voices, in every shape that clients read."""

from contextlib import closing
from typing import Any

from fastapi import APIRouter, Depends, Request

from api.auth import require_admin, require_lister, require_reader
from api.parse import parse_voice
from core.settings import Settings
from core.speech import Voice
from synthesis.synthesizer import Synthesizer
from voices.notes import Notes

router = APIRouter()


@router.get("/v1/voices", dependencies=[Depends(require_lister)])
@router.get("/v1/audio/voices", dependencies=[Depends(require_lister)])
async def list_voices(request: Request) -> dict[str, Any]:
    """All voices, the default first. `voices` is what Open WebUI reads, `data` OpenAI's way of listing."""
    synthesizer: Synthesizer = request.app.state.synthesizer
    settings: Settings = request.app.state.settings
    voices = synthesizer.speakers.all
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


@router.get("/v1/audio/voices/{voice_id}", dependencies=[Depends(require_reader)])
async def read_voice(request: Request, voice_id: str) -> dict[str, Any]:
    """One voice, with what was said in its recording, which is no part of a public list."""
    synthesizer: Synthesizer = request.app.state.synthesizer
    return _told(*await synthesizer.speakers.find(voice_id))


@router.post("/v1/audio/voices", dependencies=[Depends(require_admin)])
async def add_voice(request: Request) -> dict[str, Any]:
    """Keep a recording as a voice: OpenAI's createVoice."""
    synthesizer: Synthesizer = request.app.state.synthesizer
    settings: Settings = request.app.state.settings
    with closing(synthesizer.uploads.begin()) as upload:
        name, sample, notes = await parse_voice(request, settings.server, upload=upload)
        custom = await synthesizer.speakers.add(name, sample, notes)
    return _told(custom.voice, custom.notes)


@router.delete("/v1/audio/voices/{voice_id}", dependencies=[Depends(require_admin)])
async def delete_voice(request: Request, voice_id: str) -> dict[str, Any]:
    """Delete a voice that was added, and what it has said."""
    synthesizer: Synthesizer = request.app.state.synthesizer
    await synthesizer.remove_voice(voice_id)
    return {"id": voice_id, "object": "audio.voice", "deleted": True}


def _told(voice: Voice, notes: Notes) -> dict[str, Any]:
    return {
        "id": voice.id,
        "object": "audio.voice",
        "name": voice.name,
        "created_at": notes.created_at,
        "wav_path": voice.path,
        "language": voice.language,
        "transcript": notes.transcript or None,
        "description": notes.description or None,
        "style": notes.style or None,
        "consent": notes.consent or None,
    }
