"""The batching backend over HTTP, over the scripted library: many streams, clones, adapters, an engine that dies."""

import asyncio
import time

import httpx
import numpy as np
import pytest

from harness.recording import recording
from harness.server import running_server, until
from scripted_vllm import write_checkpoint

pytestmark = [pytest.mark.alone, pytest.mark.slow]

SLOTS = 64
PATCH_BYTES = 0.16 * 24_000 * 2
WORDS = "one two three four five six seven eight nine ten"


def settings(folder, **more):
    adapter = folder / "adapters" / "brisk"
    adapter.mkdir(parents=True)
    (adapter / "lora_weights.safetensors").write_bytes(b"")
    (adapter / "lora_config.json").write_text("{}")
    return {
        "TTS_BACKEND": "scripted_vllm:make",
        "QUALITY_GUARD": "false",  # it hums
        "VOXCPM_MODEL": str(write_checkpoint(folder / "model")),
        "VLLM_MAX_NUM_SEQS": str(SLOTS),
        "VLLM_LORA_DIR": str(folder / "adapters"),
        "VOICE_ASSET_DIR": str(folder / "voices"),
        "DEFAULT_VOICE": "anna",
        **more,
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batching")
    with running_server(folder, **settings(folder)) as running:
        sample = {"audio_sample": ("anna.wav", recording(200.0, 3.0), "audio/wav")}
        assert running.http.post("/v1/audio/voices", data={"name": "anna"}, files=sample).status_code == 200
        until(lambda: "voices made ready made=1" in running.log.read_text())
        yield running


def pitch(pcm):
    samples = np.frombuffer(pcm, "<i2").astype(float)
    return np.abs(np.fft.rfft(samples)).argmax() * 24_000 / len(samples)


async def streams(server, count, text=WORDS, **fields):
    """Seconds to the first byte, and size, of so many streams at once."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=limits) as client:

        async def one():
            began, first, size = time.monotonic(), None, 0
            body = {"input": text, "response_format": "pcm", "cache": False, **fields}
            async with client.stream("POST", "/v1/audio/speech", json=body) as answer:
                assert answer.status_code == 200, await answer.aread()
                async for piece in answer.aiter_bytes():
                    first = first or time.monotonic() - began
                    size += len(piece)
            return first, size

        return await asyncio.gather(*(one() for _ in range(count)))


def test_it_says_what_it_is(server):
    health = server.health()
    assert health["slots"]["total"] == SLOTS
    assert "VoxCPM2" in str(health)


@pytest.mark.parametrize("format", ["pcm", "mp3"])
def test_more_streams_than_slots_are_all_spoken(server, format):
    told = asyncio.run(streams(server, SLOTS + 16, response_format=format))
    if format == "pcm":
        assert {round(size / PATCH_BYTES) for _, size in told} == {10}
    assert server.wait_until_idle() < 1


@pytest.mark.parametrize("path", ["/v1/audio/speech", "/v1/audio/speech/stream"])
def test_a_recording_that_comes_along_is_cloned_on_both_ways_while_others_speak(server, path):
    async def scene():
        others = asyncio.create_task(streams(server, 8, "word " * 40))
        await asyncio.sleep(0.1)
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            sample = {"custom_voice_file": ("me.wav", recording(320.0, 3.0), "audio/wav")}
            answer = await client.post(path, data={"input": WORDS, "response_format": "pcm"}, files=sample)
        return answer, await others

    answer, others = asyncio.run(scene())
    assert answer.status_code == 200
    assert answer.headers["x-cache"] == "ADHOC"
    assert pitch(answer.content) == pytest.approx(320, abs=8)
    assert {round(size / PATCH_BYTES) for _, size in others} == {40}


def test_a_registered_voice_is_encoded_before_anybody_asks_and_found_on_disk(server):
    sample = {"audio_sample": ("ben.wav", recording(140.0, 3.0), "audio/wav")}
    before = len(list(server.log.parent.glob("latents/*/*")))
    assert server.http.post("/v1/audio/voices", data={"name": "ben"}, files=sample).status_code == 200
    until(lambda: len(list(server.log.parent.glob("latents/*/*"))) == before + 1)
    answer = server.speak(WORDS, voice="ben", response_format="pcm")
    assert pitch(answer.content) == pytest.approx(140, abs=8)


@pytest.mark.parametrize(("lora", "status"), [("brisk", 200), ("nobody", 422)])
def test_an_adapter_is_named_by_the_request(server, lora, status):
    answer = server.speak(WORDS, lora=lora)
    assert answer.status_code == status
    if status == 422:
        assert answer.json()["error"]["param"] == "lora"


def test_a_stream_that_is_heard_ends_visibly_when_the_engine_dies_and_the_next_is_spoken(server):
    async def scene():
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            heard = asyncio.Event()

            async def listen():
                body = {"input": "word " * 45, "response_format": "pcm", "cache": False}
                async with client.stream("POST", "/v1/audio/speech", json=body) as answer:
                    async for _ in answer.aiter_bytes():
                        heard.set()

            listener = asyncio.create_task(listen())
            async with asyncio.timeout(20):
                await heard.wait()
            killer = await client.post("/v1/audio/speech", json={"input": "crash first x x x x x x"})
            with pytest.raises(httpx.RemoteProtocolError):
                await listener
            return killer

    assert asyncio.run(scene()).status_code == 500
    server.wait_until()
    assert server.speak(WORDS).status_code == 200


def test_sixty_four_streams_of_mp3_leave_the_event_loop_free(tmp_path):
    """/live is answered by the loop alone: how late it comes is how late the loop is, and the client's own."""
    with running_server(tmp_path, **settings(tmp_path)) as server:
        sample = {"audio_sample": ("anna.wav", recording(200.0, 3.0), "audio/wav")}
        assert server.http.post("/v1/audio/voices", data={"name": "anna"}, files=sample).status_code == 200

        async def scene():
            speaking = asyncio.create_task(streams(server, SLOTS, "word " * 40, response_format="mp3"))
            took = []
            async with httpx.AsyncClient(base_url=server.url) as client:
                while not speaking.done():
                    began = time.monotonic()
                    assert (await client.get("/live")).status_code == 200
                    took.append(time.monotonic() - began)
                    await asyncio.sleep(0.01)
            return await speaking, sorted(took)

        told, took = asyncio.run(scene())
        assert all(size for _, size in told)
        assert took[len(took) // 2] < 0.05
        assert took[int(len(took) * 0.99)] < 0.4  # client, engine and server share the cores
