"""What is in a body, and what is not taken: no sockets, the bytes come as a server hands them on."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from functools import cache
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from api.errors import error_response
from api.parse import BYTES_PER_CHAR, OTHER_FIELDS_BYTES, Asked, parse_speech
from api.schemas import SpeechBody
from core.errors import SpeechError
from core.settings import ServerSettings, load_settings
from core.speech import AudioFormat, Params, SpeechRequest
from voices.uploads import Upload, Uploads

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"
OPTIONAL = sorted(set(SpeechBody.model_fields) - {"input"})
LIMITS = {"max_input_chars": 32_768, "max_body_bytes": 26 * 2**20}
HI = ('name="input"', b"hi")
NOBODY = Executor()
"""Who reads recordings: here they only come."""
SAMPLE = ('name="custom_voice_file"; filename="a.wav"', b"RIFF")


def parse(
    body: bytes | Sequence[bytes],
    kind: str | None = JSON,
    *,
    http: str = "1.1",
    always_streamed: bool = False,
    leaves: bool = False,
    length: str | None = None,
    room: Uploads | None = None,
    **limits: int,
) -> Asked:
    """Parse a body that comes in pieces.

    leaves: the client goes instead of ending it. length: what it declared. room: for uploads.
    """
    messages = iter([body] if isinstance(body, bytes) else body)
    last: Message = {"type": "http.disconnect"} if leaves else {"type": "http.request", "body": b""}

    async def receive() -> Message:
        piece = next(messages, None)
        return last if piece is None else {"type": "http.request", "body": piece, "more_body": True}

    sent = {b"content-type": kind, b"content-length": length}
    headers = [(name, value.encode("latin-1")) for name, value in sent.items() if value is not None]
    request = Request(
        {"type": "http", "method": "POST", "path": "/", "headers": headers, "http_version": http}, receive
    )
    taken = bounds(**{**LIMITS, **limits})
    upload = (room or Uploads(2**40, NOBODY)).begin()
    return asyncio.run(parse_speech(request, taken, upload=upload, always_streamed=always_streamed))


def sample_of(asked: Asked) -> bytes | None:
    sample = asked.speech.sample
    return sample.data if isinstance(sample, Upload) else None


@cache
def bounds(**limits: int) -> ServerSettings:
    return load_settings(**limits).server


def refused(*args: Any, **kwargs: Any) -> tuple[int, str | None]:
    """Status and `param` of a refusal, whose body has OpenAI's shape."""
    with pytest.raises(SpeechError) as caught:
        parse(*args, **kwargs)
    answer = error_response(caught.value)
    error = json.loads(bytes(answer.body))["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == ("overloaded_error" if answer.status_code == 503 else "invalid_request_error")
    assert error["message"].endswith(".")
    return answer.status_code, error["param"]


def with_field(name: str, spelled: str) -> bytes:
    return f'{{"input": "hi", "{name}": {spelled}}}'.encode()


def multipart(*parts: tuple[str, bytes]) -> bytes:
    """A whole form. Each part: what tells it apart in its header, and its value."""
    return b"".join(
        b"--x\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n" % (p[0].encode(), p[1]) for p in parts
    ) + (b"--x--\r\n")


def plain_parts(fields: Sequence[tuple[str, str]]) -> bytes:
    return multipart(*((f'name="{name}"', value.encode()) for name, value in fields))


# --- fields


def test_a_bare_text_has_openai_s_defaults() -> None:
    assert parse(b'{"input": "hi"}') == Asked(SpeechRequest("hi"), is_sse=False)


def test_null_is_the_default_for_every_field() -> None:
    assert parse(json.dumps({"input": "hi", **dict.fromkeys(OPTIONAL)}).encode()) == parse(b'{"input": "hi"}')


ALL = [
    ("input", " Hi, 你好 😀 & + = % "),
    ("model", "any/model:name"),
    ("voice", "Nova"),
    ("response_format", "opus"),
    ("speed", "1.5"),
    ("stream_format", "sse"),
    ("stream", "true"),
    ("instructions", "Speak happily."),
    ("language", "zh-CN"),
    ("sample_rate", "16000"),
    ("temperature", "0"),
    ("top_k", "40"),
    ("top_p", "1"),
    ("repetition_penalty", "2"),
    ("length_penalty", "-1"),
    ("cfg_value", "2.0"),
    ("seed", "9223372036854775807"),
    ("cache", "false"),
    ("user", "x"),
]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(JSON, json.dumps(dict(ALL)).encode(), id="json"),
        pytest.param(FORM, urlencode(ALL).encode(), id="form"),
        pytest.param(MULTIPART, plain_parts(ALL), id="multipart"),
    ],
)
def test_all_fields_as_text_mean_the_same_in_every_kind_of_body(kind: str, body: bytes) -> None:
    assert parse(body, kind) == Asked(
        SpeechRequest(
            " Hi, 你好 😀 & + = % ",
            voice="Nova",
            language="zh-CN",
            format=AudioFormat.OPUS,
            speed=1.5,
            sample_rate=16_000,
            streamed=True,
            paced=True,
            params=Params(1.0, 0.0, 40, 1.0, 2.0, -1.0, 2.0),
            seed=2**63 - 1,
            cached=False,
        ),
        is_sse=True,
    )


