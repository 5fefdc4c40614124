"""A process that has imported an engine's libraries, and forks workers that need not import them again.

    Pool ── Template ══ socket ══ this process ──fork──▶ worker ══ socket ══ Link
                                        └── reaps it, and tells how it ended

Importing torch takes longer than reading the weights. A fork takes what is imported along, and shares its memory. It is
safe only from a process that has one thread and has not touched a GPU: both are looked at before each fork, and where
they do not hold the worker is started by exec instead.
"""

import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from backends.registry import preload
from pool import worker
from pool.forks import MAX_MESSAGE_BYTES

GPU_FILES = ("/dev/nvidia", "/dev/dxg")
"""Of NVIDIA's driver, and of the one under Windows."""


def main() -> None:
    """Import what the command line names, then fork until the parent is gone.

    A message is JSON with a number, and so is the reply that follows it. `plan`, with the descriptor of the worker's
    socket and what its environment is to hold, forks: `pid`, or `refused` with the reason. `reap` names a worker that
    has ended: `code`, null where it is not quite gone yet.
    """
    wire = socket.socket(fileno=int(sys.argv[1]))
    worker.die_with_parent(int(sys.argv[3]))
    try:
        preload(sys.argv[2])
    except Exception as error:  # its workers will say what is wrong, better than this process can
        raise SystemExit(worker.reason_of(error)) from None
    say(wire, **({"refused": reason} if (reason := unfit()) else {"ready": True}))
    while True:
        data, descriptors, _, _ = socket.recv_fds(wire, MAX_MESSAGE_BYTES, 1)
        if not data:
            outlive_workers()
            raise SystemExit(0)
        message = json.loads(data)
        if "reap" in message:
            say(wire, number=message["number"], code=reap(message["reap"]))
        else:
            fork(wire, message, descriptors[0])


def say(wire: socket.socket, **reply: object) -> None:
    """One reply. Where nobody hears it, the next message does not come either."""
    with suppress(OSError):
        wire.send(json.dumps(reply).encode())


def unfit() -> str:
    """Why this process must not be forked; empty where nothing speaks against it."""
    if (threads := len(os.listdir("/proc/self/task"))) != 1:
        return f"it has {threads} threads"
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if os.readlink(descriptor).startswith(GPU_FILES):
                return "it has opened a GPU"
    return ""


def fork(wire: socket.socket, message: dict[str, Any], descriptor: int) -> None:
    """Make a worker of a copy of this process, which never comes back from here."""
    parent = os.getpid()
    try:
        if reason := unfit():
            say(wire, number=message["number"], refused=reason)
            return
        pid = os.fork()
    except OSError as error:  # no memory, or too many processes
        say(wire, number=message["number"], refused=f"it cannot be forked: {error.strerror}")
        return
    finally:
        if os.getpid() == parent:
            os.close(descriptor)
    if pid:
        say(wire, number=message["number"], pid=pid)
        return
    code = 1
    try:
        wire.close()
        os.environ.update(message["environment"])
        worker.work(socket.socket(fileno=descriptor), {**message["plan"], "parent": parent})
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stderr.flush()
        os._exit(code)


def reap(pid: int) -> int | None:
    """How a worker ended, as subprocess counts: an exit code, or a signal's number below 0. None: not quite yet."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return os.waitstatus_to_exitcode(status) if ended else None


def outlive_workers() -> None:
    """They end with this process, and are not to: whoever gave it up still listens to them."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


if __name__ == "__main__":
    main()
