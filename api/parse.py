"""JSON or form, bounded, to one frozen request."""

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import ValidationError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from api.client import address_of
from api.schemas import SpeechBody
from audio.formats import CONTAINERS
from core.errors import InvalidValue, TooLarge, TooSlow
from core.settings import ServerSettings
from core.speech import AudioFormat, Params, SpeechRequest
from voices.notes import Notes
from voices.uploads import SAMPLE_FIELD, Upload

SAMPLE_FIELDS = (SAMPLE_FIELD, "speaker_wav")
"""Names of an uploaded voice sample; the first that is there wins."""

NOTES = ("language", "transcript", "description", "style", "consent")
"""What may be written about a voice that is to be kept."""

MAX_WAIT_HEADER = "X-Max-Wait-Seconds"
"""A client that would rather be refused than hear its first sound later."""

BYTES_PER_CHAR = 12
"""Longest spelling of one character in JSON: an escaped surrogate pair."""

OTHER_FIELDS_BYTES = 2**16
"""Room in a body without an upload for everything that is not the text."""

SLOWEST_BYTES_S = 1000
"""Of a body, once its first piece is late: else many clients that send a byte a minute would hold a connection each."""

MAX_INTEGER_DIGITS = 4300
"""In JSON; Python reads no longer one."""

MAX_FIELDS = 64
"""In a form."""