@pytest.mark.parametrize(
    ("spelled", "speed"),
    [("1", 1), ('"1.0"', 1), ('" 1.5 "', 1.5), ('"2"', 2), ('"5e-1"', 0.5), ("25e-2", 0.25), ("4", 4), ('"4.000"', 4)],
)
def test_a_speed_may_be_a_number_or_its_text(spelled: str, speed: float) -> None:
    assert parse(with_field("speed", spelled)).speech.speed == speed


@pytest.mark.parametrize(
    "spelled",
    [
        *["NaN", "-Infinity", "1e400", "9" * 4000, "0.2499", "4.0001", "true"],
        *['"nan"', '"inf"', '"' + "9" * 5000 + '"', '"1,5"', '"1_0"', '"٣"', '""'],
    ],
    ids=lambda spelled: ascii(spelled[:9]),
)
def test_any_other_speed_is_refused_by_name(spelled: str) -> None:
    assert refused(with_field("speed", spelled)) == (422, "speed")


@pytest.mark.parametrize(
    ("name", "spelled"), [("top_k", "40.5"), ("top_k", "true"), ("seed", "-1"), ("seed", str(2**63)), ("cache", "2")]
)
def test_a_whole_number_or_a_yes_is_not_guessed(name: str, spelled: str) -> None:
    assert refused(with_field(name, spelled)) == (422, name)


@pytest.mark.parametrize("name", ["input", *OPTIONAL])
def test_a_wrong_type_is_refused_by_its_field_s_name(name: str) -> None:
    half_a_pair = [] if name == "voice" else ['"a\\ud800"']  # which is only one more unknown voice
    for spelled in ("{}", "[[1]]", '{"id": 7}', "9" * 4000, "NaN", "[" * 200 + "]" * 200, *half_a_pair):
        assert refused(with_field(name, spelled)) == (422, name), spelled[:9]


@pytest.mark.parametrize("name", ["input", *OPTIONAL])
def test_a_refusal_does_not_repeat_what_was_sent(name: str) -> None:
    with pytest.raises(SpeechError) as caught:
        parse(with_field(name, '["s3cret"]'))
    assert "s3cret" not in caught.value.message
    assert f"'{name}'" in caught.value.message


@pytest.mark.parametrize(
    ("spelled", "voice"),
    [('"nova"', "nova"), ('{"id": "nova"}', "nova"), ('{"id": " NOVA ", "x": [1]}', " NOVA "), ('"  "', "  ")],
)
def test_a_voice_is_a_name_or_an_object_with_one(spelled: str, voice: str) -> None:
    assert parse(with_field("voice", spelled)).speech.voice == voice


@pytest.mark.parametrize(
    "spelled", ['{"id": ""}', '{"id": null}', '{"id": {"id": "nova"}}', '["nova"]', '{"ID": "nova"}', "false", '""']
)
def test_any_other_voice_is_refused_by_name(spelled: str) -> None:
    assert refused(with_field("voice", spelled)) == (422, "voice")


def test_unknown_keys_are_ignored_whatever_they_hold() -> None:
    for name in ("lang_code", "backend", "user", "\\ud800", "", "__class__", "self", "Voice"):
        assert parse(with_field(name, '{"a": [NaN, "\\ud800"]}')) == parse(b'{"input": "hi"}')


