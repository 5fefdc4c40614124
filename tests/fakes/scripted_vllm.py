"""Stands for the library's VoxCPM2ServerImpl and AsyncVoxCPM2ServerPool, which need a GPU: the same calls, scripted.

A word is a patch: 0.16 s of a tone in the pitch of the voice's recording. A text that starts with a word of `_act`
misbehaves at the moment that its second word names: add, first, mid or last. Patches come in another order than their
sequences did, and every call must come from one thread, none inside another, as the library has it.
"""

import asyncio
import io
import json
import os
import signal
import threading
import time
import wave
from collections.abc import AsyncIterator, Callable, Mapping
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from backends.voxcpm_vllm.backend import VllmBackend, loras
from backends.voxcpm_vllm.direct import Direct
from backends.voxcpm_vllm.pooled import Pooled
from core.settings import load_settings

RATE, PATCH, CHANNELS, FRAMES = 48_000, 7680, 16, 4

STEP_S = 0.004
"""Of a batch, and half a millisecond more for each of its sequences."""

ENCODE_S = 0.05


class AcceleratorError(RuntimeError):
    """Named as torch's own: stands for a GPU that has failed."""


class WorkerDiedError(RuntimeError):
    """Named as the library's own: the process of its pool has ended."""


def write_checkpoint(folder: Path) -> Path:
    """Files of the right names: the scripted engine reads nothing of them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"architecture": "voxcpm2", "feat_dim": CHANNELS}))
    for name in ("tokenizer.json", "tokenizer_config.json", "model.safetensors", "audiovae.pth"):
        (folder / name).write_bytes(b"")
    return folder


def tokens(text: str) -> int:
    """A word is one."""
    return len(text.split())


class Sequence:
    """One request. Named fields are those of the library's that are read."""

    def __init__(self, seq_id: str, text: str, most: int, hz: float) -> None:
        self.seq_id = seq_id
        self.is_finished = False
        self.custom_payload = SimpleNamespace(generated_waveforms=[])
        self.words = text.split()
        self.most = most
        self.hz = hz
        self.waits = 20 if self.words[0] == "late" else 0

    def advance(self) -> None:
        made = len(self.custom_payload.generated_waveforms)
        moments = {0: "first", 3: "mid", len(self.words) - 1: "last"}
        _act(self.words, moments.get(made, ""))
        at = (np.arange(PATCH) + made * PATCH) / RATE
        self.custom_payload.generated_waveforms.append((0.3 * np.sin(2 * np.pi * self.hz * at)).astype(np.float32))
        ends = self.words[0] != "endless" and made + 1 == len(self.words)
        self.is_finished = ends or made + 1 == self.most


def alone(method: Callable[..., Any]) -> Callable[..., Any]:
    """A call that is written down, and must come from one thread, inside no other call."""

    @wraps(method)
    def called(self: "ScriptedServer", *args: Any, **options: Any) -> Any:
        self._thread = self._thread or threading.get_ident()
        assert self._thread == threading.get_ident(), f"{method.__name__} from another thread"
        assert not self._inside, f"{method.__name__} inside another call"
        self.log.append(method.__name__)
        self._inside = True
        try:
            return method(self, *args, **options)
        finally:
            self._inside = False

    return called


