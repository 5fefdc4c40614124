"""The main of a worker process.

    parent ══ socket pair ══▶ reader thread ──add, cancel──▶ engine (a thread a slot, or one batch)
       ▲                                                       │
       └── writer thread ◀── main thread ◀──────── step ───────┘

The reader owns the way down, the writer the way up, so that a batch never waits for a socket; the main thread steps the
engine, which owns the model. The process is crash-only: it asks for nothing, keeps nothing, and ends when the socket
ends or when the parent dies.
"""

import ctypes
import json
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from backends.base import (
    Audio,
    Backend,
    BackendError,
    Done,
    Engine,
    Failed,
    Lost,
    Outcome,
    Stopped,
    is_device_fault,
)
from backends.batching import Batching
from backends.latents import Latents
from backends.registry import create
from backends.voices import Voices
from core.errors import place_of
from core.files import version_of
from core.speech import Traits
from pool.engine import ThreadedEngine
from pool.guard import Guarded
from pool.protocol import Frame, FrameReader, Kind, pack_audio, pack_json, unpack_task, unpack_voice

STEP_S = 1.0
"""Longest wait for something to happen before the parent is told that this process lives."""

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Speak as the command line says: the descriptor of the socket, and the plan in JSON."""
    work(socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2]))


def work(wire: socket.socket, plan: Mapping[str, Any]) -> None:
    """Load the backend that the plan names, then speak until the parent is gone."""
    die_with_parent(plan["parent"])
    engines: list[Engine] = []
    threading.Thread(target=read, args=(wire, engines), name="reader", daemon=True).start()
    writer = Writer(wire)
    try:
        writer.say(pack_json(Kind.PHASE, "imports"))
        backend = create(plan["backend"], plan["options"])
        writer.say(pack_json(Kind.PHASE, "weights"))
        traits = backend.load(plan["device"])
        engine = engine_of(backend, traits, plan)
        engines.append(engine)
        writer.say(pack_json(Kind.READY, asdict(traits)))
        while True:
            outcomes = engine.step(STEP_S)
            writer.say(b"".join(map(pack, outcomes)) or Frame(Kind.ALIVE).pack())
            if any(isinstance(outcome, Lost) for outcome in outcomes):
                break
    except Exception as error:  # the edge of the process
        told = {"reason": reason_of(error), "is_out_of_memory": is_out_of_memory(error)}
        writer.say(pack_json(Kind.BROKEN, {**told, "is_device_fault": is_device_fault(error)}))
    writer.close()
    raise SystemExit(1)


def engine_of(backend: Backend | Batching, traits: Traits, plan: Mapping[str, Any]) -> Engine:
    """What speaks: a batching backend's own engine, or one thread for each slot of a plain one."""
    latents = None
    if plan["latents"] and traits.can_clone:
        code = version_of([Path(sys.modules[type(backend).__module__].__file__ or "").parent])
        latents = Latents(Path(plan["latents"]), f"{traits.revision} {code}")
    voices = Voices(backend.prepare, latents)
    engine = backend.engine(voices) if isinstance(backend, Batching) else ThreadedEngine(backend, traits.slots, voices)
    return Guarded(engine, traits.sample_rate) if plan["is_guarded"] and traits.is_sampled else engine


class Writer:
    """The way up, on a thread of its own. What is said leaves in the order in which it was said.

    Nothing bounds what waits: the parent always reads, and a task is no longer than an utterance.
    """

    def __init__(self, wire: socket.socket) -> None:
        """wire: to the parent."""
        self._wire = wire
        self._unsent: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send, name="writer", daemon=True)
        self._thread.start()

    def say(self, data: bytes) -> None:
        """Whole frames, at least one. Waits for nobody."""
        self._unsent.put(data)

    def close(self) -> None:
        """Wait until all of it is on its way."""
        self._unsent.put(b"")
        self._thread.join()

    def _send(self) -> None:
        with suppress(OSError):  # where the parent is gone, nobody needs to be told
            while data := self._unsent.get():
                self._wire.sendall(data)


def reason_of(error: Exception) -> str:
    """What the operator is told."""
    return str(error) if isinstance(error, BackendError) else place_of(error)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether memory was short, the GPU's included: torch is not imported to ask, its exception is known by name."""
    while error is not None:
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            return True
        error = error.__cause__ or error.__context__
    return False


def die_with_parent(parent: int) -> None:
    """End with the parent, however it ends. Interrupts are the parent's: a Ctrl-C reaches the whole group.

    parent: its process id; where it is another one by now, this process came too late.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def read(wire: socket.socket, engines: list[Engine]) -> None:
    """Carry out what the parent says; its end of the socket is this process's end, also while the model loads."""
    frames = FrameReader()
    try:
        while data := wire.recv(2**16):
            for frame in frames.feed(data):
                obey(frame, engines[0])
    except OSError:  # the parent died in the middle of a word
        pass
    except Exception as error:
        sys.stderr.write(f"The worker cannot read what it is told: {place_of(error)}.\n")
        os._exit(1)
    os._exit(0)  # the main thread may be deep in a call that nothing else ends


def obey(frame: Frame, engine: Engine) -> None:
    """One word from the parent."""
    if frame.kind is Kind.TASK:
        engine.add(unpack_task(frame.payload))
    elif frame.kind is Kind.CANCEL:
        engine.cancel(frame.task)
    elif frame.kind is Kind.VOICE:
        engine.hold(*unpack_voice(frame.payload))
    elif frame.kind is Kind.FORGET:
        engine.forget(frame.payload.decode())


def pack(outcome: Outcome) -> bytes:
    """One outcome on its way up."""
    match outcome:
        case Audio(task, samples):
            return b"".join(pack_audio(task, samples))
        case Done(task):
            return Frame(Kind.DONE, task).pack()
        case Failed(task, reason):
            return pack_json(Kind.FAILED, reason, task)
        case Stopped(task):
            return Frame(Kind.STOPPED, task).pack()
        case Lost(reason):
            told = {"reason": reason, "is_out_of_memory": False, "is_device_fault": True}
            return pack_json(Kind.BROKEN, told)


if __name__ == "__main__":
    main()
