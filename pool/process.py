"""One child process and the socket to it: start, kill, join."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.messages import CPU


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What a child loads. options: the operator's settings of the backend; no secret, for `ps` shows it."""

    backend: str
    options: Mapping[str, Any]


class ChildProcess:
    """A worker process. It ends when the parent's end of the socket closes, and with the parent in any case."""

    def __init__(self, spec: WorkerSpec, device: str) -> None:
        """Start the child by exec. Call from the main thread: a child dies with the thread that started it.

        device: "cpu", or the UUID of a GPU, which is then the only one that the child sees.
        """
        self.socket, theirs = socket.socketpair()
        self.socket.setblocking(False)
        plan = json.dumps(
            {"backend": spec.backend, "device": CPU if device == CPU else "cuda:0", "options": dict(spec.options)}
        )
        try:
            # -P: without it, a folder named pool/ in the working directory would be run instead.
            # Standard output goes to standard error: what a library prints must not end in somebody's audio.
            self._popen = subprocess.Popen(
                [sys.executable, "-P", "-m", "pool.worker", str(theirs.fileno()), plan],
                pass_fds=[theirs.fileno()],
                env=os.environ if device == CPU else {**os.environ, "CUDA_VISIBLE_DEVICES": device},
                stdin=subprocess.DEVNULL,
                stdout=sys.__stderr__ or subprocess.DEVNULL,
            )
        except OSError:
            self.socket.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    def kill(self) -> None:
        """End it now."""
        self._popen.kill()

    def join(self, timeout_s: float) -> str:
        """Wait for its end, kill it after `timeout_s`, and say how it ended. Blocks: not for an event loop."""
        try:
            code = self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            try:
                code = self._popen.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return "it cannot be killed"  # deep in a driver; nobody shall wait for it
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
