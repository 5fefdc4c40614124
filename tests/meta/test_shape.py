"""The figures that keep the code readable, and the lists that must agree. An exception is a line in a table."""

import ast
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from core.environment import PROJECT
from core.settings import env_example

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60

EXCEPTIONS: dict[str, str] = {}
"""`path` or `path:function` to the reason why it may be longer."""

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = sorted(path.parent.name for path in PROJECT.glob("*/__init__.py"))
MODULES = sorted(path for room in ROOMS for path in (PROJECT / room).rglob("*.py"))

a_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PROJECT)))
Function = ast.FunctionDef | ast.AsyncFunctionDef


def name(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@a_module
def test_a_module_fits_in_the_head(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_MODULE_LINES or name(path) in EXCEPTIONS, f"{lines} lines"


@a_module
def test_a_function_fits_on_a_screen(path):
    found = (node for node in ast.walk(parse(path)) if isinstance(node, Function))
    long = [node.name for node in found if (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES]
    assert [function for function in long if f"{name(path)}:{function}" not in EXCEPTIONS] == []


@a_module
def test_state_has_an_owner_and_is_not_global(path):
    assert not [node.lineno for node in ast.walk(parse(path)) if isinstance(node, ast.Global)]


def test_every_exception_is_for_something_that_exists():
    for path, _, function in (entry.partition(":") for entry in EXCEPTIONS):
        assert not function or function in {getattr(node, "name", "") for node in ast.walk(parse(PROJECT / path))}


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(PYPROJECT["tool"]["importlinter"]["root_packages"], id="import-linter"),
        pytest.param(PYPROJECT["tool"]["setuptools"]["packages"], id="setuptools"),
        pytest.param(PYPROJECT["tool"]["mypy"]["files"], id="mypy"),
        pytest.param(PYPROJECT["tool"]["coverage"]["run"]["source"], id="coverage"),
    ],
)
def test_every_list_of_rooms_is_the_folders_on_disk(listed):
    assert sorted({package.partition(".")[0] for package in listed} - {"main_tts", "bench"}) == ROOMS


def test_every_package_is_installed():
    packages = {".".join(path.parent.relative_to(PROJECT).parts) for path in MODULES}
    assert sorted(packages) == PYPROJECT["tool"]["setuptools"]["packages"]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_the_one_of_this_checkout(room):
    spec = find_spec(room)
    assert spec
    assert spec.origin == str(PROJECT / room / "__init__.py")


def test_the_example_of_settings_is_the_settings():
    assert (PROJECT / ".env.example").read_text(encoding="utf-8") == env_example(), "run make fix"
