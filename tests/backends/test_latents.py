"""Prepared voices on disk: shared between workers, bounded, and never what somebody uploaded for one request."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from backends.latents import GONE_S, Latents, forget, sweep
from core.speech import Reference

ANNA = Reference("a" * 64, is_kept=True)
MADE = {"latent": np.arange(12, dtype=np.float32).reshape(1, 3, 4), "speaker": np.ones((1, 2), np.float32)}


def same(found):
    return found is not None and all((found[key] == MADE[key]).all() for key in MADE) and set(found) == set(MADE)


def files(root):
    return list(root.rglob("*.safetensors"))


def test_what_one_writes_another_reads(tmp_path):
    Latents(tmp_path, "model-1").write(ANNA, MADE)
    assert same(Latents(tmp_path, "model-1").read(ANNA))
    assert all(path.stat().st_mode & 0o077 == 0 for path in files(tmp_path))


@pytest.mark.parametrize(
    ("revision", "voice"),
    [
        ("model-2", ANNA),
        ("model-1", Reference("b" * 64)),
        ("model-1", Reference("a" * 64, "and this is what she says")),
    ],
)
def test_another_model_recording_or_transcript_has_a_file_of_its_own(tmp_path, revision, voice):
    Latents(tmp_path, "model-1").write(ANNA, MADE)
    assert Latents(tmp_path, revision).read(voice) is None


def test_the_name_of_a_file_says_nothing(tmp_path):
    Latents(tmp_path, "../../model").write(Reference("../../etc/passwd", "a secret"), MADE)
    assert all(path.resolve().is_relative_to(tmp_path) for path in files(tmp_path))
    assert not any("secret" in str(path) or "passwd" in str(path) for path in files(tmp_path))


@pytest.mark.parametrize("spoil", [b"", b"\0" * 100, b"x"], ids=["empty", "zeros", "short"])
def test_a_damaged_file_is_as_good_as_none_and_is_replaced(tmp_path, spoil):
    latents = Latents(tmp_path, "model-1")
    latents.write(ANNA, MADE)
    files(tmp_path)[0].write_bytes(spoil)
    assert latents.read(ANNA) is None
    latents.write(ANNA, MADE)
    assert same(latents.read(ANNA))


def test_a_disk_that_takes_nothing_harms_nobody(tmp_path):
    (tmp_path / "latents").write_text("a file where the folder should be")
    latents = Latents(tmp_path / "latents", "model-1")
    latents.write(ANNA, MADE)
    assert latents.read(ANNA) is None


def test_a_voice_is_forgotten_with_all_its_transcripts_and_models(tmp_path):
    for revision in ("model-1", "model-2"):
        for transcript in ("", "hello"):
            Latents(tmp_path, revision).write(Reference("a" * 64, transcript), MADE)
    Latents(tmp_path, "model-1").write(Reference("b" * 64), MADE)
    forget(tmp_path, "a" * 64)
    assert len(files(tmp_path)) == 1
    assert same(Latents(tmp_path, "model-1").read(Reference("b" * 64)))


def test_what_a_worker_was_at_when_its_voice_was_deleted_is_not_kept(tmp_path):
    latents = Latents(tmp_path, "model-1")
    forget(tmp_path, ANNA.key)
    latents.write(ANNA, MADE)
    assert files(tmp_path) == []
    (mark,) = tmp_path.glob("*.gone")
    assert ANNA.key not in mark.name
    os.utime(mark, (time.time() - GONE_S - 1,) * 2)
    latents.write(ANNA, MADE)
    assert same(latents.read(ANNA))
    assert not mark.exists()


@pytest.mark.parametrize(("bounds", "left"), [({"max_files": 3}, 3), ({"max_bytes": 500}, 2)], ids=str)
def test_the_least_recently_used_go_first(tmp_path, bounds, left):
    latents = Latents(tmp_path, "model-1")
    voices = [Reference(str(number) * 64) for number in range(6)]
    for number, voice in enumerate(voices):
        latents.write(voice, MADE)
        os.utime(max(files(tmp_path), key=lambda path: path.stat().st_ctime_ns), (number, number))
    assert same(latents.read(voices[0]))  # now it is the youngest
    sweep(tmp_path, **bounds)
    assert same(latents.read(voices[0]))
    assert [latents.read(voice) is not None for voice in voices[1:]] == [False] * (6 - left) + [True] * (left - 1)


def test_many_workers_write_the_same_voice_and_none_reads_half_of_it(tmp_path):
    def work(number: int) -> bool:
        latents = Latents(Path(tmp_path), "model-1")
        latents.write(ANNA, MADE)
        return same(latents.read(ANNA))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(200)))
    assert len(files(tmp_path)) == 1