@pytest.mark.parametrize(
    ("fields", "sent", "streamed", "paced"),
    [
        pytest.param({}, {}, True, False, id="mp3 streams"),
        pytest.param({"response_format": "wav"}, {}, False, False, id="wav has exact sizes"),
        pytest.param({"response_format": "wav", "stream": True}, {}, True, True, id="wav streams when told to"),
        pytest.param({"stream": False}, {}, False, False, id="mp3 is whole when told to"),
        pytest.param({}, {"always_streamed": True}, True, True, id="the streaming path streams"),
        pytest.param({"stream": False}, {"always_streamed": True}, True, True, id="the path has the last word"),
        pytest.param({"stream": True}, {"http": "1.0"}, False, False, id="HTTP/1.0 knows no chunks"),
        pytest.param({}, {"http": "1.0", "always_streamed": True}, False, False, id="nor on the streaming path"),
        pytest.param({"stream": True}, {"http": "2"}, True, True, id="a newer HTTP does"),
    ],
)
def test_the_format_the_field_the_path_and_the_client_decide_what_streams(
    fields: dict[str, Any], sent: dict[str, Any], streamed: bool, paced: bool
) -> None:
    speech = parse(json.dumps({"input": "hi", **fields}).encode(), **sent).speech
    assert (speech.streamed, speech.paced) == (streamed, paced)


def test_the_streaming_path_speaks_wav_unless_told_otherwise() -> None:
    assert parse(b'{"input": "hi"}', always_streamed=True).speech.format is AudioFormat.WAV
    assert parse(with_field("response_format", '"pcm"'), always_streamed=True).speech.format is AudioFormat.PCM


# --- JSON


def test_a_body_that_is_no_form_is_json() -> None:
    for kind in (None, "", JSON + "; charset=utf-8", JSON + "; charset=none", "text/plain", ";", "é", "form-data"):
        assert parse(b'{"input": "hi"}', kind) == parse(b'{"input": "hi"}')


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_json_is_read_in_any_encoding_that_it_can_have(encoding: str) -> None:
    assert parse('{"input": "你好 😀"}'.encode(encoding)).speech.text == "你好 😀"
    assert parse('{"input": "\\ud83d\\ude00"}'.encode(encoding)).speech.text == "😀"


@pytest.mark.parametrize(
    "body",
    [
        *[b'{"input": "\xff"}', '{"input": "café"}'.encode("latin-1"), b'{"input": "a\nb"}'],
        *[b'{"input": "hi"} {}', b'{"input": "hi",}', b"{'input': 'hi'}", b'{"input": "hi", "x": 0x1}'],
        *[b"null", b"7", b"\x00", b"\xef\xbb\xbf"],
    ],
    ids=ascii,
)
def test_a_body_that_is_no_json_object_is_refused_without_a_name(body: bytes) -> None:
    assert refused(body) == (422, None)


@pytest.mark.parametrize(
    "body", [b'{"input": "\xed\xa0\x80"}', '{"input": "a\ud800"}'.encode("utf-16-le", "surrogatepass")], ids=ascii
)
def test_raw_halves_of_surrogate_pairs_are_refused_too(body: bytes) -> None:
    assert refused(body) == (422, "input")


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_nesting_is_ignored_until_it_is_too_deep_to_read(opening: bytes) -> None:
    closing = {b"[": b"]"}.get(opening, b"}")
    assert parse(with_field("x", "@").replace(b"@", opening * 200 + b"1" + closing * 200)).speech.text == "hi"
    assert refused(with_field("x", "@").replace(b"@", opening * 70_000)) == (422, None)


# --- forms


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(JSON, b'{"input": "one", "input": "hi", "speed": 9, "speed": 2}', id="json"),
        pytest.param(FORM, b"input=one&input=hi&speed=9&speed=2", id="form"),
        pytest.param(FORM, b"input=hi&speed=2&speed=", id="an empty field behind it"),
        pytest.param(
            MULTIPART, plain_parts([("input", "one"), ("speed", "9"), ("input", "hi"), ("speed", "2")]), id="multipart"
        ),
    ],
)
def test_the_last_of_several_fields_of_one_name_wins(kind: str, body: bytes) -> None:
    assert parse(body, kind).speech == SpeechRequest("hi", speed=2)


def test_empty_fields_of_a_form_count_as_absent() -> None:
    fields = [("input", "hi"), *((name, "") for name in OPTIONAL if name not in ("voice", "response_format"))]
    assert parse(urlencode(fields).encode(), FORM) == parse(b'{"input": "hi"}')
    assert parse(plain_parts(fields), MULTIPART) == parse(b'{"input": "hi"}')


