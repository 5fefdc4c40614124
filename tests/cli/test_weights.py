"""`weights` as a person types it: licence, bars and lines, Ctrl-C, a killed run, and what comes next."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner, Result

from backends.engines import COQUI, ENGINES, VOXCPM, find
from backends.weights.lock import read_lock
from cli.main import app
from cli.weights import Model, _Lines
from core.environment import PROJECT
from core.settings import load_settings
from hub import Hub, serving, stall

XTTS = {name: name.encode() * 5000 for name in ("config.json", "model.pth", "vocab.json", "speakers_xtts.pth")}
AGREED = {"COQUI_TOS_AGREED": "1"}
NAME = "tts_models--multilingual--multi-dataset--xtts_v2"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("TTS_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "500")
    with serving(Hub("coqui/XTTS-v2", XTTS)) as serving_hub:
        monkeypatch.setenv("HF_ENDPOINT", serving_hub.url)
        yield serving_hub


def weights(*words: str, given: str | None = None, **variables: str) -> Result:
    return CliRunner().invoke(app, ["weights", *words], input=given, env=variables)


def test_the_weights_come_to_where_the_engine_looks_for_them(hub, tmp_path):
    told = weights("xtts", **AGREED)
    assert told.exit_code == 0, told.output
    assert "non-commercial purposes only" in told.output
    assert "model.pth: 100 % of 0.0 MB" in told.output
    assert f"The weights are whole, in {tmp_path / NAME}." in told.output
    assert find(COQUI, load_settings().options("coqui")) == tmp_path / NAME


def test_a_second_run_needs_neither_hub_nor_answer(hub):
    weights("xtts", **AGREED)
    asked = len(hub.asked)
    assert weights("xtts").exit_code == 0
    assert len(hub.asked) == asked


def test_voxcpm_asks_for_no_yes(hub, tmp_path):
    hub.repository = "openbmb/VoxCPM2"
    hub.files = hub.listed = {names[0]: b"x" for names in VOXCPM.release.files}
    told = weights("voxcpm", TTS_BACKEND="kokoro")
    assert (told.exit_code, "Apache License 2.0" in told.output) == (0, True)
    assert "TTS_BACKEND=voxcpm lets the server speak with it." in told.output
    assert read_lock(tmp_path / "openbmb--VoxCPM2").licence_accepted is None


def test_libraries_that_are_missing_come_next(hub, monkeypatch):
    monkeypatch.setattr("backends.engines.find_spec", lambda name: None)
    assert "./setup.sh --backend coqui" in weights("xtts", **AGREED).output


@pytest.mark.parametrize("given", ["", "y\n"])
def test_nobody_at_a_terminal_accepts_nothing(hub, tmp_path, given):
    told = weights("xtts", given=given)
    assert (told.exit_code, told.stderr) == (
        1,
        "Nobody is here to ask: COQUI_TOS_AGREED=1 says that you accept this licence.\n",
    )
    assert (hub.asked, list(tmp_path.iterdir())) == ([], [])


def test_no_gpu_is_needed_to_fetch(hub):
    assert weights("xtts", TTS_DEVICE="gpu", CUDA_VISIBLE_DEVICES="", **AGREED).exit_code == 0


def test_a_standard_output_that_is_closed_is_none_to_write_to(hub, tmp_path):
    command = f"exec '{sys.executable}' '{PROJECT / 'main_tts.py'}' weights xtts >&-"
    ran = subprocess.run(
        ["sh", "-c", command], env={**os.environ, **AGREED}, stderr=subprocess.PIPE, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / NAME / "model.pth").exists()


def on_a_terminal(typed: bytes) -> tuple[int, str]:
    """Exit code and screen of the command where somebody types that."""
    ours, theirs = pty.openpty()
    command = [sys.executable, str(PROJECT / "main_tts.py"), "weights", "xtts"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.write(ours, typed)
        screen = b""
        while piece := read(ours):
            screen += piece
    os.close(ours)
    return process.returncode, screen.decode()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # its other end was closed
        return b""


@pytest.mark.parametrize(
    ("typed", "code"),
    [pytest.param(b"n\n", 1, id="no"), pytest.param(b"y\n", 0, id="yes"), pytest.param(b"\n", 1, id="nothing")],
)
def test_somebody_at_a_terminal_is_asked(hub, tmp_path, typed, code):
    returned, screen = on_a_terminal(typed)
    assert "Do you accept it? [y/n]" in screen
    assert (returned, (tmp_path / NAME / "model.pth").exists()) == (code, code == 0)
    if code == 0:
        assert read_lock(tmp_path / NAME).licence_accepted == COQUI.release.licence
        assert "━" in screen


def test_a_terminal_that_can_move_nothing_shows_lines(hub, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    returned, screen = on_a_terminal(b"y\n")
    assert (returned, "model.pth: 100 %" in screen, "\x1b" in screen) == (0, True, False)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)], ids=["Ctrl-C", "killed"]
)
def test_a_run_that_was_broken_off_goes_on_from_there(hub, tmp_path, number, code):
    hub.faults["model.pth"] = [stall(1000)]
    part = tmp_path / NAME / "model.pth.part"
    with subprocess.Popen(
        # What is started in the background of a shell would not hear of a Ctrl-C.
        ["env", "--default-signal=INT", sys.executable, str(PROJECT / "main_tts.py"), "weights", "xtts"],
        env={**os.environ, **AGREED},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        while not (part.exists() and part.stat().st_size == 1000):
            assert psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE
            time.sleep(0.01)
        process.send_signal(number)
        said = process.stdout.read()
    assert process.returncode == code
    assert "Traceback" not in said
    assert ("goes on from here" in said) is (code == 130)
    assert weights("xtts", **AGREED).exit_code == 0
    assert hub.ranges("model.pth") == ["all", "bytes=1000-"]
    assert (tmp_path / NAME / "model.pth").read_bytes() == XTTS["model.pth"]
    assert not list(Path(tmp_path).rglob("*.part"))


def test_a_token_is_shown_nowhere(hub):
    told = weights("xtts", HF_TOKEN="hf_secret", **AGREED)
    assert told.exit_code == 0
    assert {headers.get("Authorization") for _, headers in hub.asked} == {"Bearer hf_secret"}
    assert "hf_secret" not in told.output


def test_a_hub_that_refuses_is_one_line(hub):
    hub.repository = "somebody/else"
    told = weights("xtts", **AGREED)
    assert (told.exit_code, told.stderr.count("\n")) == (1, 1)
    assert "404" in told.stderr


@pytest.mark.parametrize("address", ["ftp://a", "huggingface.co", "https://user@host", "file:///etc"])
def test_an_address_that_is_none_of_a_hub_is_a_setting_that_cannot_be_used(address):
    told = weights("xtts", HF_ENDPOINT=address)
    assert (told.exit_code, "HF_ENDPOINT" in told.stderr) == (2, True)


def test_every_engine_has_a_name_to_ask_for():
    assert set(Model) == {engine.model for engine in ENGINES.values()}


def test_a_line_comes_at_each_tenth(capsys):
    lines = _Lines()
    for done in range(0, 1001):
        lines.progress("a", done, 1000)
    lines.progress("empty", 0, 0)
    told = capsys.readouterr().out.splitlines()
    assert told == [*(f"a: {step} % of 0.0 MB" for step in range(0, 101, 10)), "empty: 0 % of 0.0 MB"]


SETUP_ASSETS = str(PROJECT / "setup_assets.sh")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--help"], 0, "--model NAME"),
        (["--model"], 2, "--model takes xtts or voxcpm."),
        (["--model", "coqui"], 2, "--model takes xtts or voxcpm."),
        (["--model="], 2, "--model takes xtts or voxcpm."),
        (["--modell"], 2, "There is no option --modell."),
        (["xtts"], 2, "There is no option xtts."),
        (["--model", "xtts", "--again"], 1, "COQUI_TOS_AGREED=1"),
        (["--model=xtts"], 1, "COQUI_TOS_AGREED=1"),
    ],
)
def test_the_script_takes_what_it_knows(hub, words, code, says):
    ran = subprocess.run([SETUP_ASSETS, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (ran.returncode, says in ran.stdout + ran.stderr) == (code, True)
