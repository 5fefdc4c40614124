"""The models that clients expect to find, in OpenAI's shape and in the one that Open WebUI reads."""

from typing import Any

from fastapi import APIRouter, Depends, Request

from api.auth import require_lister
from core.settings import Settings
from telemetry.build_info import PRODUCT

NAMES = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
"""Any other name is accepted too: the server speaks with the model it runs."""

CREATED = 1_764_547_200
"""A time that never changes, for clients that compare lists."""

router = APIRouter(dependencies=[Depends(require_lister)])


@router.get("/v1/models")
async def list_models(request: Request) -> dict[str, Any]:
    """OpenAI's list."""
    return {"object": "list", "data": _models(request)}


@router.get("/v1/audio/models")
async def list_audio_models(request: Request) -> dict[str, Any]:
    """The same as `models`, for clients that ask beside the speech."""
    return {"object": "list", "data": _models(request), "models": _models(request)}


def _models(request: Request) -> list[dict[str, Any]]:
    settings: Settings = request.app.state.settings
    own = settings.speech.served_model_name
    names = [*NAMES, *([own] if own and own not in NAMES else [])]
    fields = {"object": "model", "created": CREATED, "owned_by": PRODUCT}
    return [{"id": name, "name": name, **fields} for name in names]
