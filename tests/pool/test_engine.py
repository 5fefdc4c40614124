"""What a worker keeps of voices."""

import numpy as np
import pytest

from backends.base import Done
from backends.latents import Latents
from backends.voices import Voices
from core.speech import Reference, Task, Utterance
from pool.engine import ThreadedEngine
from tone_backend import ToneBackend


class Counting(ToneBackend):
    """Counts how often it prepares a voice."""

    def __init__(self):
        super().__init__({"clones": True})
        self.prepared = []

    def prepare(self, reference):
        self.prepared.append(reference.key)
        return super().prepare(reference)


@pytest.fixture
def sample():
    return np.sin(np.arange(24_000) / 10).astype(np.float32)


def run(engine, *, key="a" * 64, is_kept=True):
    engine.add(Task(1, 1, Utterance(0, "one", "en"), Reference(key, is_kept=is_kept)))
    outcomes = []
    while not any(isinstance(outcome, Done) for outcome in outcomes):
        outcomes += engine.step(5.0)
    return outcomes


def engine_of(tmp_path, sample, *, key="a" * 64):
    backend = Counting()
    engine = ThreadedEngine(backend, 1, Voices(backend.prepare, Latents(tmp_path, "tone")))
    engine.hold(key, sample)
    return backend, engine


@pytest.mark.parametrize(("is_kept", "later"), [(True, []), (False, ["a" * 64])], ids=["registered", "uploaded"])
def test_only_a_registered_voice_is_left_on_disk_for_the_next_worker(tmp_path, sample, is_kept, later):
    first, engine = engine_of(tmp_path, sample)
    run(engine, is_kept=is_kept)
    run(engine, is_kept=is_kept)
    assert first.prepared == ["a" * 64]
    second, engine = engine_of(tmp_path, sample)
    run(engine, is_kept=is_kept)
    assert second.prepared == later
    assert bool([path for path in tmp_path.rglob("*") if path.is_file()]) == is_kept


def test_a_forgotten_voice_is_gone(tmp_path, sample):
    backend, engine = engine_of(tmp_path, sample)
    run(engine, is_kept=False)
    engine.forget("a" * 64)
    engine.hold("a" * 64, sample)
    run(engine, is_kept=False)
    assert backend.prepared == ["a" * 64] * 2


def test_forgetting_does_not_wait_for_a_voice_that_is_being_prepared(tmp_path, sample):
    backend, engine = engine_of(tmp_path, sample)
    forgot = []

    def slow(reference):
        engine.forget("a" * 64)  # as the control thread does meanwhile
        forgot.append(True)
        return ToneBackend.prepare(backend, reference)

    engine._voices._prepare = slow
    run(engine, is_kept=False)
    assert forgot
    assert not engine._voices._made
