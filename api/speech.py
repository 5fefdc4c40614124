"""The answer to a request for speech: one pure-ASGI response that watches its client to the last byte."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from api import sse
from api.auth import require_speaker
from api.errors import error_response
from api.parse import Asked, parse_speech
from api.schemas import SpeechBody
from core.errors import SpeechError
from core.settings import ServerSettings
from synthesis.answer import Answer
from synthesis.synthesizer import Synthesizer

PIECE_BYTES = 2**17
"""How much of a whole answer is handed on at a time."""

router = APIRouter(dependencies=[Depends(require_speaker)])

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            kind: {"schema": SpeechBody.model_json_schema()} for kind in ("application/json", "multipart/form-data")
        },
    },
    "responses": {"200": {"description": "Audio", "content": {"audio/*": {}, sse.MIME: {}}}},
}


@router.post("/v1/audio/speech", openapi_extra=_BODY, response_class=Response)
async def speech(request: Request) -> Response:
    """Speak a text: OpenAI's createSpeech."""
    return await _answer(request, always_streamed=False)


@router.post("/v1/audio/speech/stream", openapi_extra=_BODY, response_class=Response)
async def speech_stream(request: Request) -> Response:
    """Speak a text and send it while it is being made, as WAV without a length unless another format is named."""
    return await _answer(request, always_streamed=True)


async def _answer(request: Request, *, always_streamed: bool) -> Response:
    synthesizer: Synthesizer = request.app.state.synthesizer
    limits: ServerSettings = request.app.state.settings.server
    upload = synthesizer.uploads.begin()
    try:
        asked = await parse_speech(request, limits, upload=upload, always_streamed=always_streamed)
    except BaseException:
        upload.close()
        raise
    return SpeechResponse(synthesizer, asked, send_timeout_s=limits.send_timeout_s)


class SpeechResponse(Response):
    """Speaks when it is called. However it ends, the audio stream is closed, and with it the slot is free.

    The same holds for the recording that came with the request.
    """

    def __init__(self, synthesizer: Synthesizer, asked: Asked, *, send_timeout_s: float) -> None:
        """send_timeout_s: how long a client may take for one piece before it counts as gone."""
        super().__init__()
        self._synthesizer = synthesizer
        self._asked = asked
        self._send_timeout_s = send_timeout_s
        self._unsent: deque[Message] = deque()
        self._has_started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, unless the client leaves first."""
        try:
            await self._watched(scope, receive, send)
        finally:
            if self._asked.speech.sample is not None:
                self._asked.speech.sample.close()

    async def _watched(self, scope: Scope, receive: Receive, send: Send) -> None:
        answering = asyncio.create_task(self._speak(scope, receive, send))
        watching = asyncio.create_task(_until_gone(receive))
        try:
            await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            if not answering.done():
                answering.cancel()
            await asyncio.wait({answering, watching})
        if not answering.cancelled():
            answering.result()

    async def _speak(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._synthesizer.speak(self._asked.speech)
            try:
                await self._send_answer(answer, scope, send)
            except (TimeoutError, asyncio.CancelledError):
                answer.outcome = "cancelled"  # also where all of it was made: it did not reach its client
                raise
            finally:
                await answer.aclose()
        except SpeechError as error:
            # Behind the status line, plain bytes can only break off: the server cuts a connection whose answer is
            # not complete, and that is how the client learns of it.
            if not self._has_started:
                await self._refusal(error)(scope, receive, send)
        except TimeoutError:  # the client does not read
            _cut_off(receive)

    def _refusal(self, error: SpeechError) -> Response:
        """With what is known of the answer that there is not: nobody spoke, so that there is no other route."""
        response = error_response(error)
        response.headers["x-cache"] = word = self._synthesizer.cache_word(self._asked.speech)
        if word == "ADHOC":
            response.headers["x-route"] = word
        return response

    async def _send_answer(self, answer: Answer, scope: Scope, send: Send) -> None:
        if answer.etag and not self._asked.is_sse and _has(scope, answer.etag):
            answer.outcome = "done"
            self._begin(answer, status=304)
            await self._send(send, b"", more=False)
            return
        if self._asked.is_sse and scope["http_version"] == "1.0":  # which has no way to send without a length
            is_whole = True
        elif answer.length is None:
            is_whole = not self._asked.speech.streamed
        else:
            is_whole = answer.length <= PIECE_BYTES
        await (self._send_whole if is_whole else self._send_stream)(answer, send)

    async def _send_stream(self, answer: Answer, send: Send) -> None:
        self._begin(answer, length=None if self._asked.is_sse else answer.length)
        async for part in _events(answer) if self._asked.is_sse else answer:
            await self._send(send, part, more=True)
        await self._send(send, b"", more=False)

    async def _send_whole(self, answer: Answer, send: Send) -> None:
        body = b"".join([data async for data in answer])
        if self._asked.is_sse:
            body = b"".join([*sse.delta(body), sse.done(answer)])
        self._begin(answer, length=len(body))
        if len(body) <= PIECE_BYTES:
            await self._send(send, body, more=False)
            return
        # Piece by piece, for only then is it seen whether the client reads: the memory is its own until it has.
        for start in range(0, len(body), PIECE_BYTES):
            await self._send(send, body[start : start + PIECE_BYTES], more=True)
        await self._send(send, b"", more=False)

    def _begin(self, answer: Answer, *, length: int | None = None, status: int = 200) -> None:
        """Write the status line and headers, which leave with the first bytes."""
        headers = {
            "content-type": sse.MIME if self._asked.is_sse else answer.mime,
            "cache-control": "no-store",
            "x-cache": answer.cache,
            "x-route": answer.route,
            "x-sample-rate": str(answer.sample_rate),
        }
        if answer.etag and not self._asked.is_sse:
            headers |= {"etag": f'"{answer.etag}"', "cache-control": "private, no-cache"}
        if length is not None:
            headers["content-length"] = str(length)
        elif status == 200:
            headers["x-accel-buffering"] = "no"
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._unsent.append({"type": "http.response.start", "status": status, "headers": raw})

    async def _send(self, send: Send, body: bytes, *, more: bool) -> None:
        """Raises TimeoutError where the client does not take it."""
        self._unsent.append({"type": "http.response.body", "body": body, "more_body": more})
        # Not wait_for: before Python 3.12 it swallows a cancellation that comes just as the client has taken a piece.
        async with asyncio.timeout(self._send_timeout_s):
            while self._unsent:
                self._has_started = True
                await send(self._unsent.popleft())


async def _events(answer: Answer) -> AsyncIterator[bytes]:
    try:
        async for data in answer:
            for event in sse.delta(data):
                yield event
    except SpeechError as error:
        yield sse.failed(error)
    else:
        yield sse.done(answer)


def _has(scope: Scope, etag: str) -> bool:
    """Whether the client says that it has this very content. `*` says nothing here: it names none."""
    sent = b",".join(value for name, value in scope["headers"] if name == b"if-none-match").decode("latin-1")
    return any(tag.strip().removeprefix("W/") == f'"{etag}"' for tag in sent.split(","))


def _cut_off(receive: Receive) -> None:
    """Let go of a connection at once: closing it waits for what is still to be sent, for as long as nobody reads it.

    ASGI has no word for that; uvicorn's `receive` belongs to the object that holds the connection.
    """
    transport = getattr(getattr(receive, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()


async def _until_gone(receive: Receive) -> None:
    """Wait for the client to leave; the body has been read, so nothing else can come."""
    while (await receive())["type"] != "http.disconnect":
        pass
