"""The library's own pool, where its engine in this process is not wanted: it runs in one more process, behind queues.

An event loop in a thread reads what the pool sends; `step` takes what came.
"""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

from backends.base import BackendError
from backends.voxcpm_vllm.direct import options_of, wav_of
from backends.voxcpm_vllm.engine import Patch, Prompt
from core.errors import place_of
from core.speech import Samples

WAIT_S = 0.05
"""Longest wait of a step for a patch: so soon an utterance that comes meanwhile is begun."""

T = TypeVar("T")


class ServerPool(Protocol):
    """What is called of nanovllm_voxcpm.models.voxcpm2.server.AsyncVoxCPM2ServerPool."""

    async def wait_for_ready(self) -> None:
        """Until it has loaded. Raises where it does not."""

    async def encode_latents(self, wav: bytes, wav_format: str) -> bytes:
        """Latents of a file."""

    async def register_lora(self, name: str, path: str) -> object:
        """Load an adapter."""

    def generate(self, target_text: str, **options: Any) -> AsyncIterator[Samples]:
        """Patches of one sequence; closing it ends that."""


class Pooled:
    """A Batch of the library's asynchronous pool."""

    def __init__(self, make: Callable[[], ServerPool], tokens: Callable[[str], int]) -> None:
        """Start the pool, and wait until it has loaded. make: called on its event loop. tokens: counts a text's."""
        self.tokens = tokens
        self._patches: queue.SimpleQueue[Patch | BaseException] = queue.SimpleQueue()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="pool", daemon=True).start()
        self._pool = self._call(self._open(make))

    async def _open(self, make: Callable[[], ServerPool]) -> ServerPool:
        pool = make()
        await pool.wait_for_ready()
        return pool

    def register_lora(self, name: str, path: str) -> None:
        """Load an adapter. Raises what the library says of it."""
        self._call(self._pool.register_lora(name, path))

    def add(self, key: str, prompt: Prompt) -> None:
        """See `Batch.add`; what is wrong with it comes with a patch."""
        self._loop.call_soon_threadsafe(self._begin, key, prompt)

    def step(self) -> Sequence[Patch]:
        """See `Batch.step`."""
        patches: list[Patch] = []
        try:
            came = self._patches.get(timeout=WAIT_S)
            while True:
                if isinstance(came, BaseException):
                    raise came
                patches.append(came)
                came = self._patches.get_nowait()
        except queue.Empty:
            return patches

    def cancel(self, key: str) -> None:
        """See `Batch.cancel`."""
        self._loop.call_soon_threadsafe(self._end, key)

    def encode(self, sample: Samples) -> bytes:
        """See `Batch.encode`."""
        return self._call(self._pool.encode_latents(wav_of(sample), "wav"))

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _begin(self, key: str, prompt: Prompt) -> None:
        self._tasks[key] = self._loop.create_task(self._follow(key, prompt))

    def _end(self, key: str) -> None:
        if task := self._tasks.get(key):
            task.cancel()

    async def _follow(self, key: str, prompt: Prompt) -> None:
        """Hand on one sequence, patch by patch."""
        try:
            async with aclosing(self._pool.generate(prompt.text, **options_of(prompt))) as samples:  # type: ignore[type-var]
                async for each in samples:
                    self._patches.put(Patch(key, each, is_last=False))
            self._patches.put(Patch(key, None, is_last=True))
        except RuntimeError as error:
            # What a request did wrong comes as RuntimeError itself; its subclass says that the process has died.
            if type(error) is RuntimeError:
                self._patches.put(Patch(key, None, is_last=True, error=place_of(error)))
            else:
                self._patches.put(BackendError("The process of the library's pool has ended."))
        except Exception as error:
            self._patches.put(Patch(key, None, is_last=True, error=place_of(error)))
        finally:
            del self._tasks[key]
