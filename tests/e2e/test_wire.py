"""What clients send, and what they get back: status, headers, shapes. The engine speaks in tones."""

import base64
import io
import json
import re
import socket
import wave

import httpx
import pytest
from openai import BadRequestError, OpenAI, UnprocessableEntityError

from harness.server import cached_server, running_server

TEXT = "one two three four"
NAMES = "alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse".split()
MIMES = {
    "mp3": ("audio/mpeg", b"\xff"),
    "opus": ("audio/ogg", b"OggS"),
    "aac": ("audio/aac", b"\xff\xf1"),
    "flac": ("audio/flac", b"fLaC"),
    "wav": ("audio/wav", b"RIFF"),
    "pcm": ("audio/pcm", b""),
}


def assert_refused(answer: httpx.Response, status: int, param: str | None, code: str | None = None) -> None:
    """The status, and OpenAI's body with all four keys."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["param"] == param
    assert error["message"]
    assert code in (None, error["code"])


# --- formats


@pytest.mark.parametrize("path", ["/v1/audio/speech", "/v1/audio/speech/stream"])
@pytest.mark.parametrize("format", MIMES)
def test_the_media_type_says_what_the_bytes_are(tones, format, path):
    answer = tones.speak(TEXT, path, response_format=format)
    mime, magic = MIMES[format]
    assert answer.status_code == 200
    assert answer.headers["content-type"] == mime
    assert answer.content.startswith(magic)


def test_mp3_is_the_default_and_wav_on_the_streaming_path(tones):
    assert tones.speak(TEXT).headers["content-type"] == "audio/mpeg"
    assert tones.speak(TEXT, "/v1/audio/speech/stream").headers["content-type"] == "audio/wav"


@pytest.mark.parametrize("format", ["ogg", "MP3 ", "MP3", "", "wave", "m4a", 3, ["mp3"]], ids=repr)
@pytest.mark.parametrize("path", ["/v1/audio/speech", "/v1/audio/speech/stream"])
def test_an_unknown_format_is_refused_and_never_replaced(tones, format, path):
    assert_refused(tones.speak(TEXT, path, response_format=format), 422, "response_format")


def test_a_plain_wav_carries_exact_sizes_and_a_streamed_one_all_ones(tones):
    plain = tones.speak(TEXT, response_format="wav")
    with wave.open(io.BytesIO(plain.content)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 24_000)
        assert len(plain.content) == 44 + 2 * file.getnframes()
    assert int(plain.headers["content-length"]) == len(plain.content)
    for streamed in (
        tones.speak(TEXT, "/v1/audio/speech/stream"),
        tones.speak(TEXT, response_format="wav", stream=True),
    ):
        assert streamed.content[4:8] == streamed.content[40:44] == b"\xff\xff\xff\xff"
        assert streamed.content.count(b"RIFF") == 1
        assert streamed.content[44:] == plain.content[44:]
        assert streamed.headers["transfer-encoding"] == "chunked"


@pytest.mark.parametrize("rate", [22_050, 44_100, 48_000])
def test_pcm_is_24_khz_whatever_the_engine_makes(tmp_path, rate):
    with running_server(tmp_path, TTS_BACKEND=f"tone_backend:make_at_{rate}") as server:
        pcm = server.speak(TEXT, response_format="pcm")
        with wave.open(io.BytesIO(server.speak(TEXT, response_format="wav").content)) as file:
            seconds = file.getnframes() / file.getframerate()
        assert pcm.headers["x-sample-rate"] == "24000"
        assert len(pcm.content) / 2 / 24_000 == pytest.approx(seconds, rel=0.01)
        other = server.speak(TEXT, response_format="pcm", sample_rate=8000)
        assert other.headers["x-sample-rate"] == "8000"
        assert len(other.content) / 2 / 8000 == pytest.approx(seconds, rel=0.01)


@pytest.mark.parametrize("rate", [0, -1, 12_345, "fast", 1e9])
def test_a_rate_that_the_format_cannot_carry_is_refused(tones, rate):
    assert_refused(tones.speak(TEXT, sample_rate=rate), 422, "sample_rate")


# --- fields


@pytest.mark.parametrize(
    "body",
    [
        '{"input": ""}',
        '{"input": "  "}',
        '{"input": "\\n\\t"}',
        "{}",
        '{"input": null}',
        '{"input": 7}',
        '{"input": ["a"]}',
        '{"input": "\\ud800"}',
    ],
)
def test_input_that_is_no_text_is_refused_before_any_work(tones, body):
    assert_refused(tones.http.post("/v1/audio/speech", content=body), 422, "input")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"text"', b"\xff\xfe", b"[" * 100_000],
    ids=lambda body: ascii(body[:12]),
)
def test_a_body_that_is_no_json_object_is_refused(tones, body):
    assert_refused(tones.http.post("/v1/audio/speech", content=body), 422, None)


@pytest.mark.parametrize("text", ["😀", "😀 🎉", "***", "...", "```\nprint(1)\n```", "—", "\u200b"], ids=ascii)
def test_text_with_nothing_to_say_is_a_short_silence(tones, text):
    answer = tones.speak(text, response_format="pcm")
    assert answer.status_code == 200
    assert 0.1 <= len(answer.content) / 48_000 <= 0.5
    assert not any(answer.content)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {"model": None, "voice": None, "response_format": None, "speed": None, "stream": None}, id="nulls"
        ),
        pytest.param({"lang_code": "a", "backend": "openai", "user": "x", "nested": {"a": [1]}}, id="unknown keys"),
        pytest.param({"speed": 1}, id="an integer speed"),
        pytest.param({"speed": "1.0"}, id="a speed as text"),
        pytest.param({"model": "any/model:name"}, id="any model"),
        pytest.param({"instructions": "Speak happily."}, id="instructions"),
        pytest.param({"voice": {"id": "alloy"}}, id="a voice object"),
        pytest.param({"cache": False, "seed": 7, "temperature": 0, "top_p": 1, "cfg_value": 2}, id="ours"),
    ],
)
def test_what_clients_send_is_taken(tones, fields):
    assert tones.speak(TEXT, **fields).status_code == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("speed", value) for value in (0, 0.24, 4.1, 5, -1, "fast", True, [1])],
        *[("stream_format", value) for value in ("json", 1)],
        *[("temperature", value) for value in (-0.1, 2.1)],
        *[("top_p", value) for value in (0, 1.1)],
        ("top_k", 0),
        ("repetition_penalty", 0.5),
        ("length_penalty", 11),
        ("cfg_value", 6),
        ("seed", -1),
        ("model", 7),
        ("voice", ""),
        ("voice", 7),
        ("voice", {"name": "alloy"}),
        ("instructions", "x" * 4097),
        ("stream", "maybe"),
    ],
    ids=repr,
)
def test_a_value_out_of_range_is_refused_by_name(tones, field, value):
    assert_refused(tones.speak(TEXT, **{field: value}), 422, field)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_speed_that_is_no_number_is_refused(tones, value):
    body = f'{{"input": "{TEXT}", "speed": {value}}}'
    assert_refused(tones.http.post("/v1/audio/speech", content=body), 422, "speed")


@pytest.mark.parametrize("kind", ["form", "multipart"])
def test_forms_are_taken_like_json(tones, kind):
    fields = {"input": TEXT, "voice": " NOVA ", "speed": "1.0", "response_format": "pcm", "model": "", "user": "x"}
    form = {"data": fields} if kind == "form" else {"files": {name: (None, value) for name, value in fields.items()}}
    assert tones.http.post("/v1/audio/speech", **form).content == tones.speak(TEXT, response_format="pcm").content


@pytest.mark.parametrize(
    ("field", "value"), [("speed", "fast"), ("input", ""), ("response_format", "ogg"), ("voice", "")]
)
def test_forms_are_refused_like_json(tones, field, value):
    answer = tones.http.post("/v1/audio/speech", files={"input": (None, TEXT), field: (None, value)})
    assert_refused(answer, 422, field)


def test_a_sample_for_a_backend_that_cannot_clone_is_refused(tones):
    for name in ("custom_voice_file", "speaker_wav"):
        answer = tones.http.post(
            "/v1/audio/speech", data={"input": TEXT}, files={name: ("../a.wav", b"RIFF" * 500_000)}
        )
        assert_refused(answer, 400, "custom_voice_file", "cloning_not_supported")


def test_a_broken_form_is_refused(tones):
    for body in (b"--x\r\nbroken", b"", b"\xff" * 100):
        answer = tones.http.post(
            "/v1/audio/speech", content=body, headers={"content-type": "multipart/form-data; boundary=x"}
        )
        assert answer.status_code == 422
        assert answer.json()["error"]["type"] == "invalid_request_error"
    answer = tones.http.post("/v1/audio/speech", content=b"x", headers={"content-type": "multipart/form-data"})
    assert_refused(answer, 422, None)


def test_text_beyond_the_limit_is_refused_with_the_limit(tones):
    assert tones.speak("a" * 32_768).status_code == 200
    answer = tones.speak("a" * 32_769)
    assert_refused(answer, 413, "input")
    assert "32768" in answer.json()["error"]["message"]
    assert_refused(tones.http.post("/v1/audio/speech", content=b" " * 2_000_000), 413, None)


def test_a_body_that_grows_beyond_the_limit_without_a_length_is_refused(tones):
    def pieces():
        for _ in range(64):
            yield b" " * 2**16

    assert_refused(tones.http.post("/v1/audio/speech", content=pieces()), 413, None)


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/json; charset=utf-8"},
        {"content-type": ""},
        {"content-type": "text/plain"},
        {"accept": "application/octet-stream"},
        {"accept": "image/png"},
        {"authorization": "Bearer sk-any"},
        {"authorization": "Bearer"},
        {"expect": "100-continue"},
    ],
    ids=str,
)
def test_any_header_that_clients_send_is_taken(tones, headers):
    body = json.dumps({"input": TEXT}).encode()
    assert tones.http.post("/v1/audio/speech", content=body, headers=headers).status_code == 200


# --- voices and lists


@pytest.mark.parametrize("voice", [*NAMES, "ALLOY", " alloy ", {"id": "alloy"}, {"id": "Alloy", "x": 1}], ids=str)
def test_openai_s_names_are_voices(tones, voice):
    assert tones.speak(TEXT, voice=voice).status_code == 200


@pytest.mark.parametrize(
    "voice",
    ["nobody", "x" * 5000, "../../etc/passwd", "/etc/passwd", "..%2f..", "a\\b", "a\0", "."],
    ids=lambda voice: ascii(voice[:20]),
)
def test_any_other_voice_is_refused_in_json_and_in_forms_alike(tones, voice):
    as_json = tones.speak(TEXT, voice=voice)
    assert_refused(as_json, 400, "voice", "unknown_voice")
    assert voice[:20] not in as_json.json()["error"]["message"] or voice == "."
    assert tones.http.post("/v1/audio/speech", data={"input": TEXT, "voice": voice}).json() == as_json.json()


@pytest.mark.parametrize("base", ["", "/v1"])
def test_lists_have_the_shapes_that_clients_read(tones, base):
    voices = tones.http.get(f"{base}/audio/voices").json()
    assert {"id": "alloy", "name": "Alloy"}.items() <= voices["voices"][0].items()
    assert {voice["id"] for voice in voices["voices"]} >= set(NAMES)
    assert tones.http.get(f"{base}/voices").json() == voices
    assert voices["default"] == "alloy"
    assert voices["data"][0] == {
        "id": "alloy", "object": "voice", "name": "Alloy", "wav_path": "standard/alloy.wav", "language": "en"
    }  # fmt: skip
    models = tones.http.get(f"{base}/audio/models").json()["models"]
    assert [model["id"] for model in models] == ["tts-1", "tts-1-hd", "gpt-4o-mini-tts"]
    assert tones.http.get(f"{base}/models").json() == {"object": "list", "data": models}
    assert tones.http.get(f"{base}/models").json()["data"][0]["created"] == models[0]["created"]


# --- paths and methods


@pytest.mark.parametrize(
    "path", ["/v1/audio/speech", "/audio/speech", "/v1/v1/audio/speech", "/v1/audio/speech/", "//v1//audio/speech"]
)
def test_the_path_is_found_with_and_without_v1_and_slashes(tones, path):
    assert tones.http.post(f"{tones.url}{path}", json={"input": TEXT}).status_code == 200


@pytest.mark.parametrize(("method", "path", "status"), [
    ("GET", "/v1/audio/speech", 405),
    ("PUT", "/v1/audio/speech", 405),
    ("HEAD", "/v1/audio/speech", 405),
    ("DELETE", "/v1/voices", 405),
    ("POST", "/v1/audio/speeches", 404),
    ("GET", "/v2/audio/speech", 404),
    ("GET", "/docs", 404),
    ("GET", "/..%2f..%2fetc/passwd", 404),
])  # fmt: skip
def test_other_paths_and_methods_name_the_right_one(tones, method, path, status):
    answer = tones.http.request(method, path)
    assert answer.status_code == status
    if method != "HEAD":
        assert "POST /v1/audio/speech" in answer.json()["error"]["message"]
        assert "passwd" not in answer.text


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/", "/health", "/live", "/ready"])
def test_probes_answer_get_and_head(tones, path):
    assert tones.http.get(path).status_code == 200
    head = tones.http.head(path)
    assert head.status_code == 200
    assert head.content == b""


def test_a_client_of_http_1_0_gets_a_length_and_no_chunks(tones):
    body = json.dumps({"input": TEXT, "response_format": "mp3"}).encode()
    with socket.create_connection(("127.0.0.1", tones.port), 10) as wire:
        wire.sendall(b"POST /v1/audio/speech HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        answer = b"".join(iter(lambda: wire.recv(65536), b""))
    head, _, content = answer.partition(b"\r\n\r\n")
    headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    assert b" 200 " in head.split(b"\r\n")[0] + b" "
    assert b"transfer-encoding" not in headers
    assert int(headers[b"content-length"]) == len(content)


def test_every_answer_has_a_request_id_and_a_plain_one_is_kept(tones):
    assert tones.http.get("/live", headers={"x-request-id": "abc-123"}).headers["x-request-id"] == "abc-123"
    for bad in ("a b", "x" * 65, "a/b"):
        made = tones.http.get("/nothing", headers={"x-request-id": bad}).headers["x-request-id"]
        assert made != bad
        assert len(made) == 32


def test_answers_say_how_they_were_made(tones):
    streamed = tones.speak(TEXT)
    assert streamed.headers["x-cache"] == "DISABLED"
    assert streamed.headers["x-route"] == "HOT"
    assert streamed.headers["x-accel-buffering"] == "no"
    assert "x-accel-buffering" not in tones.speak(TEXT, response_format="wav").headers


def test_refusals_say_what_they_were_to_the_cache(tones, tmp_path):
    assert tones.speak(TEXT, voice="nobody").headers["x-cache"] == "DISABLED"
    with cached_server(tmp_path, TTS_BACKEND="tone_backend:make") as server:
        assert server.speak(TEXT, voice="nobody").headers["x-cache"] == "MISS"
        assert server.speak("raise please", cache=False).headers["x-cache"] == "BYPASS"
        sent = server.http.post("/v1/audio/speech", data={"input": TEXT}, files={"speaker_wav": ("a.wav", b"RIFF")})
        assert (sent.status_code, sent.headers["x-cache"], sent.headers["x-route"]) == (400, "ADHOC", "ADHOC")


def test_no_other_site_may_call_unless_it_is_named(tones, tmp_path):
    ask = {"origin": "https://a.example", "access-control-request-method": "POST"}
    assert "access-control-allow-origin" not in tones.http.get("/v1/voices", headers=ask).headers
    with running_server(tmp_path, TTS_BACKEND="tone_backend:make", CORS_ALLOW_ORIGINS="https://a.example") as server:
        allowed = server.http.options("/v1/audio/speech", headers=ask)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == "https://a.example"
        assert "DELETE" in allowed.headers["access-control-allow-methods"]
        other = server.http.options("/v1/audio/speech", headers={**ask, "origin": "https://b.example"})
        assert "access-control-allow-origin" not in other.headers


# --- events


def events(answer: httpx.Response) -> list[dict]:
    """By the rules of LiveKit's reader: lines that start with `data: `, [DONE] ends."""
    lines = [line for line in answer.text.split("\n") if line.strip()]
    assert all(line.startswith("data: ") for line in lines)
    return [json.loads(line.removeprefix("data: ")) for line in lines if line != "data: [DONE]"]


