"""The parent's end of the process that forks workers (`pool.template`)."""

import json
import socket
import subprocess
import threading
from contextlib import suppress
from typing import Any

import psutil

from pool.process import CLOSE_TIMEOUT_S, WorkerSpec, ending, environment_of, join, plan_of, socket_pair, start

MAX_MESSAGE_BYTES = 2**16
"""Of what is asked, and of a reply."""

SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Numeric libraries start threads as soon as they are imported; a worker asks for its own number when it loads."""

REPLY_TIMEOUT_S = 1.0
"""For a fork, which takes a hundredth of it; a template that does not answer is given up."""

POLL_S = 0.01
"""Between two looks at whether a forked worker has ended; it is nobody's child here that could be waited for."""


class Template:
    """Forks workers of one backend, once it has imported its libraries. Where it cannot, they are started by exec."""

    def __init__(self, backend: str) -> None:
        """Starts nothing; `open` does."""
        self._backend = backend
        self._popen: subprocess.Popen[bytes] | None = None
        self._wire: socket.socket | None = None
        self._is_ready = False
        self._talking = threading.Lock()
        self.refusal = ""

    def open(self) -> None:
        """Start importing, in the background. Call from the main thread. Does nothing where it has been called."""
        if self._popen is not None or self.refusal:
            return
        wire, theirs = socket_pair(socket.SOCK_SEQPACKET)
        try:
            self._popen = start("pool.template", theirs, self._backend, environment=SINGLE_THREADED)
        except OSError as error:
            wire.close()
            self.refusal = f"it cannot be started: {error.strerror}"
            return
        self._wire = wire

    def fork(self, spec: WorkerSpec, device: str) -> "ForkedProcess | None":
        """A worker; None where it is to be started by exec. Takes some milliseconds."""
        if not self._can_fork():
            return None
        ours, theirs = socket_pair()
        reply = self._ask({"plan": plan_of(spec, device), "environment": environment_of(spec, device)}, theirs)
        theirs.close()
        if "pid" not in reply:
            self._give_up(str(reply.get("refused", "it does not answer")))
            ours.close()
            return None
        return ForkedProcess(self, ours, reply["pid"])

    def reap(self, pid: int) -> str:
        """How a worker that has ended did so. Blocks for a moment."""
        reply = self._ask({"reap": pid})
        return ending(reply["code"]) if "code" in reply else "its template is gone"

    def close(self) -> None:
        """End it; its workers must have ended. Blocks."""
        if self._wire:
            self._wire.close()
            self._wire = None
        if self._popen:
            join(self._popen, CLOSE_TIMEOUT_S)

    def _can_fork(self) -> bool:
        if not self._is_ready and self._wire:
            with suppress(BlockingIOError):
                reply = self._heard(self._wire)
                self._is_ready = "ready" in reply
                if not self._is_ready:
                    self._give_up(str(reply.get("refused", "it ended")))
        return self._is_ready and not self.refusal

    def _give_up(self, reason: str) -> None:
        """Fork nothing more; what it has forked lives on, and is reaped by it."""
        self.refusal = reason

    def _ask(self, message: dict[str, Any], *descriptors: socket.socket) -> dict[str, Any]:
        """Its reply; empty where there is none."""
        with self._talking:
            if self._wire is None:
                return {}
            self._wire.settimeout(REPLY_TIMEOUT_S)
            try:
                socket.send_fds(self._wire, [json.dumps(message).encode()], [each.fileno() for each in descriptors])
                return self._heard(self._wire)
            except OSError:  # it is gone, or late: then the reply would be taken for that of the next question
                self._wire.close()
                self._wire = None
                self._give_up("it does not answer")
                return {}

    @staticmethod
    def _heard(wire: socket.socket) -> dict[str, Any]:
        data = wire.recv(MAX_MESSAGE_BYTES)
        return json.loads(data) if data else {}


class ForkedProcess:
    """A worker that a template has forked. It ends with the template, and so with the parent."""

    def __init__(self, template: Template, ours: socket.socket, pid: int) -> None:
        """ours: the parent's end of the worker's socket."""
        self.socket = ours
        self.pid = pid
        self._template = template
        try:
            self._process: psutil.Process | None = psutil.Process(pid)
        except psutil.NoSuchProcess:
            self._process = None

    def kill(self) -> None:
        """End it now."""
        if self._process:
            with suppress(psutil.NoSuchProcess):
                self._process.kill()

    def join(self, timeout_s: float) -> str:
        """See `Child.join`."""
        if not self._has_ended(timeout_s):
            self.kill()
            if not self._has_ended(timeout_s):
                return "it cannot be killed"
        return self._template.reap(self.pid)

    def _has_ended(self, timeout_s: float) -> bool:
        for _ in range(max(1, round(timeout_s / POLL_S))):
            try:
                if self._process is None or self._process.status() == psutil.STATUS_ZOMBIE:
                    return True
            except psutil.NoSuchProcess:
                return True
            threading.Event().wait(POLL_S)
        return False
