"""What holds for every test: it leaves nothing behind, and children find the fakes."""

import os
import tempfile
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import psutil
import pytest

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # for the gauges, which import onnxruntime by themselves

FAKES = Path(__file__).parent / "fakes"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first: it is not to be the last that runs while other processes have nothing to do."""

    def seconds(item: pytest.Item) -> float:
        marker = item.get_closest_marker("slow")
        return 0 if marker is None else marker.kwargs.get("file_s", 10)

    items.sort(key=seconds, reverse=True)


@pytest.fixture
def fakes_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that the test starts can import what lies in `tests/fakes/`."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAKES), *filter(None, [os.environ.get("PYTHONPATH")])]))


@pytest.fixture(scope="session", autouse=True)
def _temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Temporary files of this run and its children go to a folder of their own, so that each of them is known."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("temporary")
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", None)
        patch.setenv("STATE_DIR", str(tmp_path_factory.mktemp("state")))
        patch.setenv("AUDIO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("CACHE_TTL_MINUTES", "0")  # speech is what is tested; the cache has tests of its own
        yield folder


@pytest.fixture(autouse=True)
def _nothing_is_left(_temporary: Path) -> Iterator[None]:
    """Child processes (zombies are some), threads, listening ports and temporary files: as many after as before.

    What a session's fixture started is there before, and may stay.
    """
    before = _remains(_temporary)
    yield
    left = _remains(_temporary) - before
    assert not left, f"left behind: {', '.join(sorted(_described(*thing) for thing in left))}"


def _remains(temporary: Path) -> set[tuple[str, int | str]]:
    files = (("file", name) for name in os.listdir(temporary))
    return {*_children(), *_threads(), *_ports(), *files}


def _children() -> Iterator[tuple[str, int]]:
    """Read from the kernel's own lists: asking every process for its parent takes ten times as long."""
    tracker = getattr(resource_tracker, "_resource_tracker", None)
    for thread in os.listdir("/proc/self/task"):
        try:
            pids = Path(f"/proc/self/task/{thread}/children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):  # that thread has just ended
            continue
        yield from (("process", int(pid)) for pid in pids if int(pid) != getattr(tracker, "_pid", None))


def _threads() -> Iterator[tuple[str, int]]:
    return (("thread", thread.ident or 0) for thread in threading.enumerate() if not thread.daemon)


def _ports() -> Iterator[tuple[str, int]]:
    connections = psutil.Process().net_connections("inet")
    return (("port", found.laddr.port) for found in connections if found.status == psutil.CONN_LISTEN)


def _described(kind: str, which: int | str) -> str:
    if kind == "process" and psutil.pid_exists(int(which)):
        process = psutil.Process(int(which))
        return f"process {which}, {process.name()}, {process.status()}"
    if kind == "thread":
        return f"thread {next((thread.name for thread in threading.enumerate() if thread.ident == which), which)}"
    return f"{kind} {which}"
