"""setup.sh with a Python that installs nothing and writes down what it was asked for."""

import os
import re
import shutil
import subprocess

import pytest

from core.environment import PROJECT

PYTHON = """#!/bin/sh
echo "${PIP_INDEX_URL:-own} $*" >>asked
case "$*" in *cp%d%d*) echo cp312 ;; esac
case "$*" in *"$FAILS"*) [ -z "$FAILS" ] || exit 1 ;; esac
# A package can be imported once it has been installed.
case "$*" in *"import flash_attn"*) [ -f has-flash-attn ] || exit 1 ;; *install*flash*) touch has-flash-attn ;; esac
"""

NVIDIA_SMI = """#!/bin/sh
[ -n "$CARDS" ] || exit 9
printf '%s\\n' $CARDS
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

    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in {"nvidia-smi": NVIDIA_SMI, "nvcc": "#!/bin/sh\n"}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def setup(*words, code=0, **variables):
        (tmp_path / "asked").write_text("")
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "FAILS": "", "CARDS": "", **variables}
        ran = subprocess.run(
            ["./setup.sh", *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == code, ran.stderr
        setup.errors, setup.asked = ran.stderr, (tmp_path / "asked").read_text()
        return ran.stdout, TORCH.findall((tmp_path / "asked").read_text())

    setup.folder = tmp_path
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
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # of `make test`
    run = subprocess.run(
        ["make", "-n", "serve"], cwd=PROJECT, env=environment, capture_output=True, text=True, check=True
    )
    told = run.stdout
    assert told.splitlines()[0] == "GOES_ON=yes ./setup.sh"


BATCHING = ("--backend", "voxcpm-vllm")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        pytest.param({}, "nvidia-smi finds none", id="no GPU"),
        pytest.param({"CARDS": "7.5"}, "one here has 7.5", id="a GPU that is too old"),
        pytest.param({"CARDS": "9.0 7.5"}, "one here has 7.5", id="one of two that is too old"),
        pytest.param({"CARDS": "9.0", "FAILS": "(3, 12)"}, "needs Python 3.11 or 3.12", id="a Python that is too new"),
        pytest.param({"FORCE": "yes"}, "name a wheel by FLASH_ATTN_WHEEL", id="forced, and nothing to compile for"),
        pytest.param({"CARDS": "9.0", "FLASH_ATTN_WHEEL": "wheels"}, "there is no flash-attn for", id="no such wheel"),
    ],
)
def test_batching_is_refused_with_what_is_missing(setup, variables, says):
    setup(*BATCHING, code=1, **variables)
    assert says in setup.errors


def test_batching_without_a_compiler_says_so(setup):
    (setup.folder / "programs" / "nvcc").unlink()
    path = f"{setup.folder}/programs:/usr/bin:/bin"
    setup(*BATCHING, code=1, CARDS="9.0", CUDA_HOME=str(setup.folder), PATH=path)
    assert "nvcc is not installed" in setup.errors


@pytest.mark.parametrize(
    ("cards", "archs"),
    [("9.0", "90"), ("8.6", "80"), ("8.9 8.6", "80"), ("12.0 9.0", "120;90"), ("10.3", "100")],
)
def test_flash_attn_is_compiled_for_the_cards_that_are_here_and_once(setup, cards, archs):
    assert f"compute capability {archs} with" in setup(*BATCHING, CARDS=cards)[0]
    assert "requirements/flash-attn.txt" in setup.asked
    assert "Compiling" not in setup(*BATCHING, CARDS=cards)[0]
    assert "flash" not in setup.asked


@pytest.mark.parametrize("named", ["wheels", "wheels/{}"], ids=["a folder", "a file"])
def test_a_wheel_that_is_named_is_taken_and_nothing_compiled(setup, named):
    wheels = setup.folder / "wheels"
    wheels.mkdir()
    machine = os.uname().machine
    good = f"flash_attn-2.8.3-cp312-cp312-linux_{machine}.whl"
    for name in (good, f"flash_attn-2.8.3-cp311-cp311-linux_{machine}.whl", "torch-2.13.whl"):
        (wheels / name).touch()
    said, _ = setup(*BATCHING, CARDS="9.0", FLASH_ATTN_WHEEL=named.format(good))
    assert "Compiling" not in said
    assert f"wheels/{good}" in setup.asked


def test_a_wheel_for_another_torch_is_told(setup):
    (setup.folder / "flash_attn.whl").touch()
    setup(*BATCHING, code=1, CARDS="9.0", FLASH_ATTN_WHEEL="flash_attn.whl", FAILS="import flash_attn")
    assert "does not fit the torch" in setup.errors
