"""The parent's end of the process that forks workers (`pool.template`)."""

import json
import os
import socket
import subprocess
import threading
import time
from contextlib import suppress
from itertools import count
from typing import Any

import psutil

from core.events import Events
from pool.process import CLOSE_TIMEOUT_S, WorkerSpec, ending, environment_of, join, plan_of, socket_pair, start

MAX_MESSAGE_BYTES = 2**16
"""Of what is asked, and of a reply."""

THREADS = "OMP_NUM_THREADS"
"""How many threads a numeric library may use; empty for as many as there are cores."""

SINGLE_THREADED = {
    "OPENBLAS_NUM_THREADS": "1",
    THREADS: "1",
    "MKL_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # transformers imports pyarrow where it is installed
}
"""Libraries start threads as soon as they are imported; a worker asks for its own number when it loads."""

REPLY_TIMEOUT_S = 0.2
"""For a fork, which takes a tenth of it and holds the event loop; a template that is later forks nothing more."""

POLL_S = 0.01
"""Between two looks at whether a forked worker has ended; it is nobody's child here that could be waited for."""


class Template:
    """Forks workers of one backend, once it has imported its libraries. Where it cannot, they are started by exec."""

    def __init__(self, backend: str, events: Events) -> None:
        """Starts nothing; `open` does."""
        self._backend = backend
        self._events = events
        self._popen: subprocess.Popen[bytes] | None = None
        self._wire: socket.socket | None = None
        self._is_ready = False
        self._talking = threading.Lock()
        self._numbers = count(1)
        self.refusal = ""

    def open(self) -> None:
        """Start importing, in the background. Call from the main thread. Does nothing where it has been called."""
        if self._popen is not None or self.refusal:
            return
        try:
            self._wire, theirs = socket_pair(socket.SOCK_SEQPACKET)
            arguments = self._backend, str(os.getpid())
            self._popen = start("pool.template", theirs, *arguments, environment=SINGLE_THREADED)
        except OSError as error:
            self._give_up(f"it cannot be started: {error.strerror}")

    def fork(self, spec: WorkerSpec, device: str) -> "ForkedProcess | None":
        """A worker; None where it is to be started by exec. Takes some milliseconds."""
        if not self._can_fork():
            return None
        try:
            ours, theirs = socket_pair()
        except OSError:
            return None
        # The template has one thread, and says so in its environment; its workers get what the operator said.
        environment = {**environment_of(spec, device), THREADS: os.environ.get(THREADS, "")}
        with theirs:
            reply = self._ask({"plan": plan_of(spec, device), "environment": environment}, theirs)
        if "pid" not in reply:
            self._give_up(str(reply.get("refused", "it does not answer")))
            ours.close()
            return None
        return ForkedProcess(self, ours, reply["pid"])

    def reap(self, pid: int) -> str:
        """How a worker that has ended did so. Blocks for a moment."""
        for _ in range(round(CLOSE_TIMEOUT_S / POLL_S)):
            reply = self._ask({"reap": pid})
            if reply.get("code") is not None:
                return ending(reply["code"])
            if not reply and self._wire is None:
                break
            time.sleep(POLL_S)
        return "nobody knows how"

    def close(self) -> None:
        """End it; its workers must have ended. Blocks."""
        with self._talking:
            if self._wire:
                self._wire.close()
                self._wire = None
        if self._popen:
            join(self._popen, CLOSE_TIMEOUT_S)

    def _can_fork(self) -> bool:
        if not self._is_ready and self._wire and not self.refusal:
            with suppress(BlockingIOError):
                self._wire.settimeout(0)
                reply = self._heard(self._wire)
                self._is_ready = "ready" in reply
                if not self._is_ready:
                    self._give_up(str(reply.get("refused", "it ended")))
        return self._is_ready and not self.refusal

    def _give_up(self, reason: str) -> None:
        """Fork nothing more. What it has forked lives on, and is reaped by it."""
        if not self.refusal:
            self.refusal = reason
            self._events.template_refused(reason=reason)

    def _ask(self, message: dict[str, Any], *descriptors: socket.socket) -> dict[str, Any]:
        """Its reply; empty where there is none in time."""
        if not self._talking.acquire(timeout=REPLY_TIMEOUT_S):
            return {}
        try:
            if self._wire is None:
                return {}
            number = next(self._numbers)
            said = json.dumps({**message, "number": number}).encode()
            self._wire.settimeout(REPLY_TIMEOUT_S)
            socket.send_fds(self._wire, [said], [each.fileno() for each in descriptors])
            reply = self._heard(self._wire)
            while reply and reply.get("number") != number:  # of a question that nobody waits for any more
                reply = self._heard(self._wire)
            return reply
        except OSError:
            return {}
        finally:
            self._talking.release()

    def _heard(self, wire: socket.socket) -> dict[str, Any]:
        data = wire.recv(MAX_MESSAGE_BYTES)
        if data:
            return dict(json.loads(data))
        wire.close()  # it is gone
        self._wire = None
        return {}


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
            time.sleep(POLL_S)
        return False