class ScriptedServer:
    """VoxCPM2ServerImpl. `asked`: options of each request, by its text. `log`: what was called, in order."""

    def __init__(self, step_s: float = STEP_S) -> None:
        self._step_s = step_s
        self._sequences: dict[str, Sequence] = {}
        self._thread: int | None = None
        self._inside = False
        self._steps = 0
        self.loras: list[str] = []
        self.asked: dict[str, dict[str, Any]] = {}
        self.log: list[str] = []

    def register_lora(self, name: str, path: str) -> None:
        self.loras.append(name)

    @alone
    def add_request(
        self,
        seq_id: str,
        target_text: str,
        prompt_latents: bytes | None = None,
        prompt_text: str = "",
        max_generate_length: int = 2000,
        temperature: float = 1.0,
        cfg_value: float = 1.0,
        ref_audio_latents: bytes | None = None,
        lora_name: str | None = None,
        seed: int | None = None,
    ) -> None:
        self.asked[target_text] = {key: value for key, value in locals().items() if key not in ("self", "target_text")}
        if bool(prompt_latents) != bool(prompt_text):
            raise ValueError("one without the other")
        if lora_name is not None and lora_name not in self.loras:
            raise ValueError(lora_name)
        _act(target_text.split(), "add")
        latents = np.frombuffer(ref_audio_latents or b"", np.float32).reshape(-1, CHANNELS)
        self._sequences[seq_id] = Sequence(seq_id, target_text, max_generate_length, float(latents[0, 0]))

    @alone
    def step(self) -> list[Sequence]:
        self._steps += 1
        time.sleep(self._step_s + 0.0005 * len(self._sequences))
        made = []
        for sequence in list(self._sequences.values()):
            sequence.waits -= 1
            if sequence.waits < 0:
                sequence.advance()
                made.append(sequence)
                if sequence.is_finished:
                    del self._sequences[sequence.seq_id]
        return made[:: -1 if self._steps % 2 else 1]

    @alone
    def cancel(self, seq_id: str) -> None:
        self._sequences.pop(seq_id, None)

    def is_finished(self) -> bool:
        return not self._sequences

    @alone
    def encode_latents(self, wav: bytes, wav_format: str) -> bytes:
        """Of 6.25 patches a second; the first number is the recording's pitch in Hz."""
        time.sleep(ENCODE_S)
        with wave.open(io.BytesIO(wav)) as file:
            rate = file.getframerate()
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        latents = np.zeros((FRAMES * max(1, round(len(samples) / rate * 6.25)), CHANNELS), np.float32)
        latents[:, 0] = np.abs(np.fft.rfft(samples)).argmax() * rate / len(samples)
        return latents.tobytes()


def _act(words: list[str], moment: str) -> None:
    """Misbehave, where the text says so, and says when."""
    if words[1:2] != [moment]:
        return
    match words[0]:
        case "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        case "fault":
            raise AcceleratorError("an illegal memory access was encountered")
        case "bug":
            raise IndexError(" ".join(words))
        case "hang":
            time.sleep(3600)


class ScriptedPool:
    """AsyncVoxCPM2ServerPool, over a ScriptedServer on the same loop instead of another process."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._queues: dict[str, asyncio.Queue[Any]] = {}
        self._stepping: asyncio.Task[None] | None = None

    async def wait_for_ready(self) -> None:
        await asyncio.sleep(0)

    async def encode_latents(self, wav: bytes, wav_format: str) -> bytes:
        return self._server.encode_latents(wav, wav_format)

    async def register_lora(self, name: str, path: str) -> dict[str, str]:
        self._server.register_lora(name, path)
        return {"name": name}

    async def generate(self, target_text: str, **options: Any) -> AsyncIterator[np.ndarray]:
        key = str(id(options))
        try:
            self._server.add_request(key, target_text, **options)
        except ValueError as error:
            raise RuntimeError("Traceback ... " + str(error)) from None
        came = self._queues[key] = asyncio.Queue()
        if self._stepping is None or self._stepping.done():
            self._stepping = asyncio.create_task(self._step())
        try:
            while (data := await came.get()) is not None:
                if isinstance(data, Exception):
                    raise data
                yield data
        finally:
            self._server.cancel(key)
            del self._queues[key]

    async def _step(self) -> None:
        while not self._server.is_finished():
            try:
                for made in self._server.step():
                    self._queues[made.seq_id].put_nowait(made.custom_payload.generated_waveforms[-1])
                    if made.is_finished:
                        self._queues[made.seq_id].put_nowait(None)
            except Exception:
                for came in self._queues.values():
                    came.put_nowait(WorkerDiedError("it is gone"))
                return
            await asyncio.sleep(0)


def make(options: Mapping[str, Any]) -> VllmBackend:
    """The backend of the server's own settings, over the scripted engine."""
    return _make(_direct)


def make_pooled(options: Mapping[str, Any]) -> VllmBackend:
    """The same over the scripted pool."""
    return _make(lambda server, found: Pooled(lambda: ScriptedPool(server), tokens))


def _direct(server: ScriptedServer, found: Mapping[str, Path]) -> Direct:
    for name, path in found.items():
        server.register_lora(name, str(path))
    return Direct(server, tokens)


def _make(wrap: Callable[[ScriptedServer, Mapping[str, Path]], Direct | Pooled]) -> VllmBackend:
    settings = load_settings().options("voxcpm-vllm")
    step_s = float(os.environ.get("SCRIPTED_STEP_S", STEP_S))
    return VllmBackend(settings, lambda *told: wrap(ScriptedServer(step_s), loras(settings)))
