"""NVIDIA's Multi-Process Service: workers on one GPU compute at the same time, instead of in turn.

    server ── Mps ══ socket ══ this process ──▶ nvidia-cuda-mps-control ──▶ nvidia-cuda-mps-server, one a user

The daemon is ours alone: it has a folder of its own for its pipes, which workers are told of, and touches no setting of
the card. When the socket ends, however the server does, it is told to quit, and the folder goes.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from core.environment import SettingsError
from pool.process import CLOSE_TIMEOUT_S, join, start

PROGRAM = "nvidia-cuda-mps-control"

READY_S = 10.0
"""For the daemon to listen."""


def is_installed() -> bool:
    """Whether there is such a daemon on this machine."""
    return shutil.which(PROGRAM) is not None


class Mps:
    """A daemon of this server's own. Starts with it, and ends with it."""

    def __init__(self) -> None:
        """Blocks until workers can be started. Raises SettingsError where it does not come to that."""
        self._wire, theirs = socket.socketpair()
        self._wire.settimeout(READY_S)
        self._popen = start("pool.mps", theirs, environment={})
        try:
            folder = self._wire.recv(4096).decode()
        except TimeoutError:
            folder = ""
        if not folder:
            self.close()
            raise SettingsError("GPU_MPS: the daemon of NVIDIA MPS does not start (is nvidia-cuda-mps-control there?).")
        self.environment = environment_of(Path(folder))

    def close(self) -> None:
        """End it; workers must have ended. Blocks."""
        self._wire.close()
        join(self._popen, 3 * CLOSE_TIMEOUT_S)


def environment_of(folder: Path) -> dict[str, str]:
    """What a process needs to know of a daemon."""
    return {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder / "log")}


def main() -> None:
    """Run a daemon until the parent is gone."""
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    wire = socket.socket(fileno=int(sys.argv[1]))
    # Paths of pipes must be short; this one is, and is the user's own.
    folder = Path(tempfile.mkdtemp(prefix="uttera-mps-", dir=os.environ.get("XDG_RUNTIME_DIR")))
    (folder / "log").mkdir()
    environment = {**os.environ, **environment_of(folder)}
    try:
        with suppress(OSError, subprocess.SubprocessError):
            daemon = [PROGRAM, "-d"]
            subprocess.run(daemon, env=environment, stdin=subprocess.DEVNULL, check=True, timeout=READY_S)
            wire.sendall(str(folder).encode())
            wire.recv(1)  # nothing is ever sent: this is its end
    finally:
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                [PROGRAM],
                env=environment,
                input=b"quit\n",
                stdout=subprocess.DEVNULL,
                timeout=CLOSE_TIMEOUT_S,
                check=False,
            )
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
