"""The main of a worker process.

    parent ══ socket pair ══▶ reader thread ──add, cancel──▶ engine (a thread a slot)
       ▲                                                       │
       └───────────── main thread ◀──────── step ──────────────┘

The reader owns the way down, the main thread the way up; the engine owns the model. The process is crash-only: it asks
for nothing, keeps nothing, and ends when the socket ends or when the parent dies.
"""

import ctypes
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from backends.base import BackendError
from backends.latents import Latents
from backends.registry import create
from core.errors import place_of
from pool.engine import Audio, Done, Engine, Failed, Lost, Outcome, Stopped, ThreadedEngine, is_device_fault
from pool.protocol import Frame, FrameReader, Kind, pack_audio, pack_json, unpack_task, unpack_voice

STEP_S = 1.0
"""Longest wait for something to happen before the parent is told that this process lives."""

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Speak as the command line says: the descriptor of the socket, and the plan in JSON."""
    work(socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2]))


def work(wire: socket.socket, plan: Mapping[str, Any]) -> None:
    """Load the backend that the plan names, then speak until the parent is gone."""
    die_with_parent()
    engines: list[Engine] = []
    threading.Thread(target=read, args=(wire, engines), name="reader", daemon=True).start()
    try:
        wire.sendall(pack_json(Kind.PHASE, "imports"))
        backend = create(plan["backend"], plan["options"])
        wire.sendall(pack_json(Kind.PHASE, "weights"))
        traits = backend.load(plan["device"])
        latents = Latents(Path(plan["latents"]), traits.revision) if plan["latents"] and traits.can_clone else None
        guard_rate = traits.sample_rate if plan["is_guarded"] and traits.is_sampled else None
        engine = ThreadedEngine(backend, traits.slots, latents=latents, guard_rate=guard_rate)
        engines.append(engine)
        wire.sendall(pack_json(Kind.READY, asdict(traits)))
        while True:
            outcomes = engine.step(STEP_S)
            for outcome in outcomes:
                write(wire, outcome)
            if not outcomes:
                wire.sendall(Frame(Kind.ALIVE).pack())
    except Exception as error:  # the edge of the process; where the parent is gone, nobody needs to be told
        told = {"reason": reason_of(error), "is_out_of_memory": is_out_of_memory(error)}
        with suppress(OSError):
            wire.sendall(pack_json(Kind.BROKEN, {**told, "is_device_fault": is_device_fault(error)}))
        raise SystemExit(1) from None


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


def die_with_parent() -> None:
    """End with the parent, however it ends. Interrupts are the parent's: a Ctrl-C reaches the whole group."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


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


def write(wire: socket.socket, outcome: Outcome) -> None:
    """One outcome on its way up."""
    match outcome:
        case Audio(task, samples):
            for frame in pack_audio(task, samples):
                wire.sendall(frame)
        case Done(task):
            wire.sendall(Frame(Kind.DONE, task).pack())
        case Failed(task, reason):
            wire.sendall(pack_json(Kind.FAILED, reason, task))
        case Stopped(task):
            wire.sendall(Frame(Kind.STOPPED, task).pack())
        case Lost(reason):
            told = {"reason": reason, "is_out_of_memory": False, "is_device_fault": True}
            wire.sendall(pack_json(Kind.BROKEN, told))
            raise SystemExit(1)


if __name__ == "__main__":
    main()
