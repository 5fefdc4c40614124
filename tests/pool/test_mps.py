"""The daemon of NVIDIA MPS: ours alone, in a folder of its own, and gone with the server however that ends.

The daemon here is a fake, a script that listens on a pipe: it stands for a program that only machines with a GPU have.
"""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from core.environment import SettingsError
from harness.server import PROJECT, until
from pool.mps import Mps, is_installed

FAKE = """#!/bin/sh
# As the real one: -d starts a daemon that listens on "control" in the pipe directory; without it, commands are read.
if [ "${1:-}" = -d ]; then
    [ -z "${BROKEN:-}" ] || exit 1
    mkfifo "$CUDA_MPS_PIPE_DIRECTORY/control"
    (read -r word <"$CUDA_MPS_PIPE_DIRECTORY/control"; exit 0) >/dev/null 2>&1 &
    echo $! >"$CUDA_MPS_PIPE_DIRECTORY/pid"
else
    cat >"$CUDA_MPS_PIPE_DIRECTORY/control"
fi
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    path = tmp_path / "bin" / "nvidia-cuda-mps-control"
    path.parent.mkdir()
    path.write_text(FAKE)
    path.chmod(0o755)
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    return path


def test_it_has_a_folder_of_its_own_and_leaves_nothing(program, tmp_path):
    assert is_installed()
    mps = Mps()
    folder = Path(mps.environment["CUDA_MPS_PIPE_DIRECTORY"])
    assert folder.parent == tmp_path / "run"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert Path(mps.environment["CUDA_MPS_LOG_DIRECTORY"]).is_dir()
    daemon = psutil.Process(int((folder / "pid").read_text()))
    mps.close()
    until(lambda: not daemon.is_running())
    assert not list((tmp_path / "run").iterdir())


def test_one_that_does_not_start_is_a_readable_line(program, monkeypatch, tmp_path):
    monkeypatch.setenv("BROKEN", "1")
    with pytest.raises(SettingsError, match="GPU_MPS"):
        Mps()
    assert not list((tmp_path / "run").iterdir())


def test_it_goes_with_a_server_that_is_killed(program, tmp_path):
    code = "from pool.mps import Mps; import time; mps = Mps(); print(flush=True); time.sleep(60)"
    server = subprocess.Popen([sys.executable, "-c", code], cwd=PROJECT, stdout=subprocess.PIPE)
    assert server.stdout
    server.stdout.readline()
    (folder,) = (tmp_path / "run").iterdir()
    daemon = psutil.Process(int((folder / "pid").read_text()))
    children = psutil.Process(server.pid).children()
    server.send_signal(signal.SIGKILL)
    server.wait()
    server.stdout.close()
    until(lambda: not daemon.is_running() and not any(child.is_running() for child in children))
    began = time.monotonic()
    while any((tmp_path / "run").iterdir()):
        assert time.monotonic() - began < 5
        time.sleep(0.01)
