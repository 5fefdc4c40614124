"""What no file of the repository may hold: where somebody's packages come from, and where somebody's files lie."""

import re
import subprocess

import pytest

from core.environment import PROJECT

# Put together here, so that this file does not hold them either.
FORBIDDEN = [
    pytest.param("pypi" + r"\.org", id="the address of a package registry"),
    pytest.param("pythonhosted" + r"\.org", id="the address of its files"),
    pytest.param(r"(--index|--extra-index|--find)-" + "(url|links)[ =]", id="an index of packages"),
    pytest.param(r"(?<![\w.])/" + r"(home|Users)/\w+/", id="a home folder"),
    pytest.param(r"(?<![\w.])/" + r"(root|work|opt)/\w+", id="a folder of one machine"),
    pytest.param("BEGIN [A-Z ]*" + "PRIVATE KEY", id="a private key"),
]


def texts() -> list[tuple[str, str]]:
    """Path and content of each text file that is in the repository, or would be with `git add`."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=PROJECT, capture_output=True, check=True, text=True).stdout.split("\0")
    files = [(name, PROJECT / name) for name in names if name and (PROJECT / name).is_file()]
    return [(name, path.read_text("utf-8", errors="ignore")) for name, path in files if path.suffix != ".npz"]


@pytest.fixture(scope="module")
def repository() -> list[tuple[str, str]]:
    if not (PROJECT / ".git").exists():
        pytest.skip("this is no checkout of git")
    return texts()


@pytest.mark.parametrize("forbidden", FORBIDDEN)
def test_no_file_holds(forbidden, repository):
    pattern = re.compile(forbidden)
    assert [(name, found[0]) for name, text in repository if (found := pattern.search(text))] == []


def test_every_package_of_a_lock_has_a_hash(repository):
    locks = {name: text for name, text in repository if re.fullmatch(r"requirements/.*\.txt", name)}
    assert locks
    for name, text in locks.items():
        entries = text.replace("\\\n", "").splitlines()
        assert [entry for entry in entries if "==" in entry and "--hash=sha256:" not in entry] == [], name
