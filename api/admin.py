"""What an operator tells a running server."""

from typing import Any

from fastapi import APIRouter, Depends, Request

from api.auth import require_admin
from synthesis.synthesizer import Synthesizer

router = APIRouter(prefix="/admin", dependencies=[Depends(require_admin)])


@router.post("/reload-voices")
async def reload_voices(request: Request) -> dict[str, Any]:
    """Read voices.json and the folder again: what there is now, what is no voice and why, what is gone."""
    synthesizer: Synthesizer = request.app.state.synthesizer
    change = await synthesizer.speakers.reload()
    return {"loaded": list(change.loaded), "failed": dict(change.failed), "removed": list(change.removed)}