@pytest.mark.parametrize("name", ["input", "voice", "response_format"])
def test_what_must_not_be_empty_is_refused_in_a_form_too(name: str) -> None:
    assert refused(f"input=hi&{name}=".encode(), FORM) == (422, name)
    assert refused(plain_parts([("input", "hi"), (name, "")]), MULTIPART) == (422, name)


@pytest.mark.parametrize("body", [b"", b"&&&", b"input", b"=hi", b"Input=hi", b"input[]=hi", b"\x00"], ids=ascii)
def test_a_form_without_a_text_is_refused_for_its_text(body: bytes) -> None:
    assert refused(body, FORM) == (422, "input")


@pytest.mark.parametrize(
    ("body", "text"),
    [(b"&&input=a+b%20c&&", "a b c"), (b"input=100%", "100%"), (b"input=%u1234;speed=9", "%u1234;speed=9")],
)
def test_a_form_is_read_as_browsers_write_it(body: bytes, text: str) -> None:
    assert parse(body, FORM).speech == SpeechRequest(text)


def test_a_multipart_form_is_known_by_any_spelling_of_its_type() -> None:
    charsets = [f"{MULTIPART}; charset={name}" for name in ("utf-8", "UTF8", "", "us-ascii")]
    spellings = (
        "Multipart/Form-Data; Boundary=x",
        'multipart/form-data; boundary="x"',
        "multipart/form-data;boundary=x;a=b",
    )
    for kind in (*spellings, *charsets):
        assert parse(multipart(HI), kind).speech == SpeechRequest("hi"), kind[:50]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param("multipart/form-data", multipart(HI), id="no boundary"),
        pytest.param("multipart/form-data; boundary=", multipart(HI), id="an empty boundary"),
        pytest.param("multipart/form-data; boundary=" + "x" * 9000, multipart(HI), id="a huge boundary"),
        pytest.param("multipart/form-data; boundary=é", multipart(HI), id="another boundary"),
        pytest.param(MULTIPART, multipart(HI, ("", b"hi")), id="a part without a name"),
        pytest.param(MULTIPART, b"--x\r\n\r\nhi\r\n--x--\r\n", id="a part without a header"),
        pytest.param(MULTIPART, multipart(HI, ("name*=none''%ff", b"hi")), id="a name in no encoding"),
        pytest.param(MULTIPART, multipart(HI, *[('name="a"', b"")] * 64), id="65 fields"),
        pytest.param(MULTIPART, multipart(HI, *[SAMPLE] * 5), id="5 files"),
        pytest.param(MULTIPART, multipart(HI, ('name="a"\r\n' + "b: c\r\n" * 5000 + "b: c", b"")), id="5000 headers"),
        pytest.param(FORM, b"a=1&" * 2000 + b"input=hi", id="2000 fields"),
    ],
)
def test_a_broken_or_a_crowded_form_is_refused(kind: str, body: bytes) -> None:
    assert refused(body, kind) == (422, None)


def test_a_form_may_have_64_fields_and_4_files() -> None:
    assert sample_of(parse(multipart(HI, *[('name="a"', b"")] * 63, *[SAMPLE] * 4), MULTIPART)) == SAMPLE[1]


@pytest.mark.parametrize("name", ["custom_voice_file", "speaker_wav"])
def test_a_file_of_either_name_is_a_sample_and_a_text_is_none(name: str) -> None:
    upload = multipart(HI, (f'name="{name}"; filename="../a.wav"', b"RIFF"))
    assert sample_of(parse(upload, MULTIPART)) == b"RIFF"
    assert parse(plain_parts([("input", "hi"), (name, "a.wav")]), MULTIPART).speech == SpeechRequest("hi")
    assert parse(multipart(HI, ('name="other"; filename="a.wav"', b"RIFF")), MULTIPART).speech == SpeechRequest("hi")


def test_a_text_that_comes_as_a_file_is_no_text() -> None:
    assert refused(multipart(('name="input"; filename="a.txt"', b"hi")), MULTIPART) == (422, "input")


@pytest.mark.parametrize("step", [1, 2, 7])
def test_a_form_may_come_in_pieces_of_any_size(step: int) -> None:
    body = multipart(HI, SAMPLE, ('name="speed"', b"2"))
    pieces = [body[start : start + step] for start in range(0, len(body), step)]
    asked = parse(pieces, MULTIPART)
    assert (asked.speech.text, asked.speech.speed, sample_of(asked)) == ("hi", 2, SAMPLE[1])


