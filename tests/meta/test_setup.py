"""setup.sh with a Python that installs nothing and writes down what it was asked for."""

import os
import re
import shutil
import subprocess

import pytest

from core.settings import PROJECT

PYTHON = """#!/bin/sh
echo "${PIP_INDEX_URL:-own} $*" >>asked
case "$*" in *"$FAILS"*) [ -z "$FAILS" ] || exit 1 ;; esac
"""

TORCH = re.compile(r"^(\S+) -m pip .* (install|uninstall) \S+ torch(?:==\S+)?$", re.MULTILINE)


@pytest.fixture
def setup(tmp_path):
    """Call it to run setup.sh; what was said, and from which index torch was removed or installed."""
    for name in ("setup.sh", "pyproject.toml", "requirements"):
        copy = shutil.copytree if (PROJECT / name).is_dir() else shutil.copy2
        copy(PROJECT / name, tmp_path / name)
    for folder in ("venv/bin", "venv/.stamps"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "venv/.stamps/venv").write_text(f"{tmp_path.resolve()}\n")
    (tmp_path / "venv/bin/python").write_text(PYTHON)
    (tmp_path / "venv/bin/python").chmod(0o755)

    def setup(*words, code=0, **variables):
        (tmp_path / "asked").write_text("")
        environment = {"PATH": os.environ["PATH"], "FAILS": "", **variables}
        ran = subprocess.run(
            ["./setup.sh", *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == code, ran.stderr
        return ran.stdout, TORCH.findall((tmp_path / "asked").read_text())

    return setup


A, B = {"TORCH_INDEX": "https://a/cpu"}, {"TORCH_INDEX": "https://b/cuda"}
INSTALLED_A, INSTALLED_B, REMOVED = ("https://a/cpu", "install"), ("https://b/cuda", "install"), ("own", "uninstall")


@pytest.mark.parametrize(
    ("runs", "did"),
    [
        pytest.param([{}, {}], [("own", "install")], id="no index, twice"),
        pytest.param([A, A], [INSTALLED_A], id="the same index twice"),
        pytest.param([A, {}], [INSTALLED_A], id="no index any more"),
        pytest.param([A, B], [INSTALLED_A, REMOVED, INSTALLED_B], id="another index"),
        pytest.param([{}, A, {}], [("own", "install"), REMOVED, INSTALLED_A], id="an index later on"),
        pytest.param(
            [A, {**B, "FAILS": "install --no-warn-script-location torch==", "code": 1}, {}],
            [INSTALLED_A, REMOVED, INSTALLED_B, INSTALLED_B],
            id="another index that breaks off",
        ),
    ],
)
def test_torch_comes_from_the_index_that_was_named_last(setup, runs, did):
    assert [step for run in runs for step in setup("--backend", "coqui", **run)[1]] == did


def test_it_says_how_to_start_unless_somebody_starts_it(setup):
    assert "Ready." in setup()[0]
    assert "Ready." in setup()[0]
    assert setup(GOES_ON="yes")[0] == ""


def test_make_serve_starts_it(setup):
    told = subprocess.run(["make", "-n", "serve"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    assert told.splitlines()[0] == "GOES_ON=yes ./setup.sh"
