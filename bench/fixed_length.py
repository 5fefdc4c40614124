"""The batching backend on weights that mean nothing: every utterance is STEPS patches long, and can be heard.

TTS_BACKEND=bench.fixed_length:make. What it costs is one addition a patch.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from backends.voxcpm_vllm.backend import VllmBackend
from backends.voxcpm_vllm.engine import Batch, Patch, Prompt
from core.settings import load_settings
from core.speech import Samples

STEPS = int(os.environ.get("BENCH_STEPS", "40"))
"""Of 0.16 s."""

PATCH_SAMPLES = 7680

TONE = (0.1 * np.sin(2 * np.pi * 440 / 48_000 * np.arange(PATCH_SAMPLES))).astype(np.float32)
"""Laid over what the model says: noise of a random model may be silent, which the server takes for no speech."""


class FixedLength:
    """A Batch that ends each sequence after STEPS."""

    def __init__(self, batch: Batch) -> None:
        """batch: the library's."""
        self._batch = batch
        self.cancel = batch.cancel
        self.encode = batch.encode
        self.tokens = batch.tokens

    def add(self, key: str, prompt: Prompt) -> None:
        """Shorter than the text would let it be, so that its end is no failure."""
        self._batch.add(key, replace(prompt, most=min(STEPS, prompt.most - 1)))

    def step(self) -> Sequence[Patch]:
        """What the library made, made audible."""
        return [
            patch if patch.samples is None else replace(patch, samples=_audible(patch.samples))
            for patch in self._batch.step()
        ]


def make(options: Mapping[str, Any]) -> VllmBackend:
    """The backend of the server's own settings."""
    from backends.voxcpm_vllm.library import open_batch  # where there is no GPU, the rest can be tested

    def open_fixed(folder: Path, settings: Mapping[str, Any], device: str) -> Batch:
        return FixedLength(open_batch(folder, settings, device))

    return VllmBackend(load_settings().options("voxcpm-vllm"), open_fixed)


def _audible(samples: Samples) -> Samples:
    return np.asarray(np.nan_to_num(samples) * np.float32(0.1) + TONE[: len(samples)], np.float32)