@pytest.mark.parametrize("format", MIMES)
def test_events_carry_the_plain_answer(tones, format):
    text = "one two three, " * 40
    answer = tones.speak(text, response_format=format, stream_format="sse", model="gpt-4o-mini-tts")
    assert answer.headers["content-type"].startswith("text/event-stream")
    *deltas, done = events(answer)
    assert {delta["type"] for delta in deltas} == {"speech.audio.delta"}
    audio = b"".join(base64.b64decode(delta["audio"]) for delta in deltas)
    plain = tones.speak(text, response_format=format).content
    if format == "opus":  # each answer has its own random stream number, and check sums over it
        assert len(audio) == len(plain)
        audio, plain = (re.sub(rb"(OggS.{10}).{12}", rb"\1", each, flags=re.DOTALL) for each in (audio, plain))
    assert audio == plain
    assert done["type"] == "speech.audio.done"
    usage = done["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0


BREAKS = "one two three four five six.\n\n" + "raise after that."


def test_an_error_behind_the_first_sound_is_an_event_and_then_the_end(tones):
    *deltas, last = events(tones.speak(BREAKS, response_format="pcm", stream_format="sse"))
    assert deltas
    assert last["type"] == "speech.audio.error"
    assert set(last["error"]) == {"message", "type", "param", "code"}


def test_an_error_behind_the_first_sound_breaks_a_plain_stream_off(tones):
    with pytest.raises(httpx.RemoteProtocolError):
        tones.speak(BREAKS, response_format="pcm")


@pytest.mark.parametrize("fields", [{"response_format": "wav"}, {"response_format": "wav", "stream_format": "sse"}])
def test_an_error_before_anything_has_left_has_a_status(tones, fields):
    answer = tones.speak(BREAKS, **fields)
    assert_refused(answer, 500, None, "synthesis_failed")
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("text", ["silence please", "nan please", "raise please"])
def test_what_is_no_speech_is_never_a_200(tones, text):
    assert_refused(tones.speak(text), 500, None, "synthesis_failed")


# --- OpenAI's own client


@pytest.fixture
def openai(tones):
    with OpenAI(base_url=f"{tones.url}/v1", api_key="any") as client:
        yield client


def test_openai_s_client_speaks_and_streams(tones, openai, tmp_path):
    answer = openai.audio.speech.create(model="tts-1", voice="alloy", input=TEXT, response_format="pcm")
    assert answer.content == tones.speak(TEXT, response_format="pcm").content
    with openai.audio.speech.with_streaming_response.create(model="tts-1", voice="nova", input=TEXT) as streamed:
        streamed.stream_to_file(tmp_path / "a.mp3")
    assert (tmp_path / "a.mp3").read_bytes() == tones.speak(TEXT).content
    assert next(iter(openai.models.list())).id == "tts-1"


def test_openai_s_client_reads_our_errors_and_does_not_repeat_them(tones, openai):
    with pytest.raises(UnprocessableEntityError) as caught:
        openai.audio.speech.create(model="tts-1", voice="alloy", input=TEXT, speed=9)
    assert caught.value.body["param"] == "speed"
    with pytest.raises(BadRequestError) as unknown:
        openai.audio.speech.create(model="tts-1", voice="nobody", input=TEXT)
    assert unknown.value.code == "unknown_voice"
    assert unknown.value.request_id
    failed = tones.health()["metrics"]["total_errors"]
    with pytest.raises(Exception, match="could not speak"):
        openai.audio.speech.create(model="tts-1", voice="alloy", input="raise please")
    assert tones.health()["metrics"]["total_errors"] == failed + 1
