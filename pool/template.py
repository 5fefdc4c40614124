"""A process that has imported an engine's libraries, and forks workers that need not import them again.

    Pool ── Template ══ socket ══ this process ──fork──▶ worker ══ socket ══ Link
                                        └── reaps it, and tells how it ended

Importing torch takes longer than reading the weights. A fork takes what is imported along, and shares its memory. It is
safe only from a process that has one thread and has not touched a GPU: both are looked at before each fork, and where
they do not hold the worker is started by exec instead.
"""

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from backends.registry import preload
from pool import worker
from pool.forks import MAX_MESSAGE_BYTES


def main() -> None:
    """Import what the command line names, then fork until the parent is gone.

    A message is JSON; a reply follows each. `{"plan": ...}`, with the descriptor of the worker's socket and an
    environment, forks: `{"pid": ...}` or `{"refused": reason}`. `{"reap": pid}` waits for an end: `{"code": ...}`.
    """
    wire = socket.socket(fileno=int(sys.argv[1]))
    worker.die_with_parent()
    try:
        preload(sys.argv[2])
    except Exception as error:  # its workers will say what is wrong, better than this process can
        raise SystemExit(worker.reason_of(error)) from None
    say(wire, {"refused": reason} if (reason := unfit()) else {"ready": True})
    while True:
        data, descriptors, _, _ = socket.recv_fds(wire, MAX_MESSAGE_BYTES, 1)
        if not data:
            raise SystemExit(0)
        message = json.loads(data)
        if "reap" in message:
            say(wire, {"code": reap(message["reap"])})
        else:
            fork(wire, message, descriptors[0])


def say(wire: socket.socket, reply: dict[str, object]) -> None:
    """One reply."""
    wire.send(json.dumps(reply).encode())


def unfit() -> str:
    """Why this process must not be forked; empty where nothing speaks against it."""
    if (threads := len(os.listdir("/proc/self/task"))) != 1:
        return f"it has {threads} threads"
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if os.readlink(descriptor).startswith("/dev/nvidia"):
                return "it has opened a GPU"
    return ""


def fork(wire: socket.socket, message: dict[str, Any], descriptor: int) -> None:
    """Make a worker of a copy of this process, which never comes back from here."""
    if reason := unfit():
        os.close(descriptor)
        say(wire, {"refused": reason})
        return
    pid = os.fork()
    if pid:
        os.close(descriptor)
        say(wire, {"pid": pid})
        return
    code = 1
    try:
        wire.close()
        os.environ.update(message["environment"])
        worker.work(socket.socket(fileno=descriptor), message["plan"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stderr.flush()
        os._exit(code)


def reap(pid: int) -> int:
    """How a worker ended, as subprocess counts: an exit code, or a signal's number below 0. Kills one that has not."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return 0


if __name__ == "__main__":
    main()
