"""Memory that is read, promised, held, and was not enough."""

from scheduler.ledger import Ledger
from scheduler.messages import DeviceMemory, Memory


def read(ledger: Ledger, free: int, **held: int) -> None:
    workers = {int(name[1:]): size for name, size in held.items()}
    ledger.read(Memory((DeviceMemory("cpu", free),), workers))


def test_what_a_worker_needs_is_learned_from_those_that_have_loaded():
    ledger = Ledger(least_bytes=1)
    read(ledger, 1000, w1=10)
    assert ledger.need_bytes(300) == 300  # it has only begun to load
    ledger.settle(1)
    assert ledger.is_unsure("cpu")  # what was read is of before
    read(ledger, 500, w1=400, w2=10)
    assert not ledger.is_unsure("cpu")
    assert ledger.need_bytes(300) == 400


def test_what_was_promised_counts_until_it_is_seen_to_be_taken():
    ledger = Ledger(least_bytes=1)
    read(ledger, 1000)
    ledger.promise(2, "cpu", 400)
    assert ledger.is_unsure("cpu")
    read(ledger, 900, w2=100)
    assert ledger.room_bytes("cpu") == 500
    ledger.settle(2)
    assert ledger.room_bytes("cpu") == 500
    read(ledger, 600, w2=400)
    assert ledger.room_bytes("cpu") == 600


def test_a_device_on_which_memory_ran_out_is_barred_until_there_is_more_than_what_was_not_enough():
    ledger = Ledger(least_bytes=1)
    read(ledger, 700, w2=300)
    ledger.bar("cpu", 2)
    read(ledger, 1000)  # all that the dead worker had is back: as little as before
    assert ledger.room_bytes("cpu") == 0
    assert ledger.best(1) is None
    read(ledger, 1100)
    assert ledger.room_bytes("cpu") == 1100