# --- sizes


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(JSON, b'{"input": "' + b"\\ud83d\\ude00" * 100 + b'"}', id="json"),
        pytest.param(FORM, b"input=" + b"%F0%9F%98%80" * 100, id="form"),
        pytest.param(MULTIPART, plain_parts([("input", "😀" * 100)]), id="multipart"),
    ],
)
def test_the_limit_counts_characters_however_they_are_spelled(kind: str, body: bytes) -> None:
    assert len(parse(body, kind, max_input_chars=100).speech.text) == 100
    assert refused(body, kind, max_input_chars=99) == (413, "input")


def test_json_may_have_the_longest_spelling_of_its_text_and_no_more_than_some_room_beside_it() -> None:
    limit = 100 * BYTES_PER_CHAR + OTHER_FIELDS_BYTES
    longest = (b'{"input": "' + b"\\ud83d\\ude00" * 100 + b'"}').ljust(limit)
    assert parse(longest, max_input_chars=100).speech.text == "😀" * 100
    assert refused(longest + b" ", max_input_chars=100) == (413, None)
    assert refused(b" " * 2000, max_body_bytes=1024) == (413, None)


def test_an_upload_may_fill_the_body_to_its_limit() -> None:
    empty = len(multipart(HI, (SAMPLE[0], b"")))
    full = multipart(HI, (SAMPLE[0], b"a" * (4096 - empty)))
    assert parse(full, MULTIPART, max_body_bytes=4096).speech.sample
    assert refused(full + b" ", MULTIPART, max_body_bytes=4096) == (413, None)


def test_an_upload_counts_what_its_request_holds_and_then_the_recording_alone() -> None:
    body = multipart(HI, ('name="input"', b"a" * 1000), SAMPLE)
    for length in (None, str(len(body))):
        room = Uploads(len(body) + 100, NOBODY)
        held = parse([body[:500], body[500:]], MULTIPART, room=room, length=length)
        assert room.held == len(SAMPLE[1])
        assert refused(body[:-20] + b"a" * 200, MULTIPART, room=room) == (503, None)
        assert held.speech.sample is not None
        held.speech.sample.close()


def test_where_there_is_no_room_for_an_upload_its_declared_length_is_enough_to_say_so() -> None:
    room = Uploads(5000, NOBODY)
    room.reserve(1)
    unread: Any = Untouched()
    assert refused(unread, MULTIPART, length="5000", room=room) == (503, None)
    assert room.held == 1


class Untouched:
    """Pieces that nobody may ask for."""

    def __iter__(self) -> Iterator[bytes]:
        yield b""
        raise AssertionError("the body was read")


@pytest.mark.parametrize("kind", [JSON, FORM, MULTIPART])
def test_a_body_that_is_declared_too_long_is_refused_unread(kind: str) -> None:
    unread: Any = Untouched()
    assert refused(unread, kind, length="27262977") == (413, None)


def test_a_body_without_an_end_is_cut_at_the_limit() -> None:
    endless: Any = iter(lambda: b" " * 1024, b"")
    assert refused(endless, max_body_bytes=10_000) == (413, None)
    assert sum(1 for _ in zip(endless, range(3), strict=False)) == 3


@pytest.mark.parametrize("length", ["", "-1", "²", "1e9", "9" * 30, "x"])
def test_a_length_that_is_no_number_says_nothing(length: str) -> None:
    assert parse(b'{"input": "hi"}', length=length).speech.text == "hi"


@pytest.mark.parametrize("kind", [JSON, FORM, MULTIPART])
def test_a_client_that_leaves_in_the_middle_is_not_answered(kind: str) -> None:
    with pytest.raises(ClientDisconnect):
        parse(multipart(HI, SAMPLE)[:-20], kind, leaves=True)


def status(body: bytes, kind: str) -> int:
    try:
        parse(body, kind)
    except SpeechError as error:
        return error.status
    return 200


FRAGMENTS = [b"--x", b"--", b"\r\n", b"\r\n\r\n", b"x", b"\r", b'Content-Disposition: form-data; name="input"', b"\xff"]


