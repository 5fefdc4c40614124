"""Engines that batch, one a GPU: each GPU gets one, keeps it, and no second one."""

from core.speech import Priors
from harness.scheduling import spawned, spec, submit
from scheduler.autoscaler import ColdPool
from scheduler.messages import Command, DeviceMemory, Died, Memory, Progress, Ready, Start, Tick
from scheduler.scheduler import Scheduler

GB = 10**9
PRIORS = Priors(rates=tuple(10.0 * (count + 1) for count in range(4)), start_s=1.0, memory_bytes=20 * GB)


def seen(*free: int) -> Memory:
    return Memory(tuple(DeviceMemory(f"GPU-{number}", each * GB, 100 * GB) for number, each in enumerate(free)), {})


def loaded(size: int | None = None) -> Scheduler:
    """The first worker has loaded on GPU-0."""
    scheduler = Scheduler(lead_s=60.0, cold=ColdPool(size=size), device="GPU-0")
    scheduler.start()
    scheduler.handle(Ready(1, 4, PRIORS, batches=True), 1.0)
    return scheduler


def grown(scheduler: Scheduler, *free: int) -> list[str]:
    """Devices of the workers that come, one after the other, as memory is read again and again."""
    devices = []
    for number in range(2, 8):
        commands = scheduler.handle(seen(*free), 2.0 * number)
        devices += [each.device for each in commands if hasattr(each, "device")]
        for worker in spawned(commands):
            scheduler.handle(Ready(worker, 4, PRIORS, batches=True), 2.0 * number + 1)
    return devices


def quiet(scheduler: Scheduler, last: int) -> list[Command]:
    """What is said in five minutes without work, in which all workers give signs of life."""
    said = []
    for second in range(20, 300, 2):
        for worker in range(1, last + 1):
            said += scheduler.handle(Progress(worker), float(second))
        said += scheduler.handle(Tick(), float(second))
    return said


def test_every_other_gpu_gets_one_without_being_asked():
    assert sorted(grown(loaded(), 15, 90, 90)) == ["GPU-1", "GPU-2"]


def test_none_comes_to_a_gpu_that_has_one_however_much_is_free():
    assert grown(loaded(), 90) == []
    assert grown(loaded(), 90, 10) == []


def test_the_operator_may_want_fewer():
    assert len(grown(loaded(size=1), 15, 90, 90)) == 1
    assert grown(loaded(size=0), 15, 90, 90) == []


def test_they_stay_when_there_is_nothing_to_do_and_come_back_when_they_died():
    scheduler = loaded()
    assert grown(scheduler, 15, 90) == ["GPU-1"]
    assert quiet(scheduler, 2) == []
    scheduler.handle(Died(2), 301.0)
    commands = scheduler.handle(seen(15, 90), 310.0)
    assert [each.device for each in commands if hasattr(each, "device")] == ["GPU-1"]


def test_streams_run_on_all_of_them():
    scheduler = loaded()
    grown(scheduler, 15, 90)
    commands = submit(scheduler, *(spec(number) for number in range(1, 9)), now=100.0)
    assert {each.worker for each in commands if isinstance(each, Start)} == {1, 2}
