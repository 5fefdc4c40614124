"""Workers killed at random under load, for KILL_SECONDS: no wrong audio, no hang, no orphan, no lost slot."""

import logging
import os
import random
import threading
import time
from collections import Counter

import httpx
import psutil
import pytest

from gauges.likeness import SAME, is_beginning, likeness, shape
from harness.server import Server, cached_server, until

LOG = logging.getLogger(__name__)
SECONDS = float(os.environ.get("KILL_SECONDS", "60"))
CLIENTS = 5
TEXTS = ("Two apples.", "Three blue boats. They left at noon.", "Seven open doors, and nobody came in. It was late.")
LONGEST_S = 60.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS + 240), pytest.mark.alone]


class Storm:
    """Clients that ask without pause, and somebody who kills."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.chance = random.Random(7)
        self.ends_at = time.monotonic() + SECONDS
        self.known = [shape(self.ask(text, 1.0, is_streamed=False)[1]) for text in TEXTS]
        self.told: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.longest_s = 0.0

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.ends_at

    def ask(self, text: str, speed: float, *, is_streamed: bool) -> tuple[str, bytes]:
        """What became of a request, and its audio."""
        body = {"input": text, "voice": "nova", "response_format": "pcm", "stream": is_streamed, "speed": speed}
        heard = b""
        try:
            with httpx.stream("POST", f"{self.server.url}/v1/audio/speech", json=body, timeout=LONGEST_S) as answer:
                for piece in answer.iter_raw():
                    heard += piece
        except httpx.RemoteProtocolError:
            return "broken off", heard
        return str(answer.status_code), heard

    def speak(self, number: int) -> None:
        chance = random.Random(number)
        while not self.is_over:
            which, is_streamed = chance.randrange(len(TEXTS)), chance.random() < 0.5
            # What was aboard twice is refused for minutes, and there are few texts here: a speed makes each new.
            began = time.monotonic()
            end, pcm = self.ask(TEXTS[which], round(chance.uniform(1, 1.005), 8), is_streamed=is_streamed)
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.told[end] += 1
            if end == "200" and likeness(shape(pcm), self.known[which]) <= SAME:
                self.wrong.append(f"{len(pcm)} bytes of text {which}")
            if end == "broken off" and not is_beginning(shape(pcm), self.known[which]):
                self.wrong.append(f"{len(pcm)} bytes to begin text {which}")

    def kill(self) -> int:
        """Kill a worker every now and then; how many were."""
        count = 0
        while not self.is_over:
            time.sleep(self.chance.uniform(0.5, 4.0))
            workers = self.server.workers
            if workers:
                try:
                    self.chance.choice(workers).kill()
                    count += 1
                except psutil.NoSuchProcess:
                    pass
        return count


def test_whatever_is_killed_nobody_hears_anything_wrong_and_all_slots_come_back(tmp_path):
    settings = {"KOKORO_SLOTS": "1", "COLD_POOL_SIZE": "2", "HOT_QUEUE_SAFETY_FACTOR": "0"}
    with cached_server(tmp_path, TTS_BACKEND="kokoro", COLD_WORKER_IDLE_TIMEOUT="1", **settings) as server:
        storm = Storm(server)
        clients = [threading.Thread(target=storm.speak, args=(number,)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        killed = storm.kill()
        for client in clients:
            client.join(LONGEST_S)
            assert not client.is_alive(), "a client waits for ever"
        LOG.info("%d kills, %s, longest %.1f s", killed, dict(storm.told), storm.longest_s)
        assert storm.wrong == []
        assert killed > SECONDS / 5
        assert storm.told["200"] > SECONDS / 5
        assert set(storm.told) <= {"200", "500", "broken off"}
        # How long the unluckiest waits is chance, for a kill may hit it again and again; for ever it never is.
        assert storm.longest_s < LONGEST_S
        assert server.wait_until_idle(30) < 30
        until(lambda: server.health()["slots"] == {"total": 1, "busy": 0} and len(server.workers) == 1, 30)
        end, pcm = storm.ask(TEXTS[0], 1.0, is_streamed=True)
        assert end == "200"
        assert likeness(shape(pcm), storm.known[0]) > SAME