_CHARSETS = frozenset({b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1", b"latin-1"})
"""Of forms; some of Python's others take quadratic time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one client asked for. is_sse: as events instead of plain bytes."""

    speech: SpeechRequest
    is_sse: bool


async def parse_speech(request: Request, limits: ServerSettings, *, upload: Upload, always_streamed: bool) -> Asked:
    """Read and check a whole body. always_streamed: the path that only streams, wav unless told otherwise.

    upload: takes the recording, where the request brings one, and is its `sample` then.
    Raises InvalidValue, TooLarge, Overloaded; Starlette's ClientDisconnect where the client left before its end.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        fields = await _multipart(request, limits, SAMPLE_FIELDS, upload=upload)
    else:
        fields = await _fields_alone(request, limits, is_form=kind == "application/x-www-form-urlencoded")
    body = _validated({name: value for name, value in fields.items() if value is not None})
    if len(body.input) > limits.max_input_chars:
        raise TooLarge(
            f"The text has {len(body.input)} characters; at most {limits.max_input_chars} are accepted.", param="input"
        )
    # A client of HTTP/1.0 knows no chunks: it gets the whole answer and its length.
    can_stream = request.scope.get("http_version") != "1.0"
    sample = upload if upload.data is not None else None
    speech = _speech(body, sample, always_streamed=always_streamed, can_stream=can_stream)
    speech = replace(
        speech,
        client=address_of(request, limits.trusted_proxies),
        max_wait_s=_max_wait_s(request.headers.get(MAX_WAIT_HEADER)),
        cached=body.cache and not always_streamed and not _forbids_cache(request),
    )
    return Asked(speech, is_sse=body.stream_format == "sse")


def _forbids_cache(request: Request) -> bool:
    """Whether headers want a new answer, or no trace of this one, however oddly they say it."""
    said = ",".join(request.headers.getlist("cache-control") + request.headers.getlist("pragma")).lower()
    return "no-cache" in said or "no-store" in said


def _max_wait_s(value: str | None) -> float | None:
    """Raises InvalidValue for what is no number of seconds."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise InvalidValue(f"Invalid '{MAX_WAIT_HEADER}': should be a number of seconds.", param=MAX_WAIT_HEADER)
    return seconds


def _speech(body: SpeechBody, sample: Upload | None, *, always_streamed: bool, can_stream: bool) -> SpeechRequest:
    format = body.response_format or (AudioFormat.WAV if always_streamed else AudioFormat.MP3)
    wants_stream = CONTAINERS[format].is_streamed if body.stream is None else body.stream
    sampling = ("temperature", "top_k", "top_p", "repetition_penalty", "length_penalty", "cfg_value", "lora")
    return SpeechRequest(
        text=body.input,
        voice=body.voice,
        language=body.language or None,
        format=format,
        speed=body.speed,
        sample_rate=body.sample_rate,
        streamed=can_stream and (always_streamed or wants_stream),
        paced=can_stream and (always_streamed or bool(body.stream)),
        params=Params(**{name: getattr(body, name) for name in sampling}),
        seed=body.seed,
        sample=sample,
        transcript=(body.transcript or "").strip() if sample is not None else "",
    )


def _validated(fields: Mapping[str, Any]) -> SpeechBody:
    try:
        return SpeechBody.model_validate(fields)
    except ValidationError as error:
        raise _invalid(error) from None


async def _fields_alone(request: Request, limits: ServerSettings, *, is_form: bool) -> Mapping[str, Any]:
    """A body that can hold no sample. JSON that curl calls a form, for want of a header, is taken as JSON."""
    limit = min(limits.max_body_bytes, limits.max_input_chars * BYTES_PER_CHAR + OTHER_FIELDS_BYTES)
    data = b"".join([piece async for piece in _bounded(request, limit, limits.send_timeout_s)])
    return _form(data) if is_form and not data.lstrip().startswith(b"{") else _json(data)


def _invalid(error: ValidationError) -> InvalidValue:
    """The first field at fault, by name; never what was in it."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    name = str(first["loc"][0])
    said = first["msg"].removeprefix("Value error, ")
    return InvalidValue(f"Invalid '{name}': {said}.", param=name)


def _json(data: bytes) -> Mapping[str, Any]:
    try:
        fields = json.loads(data, parse_int=_integer)
    except (ValueError, RecursionError):
        raise InvalidValue("The body is not valid JSON in UTF-8.") from None
    if not isinstance(fields, dict):
        raise InvalidValue("The body should be a JSON object.")
    return fields


def _integer(digits: str) -> int | float:
    """Python's own refuses more digits than this, which are valid JSON all the same; none of ours is as long."""
    return int(digits) if len(digits) <= MAX_INTEGER_DIGITS else float(digits)


def _form(data: bytes) -> Mapping[str, Any]:
    try:
        return _texts(parse_qsl(data.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
    except ValueError:
        raise InvalidValue("The body is not a valid form in UTF-8.") from None


class _InMemoryParser(MultiPartParser):
    """An upload stays in memory, where the bound on the body bounds it too; nothing private goes to a shared disk.

    Stricter than its base: text that is not in the form's charset, and a form without its end, are errors.
    """

    spool_max_size = 2**62
    _is_whole = False

    def on_part_end(self) -> None:
        if self._current_part.file is None:
            self._current_part.data.decode(self._charset)
        super().on_part_end()

    def on_end(self) -> None:
        self._is_whole = True

    async def parse(self) -> FormData:
        form = await super().parse()
        if not self._is_whole:
            for file in self._files_to_close_on_error:
                file.close()
            raise MultiPartException("The form has no end.")
        return form


async def parse_voice(request: Request, limits: ServerSettings, *, upload: Upload) -> tuple[str, bytes, Notes]:
    """Name, recording and notes of a voice that is to be kept. upload: takes it. Raises as `parse_speech`."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
        raise InvalidValue("A voice comes as a multipart form with name and audio_sample.")
    fields = await _multipart(request, limits, ("audio_sample",), upload=upload)
    if not fields.get("name"):
        raise InvalidValue("Invalid 'name': should name the voice.", param="name")
    if upload.data is None:
        raise InvalidValue("Invalid 'audio_sample': should be a recording of the voice.", param="audio_sample")
    try:
        notes = Notes.model_validate({name: value for name, value in fields.items() if name in NOTES and value})
    except ValidationError as error:
        raise _invalid(error) from None
    return fields["name"], upload.data, notes


async def _multipart(
    request: Request, limits: ServerSettings, sample_fields: tuple[str, ...], *, upload: Upload
) -> Mapping[str, Any]:
    """The text fields; the recording that came with them goes to `upload`, which counts all bytes on the way.

    A browser sends a file field left empty without a name.
    """
    charset = parse_options_header(request.headers["content-type"])[1].get(b"charset") or b"utf-8"
    if charset.strip().lower() not in _CHARSETS:
        raise InvalidValue("The form should be in UTF-8.")
    stream = _bounded(request, limits.max_body_bytes, limits.send_timeout_s, count=upload.grow)
    try:
        form = await _InMemoryParser(
            request.headers, stream, max_files=4, max_fields=MAX_FIELDS, max_part_size=limits.max_body_bytes
        ).parse()
    except (MultiPartException, KeyError, UnicodeError):
        raise InvalidValue("The body is not a valid form in UTF-8.") from None
    try:
        files = [file for name in sample_fields if isinstance(file := form.get(name), UploadFile)]
        samples = [await file.read() for file in files if file.filename or file.size]
        upload.fill(samples[0] if samples else None)
        return _texts(form.multi_items())
    finally:
        await form.close()


def _texts(items: Iterable[tuple[str, Any]]) -> Mapping[str, Any]:
    """The text fields of a form; an empty one counts as absent unless it is one that must not be empty."""
    return {
        name: value
        for name, value in items
        if isinstance(value, str) and (value or name in ("input", "voice", "response_format"))
    }


async def _bounded(
    request: Request, limit: int, timeout_s: float, *, count: Callable[[int], None] | None = None
) -> AsyncGenerator[bytes, None]:
    """The body's pieces. Raises TooLarge as soon as it is certain, at the latest behind `limit` bytes.

    count: told how many bytes there are in all, as far as it is known: before the first one where they are declared.
    Raises TooSlow where one piece takes longer than `timeout_s`, or all of them that and SLOWEST_BYTES_S; and what
    `count` does.
    """
    too_large = TooLarge(f"The request has more than the {limit} bytes that are accepted.")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and len(declared) < 20:
        if int(declared) > limit:
            raise too_large
        if count:
            count(int(declared))
    read = 0
    pieces = request.stream()
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        try:
            async with asyncio.timeout_at(min(loop.time(), began + read / SLOWEST_BYTES_S) + timeout_s):
                piece = await anext(pieces, None)
        except TimeoutError:
            raise TooSlow("The rest of the request did not come.") from None
        if piece is None:
            return
        read += len(piece)
        if read > limit:
            raise too_large
        if count:
            count(read)
        yield piece
