"""One child process and the socket to it: start, kill, join."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from scheduler.messages import CPU

CLOSE_TIMEOUT_S = 2.0
"""How long a child may take to end at shutdown before it is killed."""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What a child loads.

    options: the operator's settings of the backend; no secret, for `ps` shows it. latents: folder in which prepared
    voices are shared; empty where there is none. is_guarded: whether the quality of what is said is looked at.
    environment: besides the server's own, of a worker on a GPU.
    """

    backend: str
    options: Mapping[str, Any]
    latents: str = ""
    is_guarded: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


class Child(Protocol):
    """A worker process, however it came to be. It ends when the parent's end of the socket closes."""

    socket: socket.socket

    @property
    def pid(self) -> int:
        """Its process id."""

    def kill(self) -> None:
        """End it now."""

    def join(self, timeout_s: float) -> str:
        """Wait for its end, kill it after `timeout_s`, and say how it ended. Blocks: not for an event loop."""


class ChildProcess:
    """A worker process started by exec. It ends with the parent in any case."""

    def __init__(self, spec: WorkerSpec, device: str) -> None:
        """Start the child. Call from the main thread: a child dies with the thread that started it.

        device: "cpu", or the UUID of a GPU, which is then the only one that the child sees.
        """
        self.socket, theirs = socket_pair()
        plan = json.dumps(plan_of(spec, device))
        try:
            self._popen = start("pool.worker", theirs, plan, environment=environment_of(spec, device))
        except OSError:
            self.socket.close()
            raise

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    def kill(self) -> None:
        """End it now."""
        self._popen.kill()

    def join(self, timeout_s: float) -> str:
        """See `Child.join`."""
        return join(self._popen, timeout_s)


def plan_of(spec: WorkerSpec, device: str) -> dict[str, Any]:
    """What a worker is told to do; whatever the GPU, it sees no other one."""
    plan = {**asdict(spec), "device": CPU if device == CPU else "cuda:0", "parent": os.getpid()}
    del plan["environment"]
    return plan


def environment_of(spec: WorkerSpec, device: str) -> dict[str, str]:
    """What a worker's environment has besides the server's own."""
    return {} if device == CPU else {**spec.environment, "CUDA_VISIBLE_DEVICES": device}


def socket_pair(kind: int = socket.SOCK_STREAM) -> tuple[socket.socket, socket.socket]:
    """The parent's end, which never blocks, and the child's."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    ours.setblocking(False)
    return ours, theirs


def start(
    module: str, theirs: socket.socket, *arguments: str, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a module of ours by exec, with its end of a socket, which is closed here. Raises OSError."""
    try:
        # -P: without it, a folder named pool/ in the working directory would be run instead.
        # Standard output goes to standard error: what a library prints must not end in somebody's audio.
        return subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(theirs.fileno()), *arguments],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=sys.__stderr__ or subprocess.DEVNULL,
        )
    finally:
        theirs.close()


def join(popen: subprocess.Popen[bytes], timeout_s: float) -> str:
    """Wait for a process to end, kill it after `timeout_s`, and say how it ended. Blocks."""
    try:
        code = popen.wait(timeout_s)
    except subprocess.TimeoutExpired:
        popen.kill()
        try:
            code = popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return "it cannot be killed"  # deep in a driver; nobody shall wait for it
    return ending(code)


def ending(code: int) -> str:
    """How a process ended, for a person. code: as subprocess counts."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