@given(
    st.one_of(st.binary(max_size=40), st.lists(st.sampled_from(FRAGMENTS), max_size=12).map(b"".join)),
    st.sampled_from([JSON, FORM, MULTIPART]),
)
@settings(max_examples=60, deadline=None)
def test_no_bytes_are_ever_our_mistake(body: bytes, kind: str) -> None:
    assert status(b"--x\r\n" + body if kind == MULTIPART else body, kind) in (200, 422)


# --- not yet


@pytest.mark.parametrize("charset", ["undefined", "punycode"])
def test_a_charset_that_cannot_read_the_form_is_refused(charset: str) -> None:
    assert refused(multipart(HI, ('name="voice"', b"\xff")), f"{MULTIPART}; charset={charset}")[0] == 422


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(FORM, b"input=%E4%BD%A0%FF", id="form"),
        pytest.param(MULTIPART, multipart(('name="input"', "你好".encode() + b"\xff")), id="multipart"),
    ],
)
def test_a_form_that_is_not_utf_8_is_refused_like_json(kind: str, body: bytes) -> None:
    assert refused(body, kind)[0] == 422


def test_a_form_that_curl_did_not_escape_is_read_as_utf_8() -> None:
    assert parse("input=你好".encode(), FORM).speech.text == "你好"


def test_a_multipart_form_without_its_end_is_refused() -> None:
    assert refused(multipart(HI, ('name="speed"', b"2"))[:-12], MULTIPART) == (422, None)


def test_a_file_field_in_which_nothing_was_chosen_is_no_sample() -> None:
    body = multipart(HI, ('name="custom_voice_file"; filename=""\r\nContent-Type: application/octet-stream', b""))
    assert parse(body, MULTIPART).speech.sample is None


def test_a_long_text_in_a_form_is_counted_like_any_other() -> None:
    assert refused(b"input=" + b"a" * 2**21, FORM)[0] == 413
    assert parse(b"input=" + b"%F0%9F%98%80" * 90_000, FORM, max_input_chars=90_000).speech.text == "😀" * 90_000


def test_a_form_without_an_upload_is_bounded_like_json() -> None:
    assert refused(b"&" * 70_000, FORM, max_input_chars=100) == (413, None)


def test_a_text_far_too_long_costs_little_more_than_reading_it() -> None:
    def seconds(name: str) -> float:
        body = multipart(HI, (f'name="{name}"', b"a" * 2**19))
        began = time.perf_counter()
        with pytest.raises(SpeechError):
            parse(body, MULTIPART, max_input_chars=1)
        return time.perf_counter() - began

    assert min(seconds("input") for _ in range(3)) < 4 * min(seconds("other") for _ in range(3)) + 0.005


@pytest.mark.parametrize("pause_s", [60, 0.01], ids=["nothing comes", "a byte now and then"])
@pytest.mark.parametrize("kind", [JSON, FORM, MULTIPART])
def test_a_body_whose_end_does_not_come_is_408(kind: str, pause_s: float) -> None:
    async def scene() -> None:
        bytes_ = iter(b'--x\r\nContent-Disposition: form-data; name="input"\r\n\r\n' + b"a" * 1000)

        async def receive() -> Message:
            await asyncio.sleep(pause_s)
            return {"type": "http.request", "body": bytes([next(bytes_)]), "more_body": True}

        headers = [(b"content-type", kind.encode())]
        request = Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)
        upload = Uploads(2**20, NOBODY).begin()
        limits = load_settings(send_timeout_s=0.05).server
        with pytest.raises(SpeechError) as caught:
            async with asyncio.timeout(5):
                await parse_speech(request, limits, upload=upload, always_streamed=False)
        assert caught.value.status == 408

    asyncio.run(scene())


@pytest.mark.parametrize("charset", ["punycode", "idna", "utf-7", "unicode_escape", "rot13", "none", "é", "a" * 9000])
def test_a_form_in_another_charset_is_refused_before_it_is_read(charset: str) -> None:
    assert refused(multipart(HI), f"{MULTIPART}; charset={charset}") == (422, None)


def test_an_integer_that_python_would_not_read_is_ignored_where_it_is_unknown_and_named_where_it_is_not() -> None:
    digits = "9" * 5000
    assert parse(f'{{"input": "hi", "unknown": {digits}}}'.encode()).speech == SpeechRequest("hi")
    assert refused(f'{{"input": "hi", "seed": {digits}}}'.encode()) == (422, "seed")
