"""160 requests at once for the real model, one slot a worker and two cold workers: all answered, none mixed up."""

import asyncio

import httpx
import numpy as np
import pytest

from gauges.likeness import SAME, likeness, shape
from harness.server import Server, running_server

pytestmark = pytest.mark.slow(file_s=70)

TEXTS = (
    "One.",
    "Apples.",
    "Blue boats.",
    "Men wait.",
    "South.",
    "Small cups.",
    "Open the doors.",
    "Winter.",
)
COUNT = 160


async def spoken(server: Server, texts: list[str]) -> list[httpx.Response]:
    limits = httpx.Limits(max_connections=len(texts))
    async with httpx.AsyncClient(base_url=server.url, timeout=300, limits=limits) as http:
        bodies = [{"input": text, "voice": "nova", "response_format": "pcm", "stream": False} for text in texts]
        return await asyncio.gather(*(http.post("/v1/audio/speech", json=body) for body in bodies))


@pytest.mark.timeout(300)
def test_160_requests_at_once_are_all_answered_and_none_is_mixed_up(tmp_path):
    settings = {"KOKORO_SLOTS": "1", "COLD_POOL_SIZE": "2", "MAX_QUEUE_SECONDS": "0"}  # however slow this machine is
    patience = {"COLD_WORKER_IDLE_TIMEOUT": "1", "COLD_WORKER_IDLE_STAGGER": "2"}
    with running_server(tmp_path, TTS_BACKEND="kokoro", **settings, **patience) as server:
        alone = [shape(answer.content) for text in TEXTS for answer in asyncio.run(spoken(server, [text]))]
        answers = asyncio.run(spoken(server, [TEXTS[number % len(TEXTS)] for number in range(COUNT)]))
        assert {answer.status_code for answer in answers} == {200}
        for number, answer in enumerate(answers):
            likenesses = [likeness(shape(answer.content), reference) for reference in alone]
            assert int(np.argmax(likenesses)) == number % len(TEXTS)
            assert max(likenesses) > SAME
        assert {answer.headers["x-route"] for answer in answers} == {"HOT", "COLD-POOL"}
        assert server.wait_until_idle() < 5
        asyncio.run(asyncio.sleep(1 + 2 + 3))  # patience, stagger, and time to end
        assert len(server.workers) == 1
