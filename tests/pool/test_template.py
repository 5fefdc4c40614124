"""Workers that are forked from a process that has imported everything."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from core.events import Silence
from harness.pool import eventually, open_pool, submit
from harness.server import until
from pool.forks import ForkedProcess, Template
from pool.process import WorkerSpec
from pool.protocol import FrameReader, Kind
from scheduler.autoscaler import ColdPool
from scheduler.messages import CPU
from sink import MemorySink

pytestmark = pytest.mark.usefixtures("fakes_path")

SPEC = WorkerSpec("tone_backend:make", {})
COLD = ColdPool(size=2, idle_s=0.5, stagger_s=0.5, interval_s=0.1, safety=0.0)


@contextmanager
def opened(backend: str) -> Iterator[Template]:
    template = Template(backend, Silence())
    template.open()
    try:
        yield template
    finally:
        template.close()


@pytest.fixture
def template():
    with opened("tone_backend:make") as template:
        yield template


def forked(template: Template) -> ForkedProcess:
    children: list[ForkedProcess] = []

    def is_there() -> bool:
        children.extend(filter(None, [template.fork(SPEC, CPU)]))
        return bool(children or template.refusal)

    until(is_there)
    assert children, template.refusal
    return children[0]


def test_it_forks_a_worker_that_ends_when_its_socket_closes(template):
    child = forked(template)
    parent = psutil.Process(psutil.Process(child.pid).ppid())
    assert "pool.template" in parent.cmdline()
    child.socket.close()
    assert child.join(5.0).startswith("exit code")
    assert not psutil.pid_exists(child.pid)


def test_a_worker_that_is_killed_is_reaped_and_says_so(template):
    child = forked(template)
    child.kill()
    assert child.join(5.0) == "signal SIGKILL"
    child.socket.close()


def test_a_worker_that_does_not_end_is_killed(template):
    child = forked(template)
    os.kill(child.pid, signal.SIGSTOP)
    child.socket.close()
    assert child.join(0.1) == "signal SIGKILL"


def test_a_worker_ends_with_the_template(template):
    child = forked(template)
    worker = psutil.Process(child.pid)
    psutil.Process(worker.ppid()).kill()
    until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)
    assert child.join(1.0) == "nobody knows how"
    child.socket.close()


@pytest.mark.parametrize(
    ("backend", "reason"), [("nothing_of_that_name:make", "it ended"), ("threaded_backend:make", "it has 2 threads")]
)
def test_one_that_cannot_be_forked_says_why_and_leaves_it_to_exec(backend, reason):
    with opened(backend) as template:
        until(lambda: template.fork(SPEC, CPU) is None and bool(template.refusal))
        assert template.refusal == reason


def test_one_that_stands_still_is_given_up_holds_nobody_up_and_takes_no_worker_along(template):
    child = forked(template)
    (process,) = [child for child in psutil.Process().children() if "pool.template" in child.cmdline()]
    process.suspend()
    began = time.monotonic()
    assert template.fork(SPEC, CPU) is None
    assert template.fork(SPEC, CPU) is None
    assert time.monotonic() - began < 0.5
    process.resume()
    child.socket.setblocking(True)
    child.socket.settimeout(5)
    frames = FrameReader()
    while not any(frame.kind is Kind.ALIVE for frame in frames.feed(child.socket.recv(2**16))):
        pass  # it has loaded, and lives
    child.socket.close()
    assert child.join(5.0).startswith("exit code")


def test_cold_workers_are_forked_from_it_and_speak():
    async def scene() -> None:
        async with open_pool(COLD, templated=True, slots=1) as pool:
            await pool.traits()
            (hot,) = pool.pids.values()
            assert psutil.Process(hot).ppid() == os.getpid()

            def template() -> list[psutil.Process]:
                children = psutil.Process().children()
                return [child for child in children if "pool.template" in child.cmdline()]

            await eventually(lambda: template(), 10)
            await asyncio.sleep(1.0)  # the time in which it imports; a worker that comes earlier is started by exec
            sinks = [MemorySink() for _ in range(24)]
            for sink in sinks:
                submit(pool, sink, "slow " * 16)
            await eventually(lambda: len(pool.pids) == 3, 10)
            parents = [psutil.Process(pid).ppid() for pid in pool.pids.values() if pid != hot]
            assert parents == [template()[0].pid] * 2
            async with asyncio.timeout(30):
                await asyncio.gather(*(sink.ended.wait() for sink in sinks))
            assert all(sink.error is None and sink.seconds(0) == pytest.approx(1.6) for sink in sinks)
            await eventually(lambda: len(pool.pids) == 1, 10)

    asyncio.run(scene())
