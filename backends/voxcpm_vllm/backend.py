"""VoxCPM2 by batching: what is checked before the library is loaded, what it says of itself, and its warm-up."""

import json
from bisect import bisect_left
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from backends.base import BackendError, Prepared
from backends.engines import VOXCPM_VLLM, find, revision_of
from backends.on_voxcpm import CHARS, FIRST_CHARS, sample_of
from backends.voices import Voices
from backends.voxcpm_vllm.engine import LATENTS, Batch, BatchEngine, Prompt
from backends.warm_up import hum
from core.environment import PROJECT
from core.speech import Priors, Reference, Traits

SAMPLE_RATE = 48_000

RATES: Mapping[int, float] = {1: 10.0, 8: 60.0, 16: 82.0, 32: 115.0, 64: 155.0, 128: 158.0, 512: 158.0}
"""Seconds of audio a second with so many sequences, on one H200; the server learns its own."""

START_S = 60.0
"""From spawn to ready."""

CONTENTS, WEIGHTS = ("config.json", "tokenizer.json", "tokenizer_config.json"), ("model.safetensors", "audiovae.pth")
"""Files of a checkpoint."""

WARM_UP_PATCHES = 3
"""Of each sequence: the first goes another way through the model than the others."""

WARM_UP_TEXT = "Good morning."

MAX_LORAS = 16
"""Adapters that may be there: each has its place on the GPU."""

OpenBatch = Callable[[Path, Mapping[str, Any], str], Batch]
"""Loads the library's engine. Folder of the checkpoint, the settings, the device. Raises BackendError."""


class VllmBackend:
    """A Batching backend of one library engine."""

    def __init__(self, options: Mapping[str, Any], open_batch: OpenBatch) -> None:
        """options: the settings of group `voxcpm_vllm`."""
        self._options = options
        self._open_batch = open_batch

    def load(self, device: str) -> Traits:
        """Check the checkpoint, load the engine, and let it speak once with all of its slots. Raises BackendError."""
        folder = find(VOXCPM_VLLM, self._options)
        self._channels = _channels(folder)
        adapters = loras(self._options)
        slots = int(self._options["vllm_max_num_seqs"])
        self._batch = self._open_batch(folder, self._options, device)
        self._warm_up(slots)
        known = [path / "lora_weights.safetensors" for path in adapters.values()]
        revision = revision_of((folder / name for name in CONTENTS), [*(folder / name for name in WEIGHTS), *known])
        return Traits(
            backend=VOXCPM_VLLM.name,
            revision=f"voxcpm-vllm-{revision}-{self._options['voxcpm_inference_timesteps']}",
            sample_rate=SAMPLE_RATE,
            slots=slots,
            languages=CHARS,
            first_chars=FIRST_CHARS,
            can_clone=True,
            is_sampled=True,
            batches=True,
            loras=tuple(adapters),
            priors=Priors(tuple(map(_rate, range(1, slots + 1))), START_S, VOXCPM_VLLM.memory_bytes),
            model="VoxCPM2",
            precision="bf16",
        )

    def prepare(self, reference: Reference) -> Prepared:
        """A recording as the library's latents. Raises KeyError where there is none: no voice is built in."""
        encoded = self._batch.encode(sample_of(reference))
        return {LATENTS: np.frombuffer(encoded, np.float32).reshape(-1, self._channels)}

    def engine(self, voices: Voices) -> BatchEngine:
        """What speaks."""
        return BatchEngine(self._batch, voices, room=int(self._options["vllm_max_model_len"]))

    def _warm_up(self, slots: int) -> None:
        latents = self._batch.encode(hum())
        for count in {1, slots}:
            awaited = {f"warm-up-{number}" for number in range(count)}
            for key in awaited:
                self._batch.add(key, Prompt(WARM_UP_TEXT, latents, "", WARM_UP_PATCHES))
            while awaited:
                for patch in self._batch.step():
                    if patch.error:
                        raise BackendError(f"The engine cannot speak ({patch.error}).")
                    awaited -= {patch.key} if patch.is_last else set()


def loras(options: Mapping[str, Any]) -> dict[str, Path]:
    """Folders of the adapters in VLLM_LORA_DIR, by name. Raises BackendError where one is none, or too many are."""
    if not options["vllm_lora_dir"]:
        return {}
    root = PROJECT / options["vllm_lora_dir"]
    if not root.is_dir():
        raise BackendError(f"VLLM_LORA_DIR: there is no folder {root}.")
    found = {path.name: path for path in sorted(root.iterdir()) if path.is_dir() and not path.name.startswith(".")}
    for path in found.values():
        for name in ("lora_weights.safetensors", "lora_config.json"):
            if not (path / name).is_file():
                raise BackendError(f"VLLM_LORA_DIR: {path} is no adapter: {name} is missing.")
    if len(found) > MAX_LORAS:
        raise BackendError(f"VLLM_LORA_DIR: {root} holds {len(found)} adapters; {MAX_LORAS} at most can be used.")
    return found


def rank(folder: Path) -> int:
    """Of an adapter. Raises BackendError where its lora_config.json does not tell."""
    try:
        told = json.loads((folder / "lora_config.json").read_text(encoding="utf-8"))["lora_config"]
        return int(told["r"] if "r" in told else told["rank"])
    except (OSError, ValueError, KeyError, TypeError):
        raise BackendError(f"VLLM_LORA_DIR: {folder / 'lora_config.json'} does not tell the adapter's rank.") from None


def _channels(folder: Path) -> int:
    """Of the latents. Raises BackendError where the engine cannot take the checkpoint."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        architecture, channels = str(config["architecture"]).lower(), int(config["feat_dim"])
    except (OSError, ValueError, KeyError, TypeError):
        raise BackendError(f"{path} cannot be read.") from None
    if architecture != "voxcpm2":
        raise BackendError(f"{path} describes another model than VoxCPM2, which TTS_BACKEND=voxcpm may speak with.")
    others = sorted(other.name for other in folder.glob("*.safetensors") if other.name != "model.safetensors")
    if others:  # the library takes every such file for a part of the model
        raise BackendError(f"{folder} holds {others[0]} beside model.safetensors: move it elsewhere.")
    return channels


def _rate(count: int) -> float:
    """Seconds of audio a second with so many sequences, drawn between those that were measured."""
    counts = sorted(RATES)
    above = counts[bisect_left(counts, count)]
    below = counts[max(0, bisect_left(counts, count) - 1)]
    share = (count - below) / (above - below) if above > below else 1.0
    return RATES[below] + share * (RATES[above] - RATES[below])
