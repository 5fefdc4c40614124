"""A VoxCPM checkpoint on disk: checked and opened. It is data: nothing that it holds is run."""

import io
import json
import pickle
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers.initialization import no_init_weights
from voxcpm.model.voxcpm import VoxCPMModel
from voxcpm.model.voxcpm2 import VoxCPM2Model

from backends.base import BackendError
from backends.engines import VOXCPM, revision_of
from backends.on_torch import would_run

MODELS = {"voxcpm": VoxCPMModel, "voxcpm2": VoxCPM2Model}
"""By the architecture that config.json names: VoxCPM 1 and 1.5, and VoxCPM2."""

*CONTENTS, WEIGHTS, VAE_WEIGHTS = VOXCPM.needed


def revision(folder: Path) -> str:
    """What tells this checkpoint from another one: its settings, its vocabulary, and the files of its weights."""
    contents = (folder / name for names in CONTENTS for name in names)
    return revision_of(contents, (_first(folder, names) for names in (WEIGHTS, VAE_WEIGHTS)))


def open_model(folder: Path, device: str) -> VoxCPMModel | VoxCPM2Model:
    """The model with its weights, on its device. device: "cpu" or "cuda:0". Raises BackendError.

    The library compiles nothing: its CUDA graphs are known to fail where several processes share a GPU.
    """
    model_class = MODELS[_architecture(folder)]
    weights = _first(folder, WEIGHTS)
    try:
        with no_init_weights(), redirect_stderr(io.StringIO()):  # it tells paths and progress
            model = model_class.from_local(str(folder), optimize=False, device=device)
    except pickle.UnpicklingError:
        raise would_run(folder) from None
    except (MemoryError, torch.OutOfMemoryError, torch.AcceleratorError):
        raise
    except Exception as error:  # its loaders raise what the first bad byte leads to
        raise BackendError(
            f"The VoxCPM checkpoint in {folder} is damaged, or its files are of different models: fetch it again "
            f"({type(error).__name__})."
        ) from None
    _check(model, weights, _first(folder, VAE_WEIGHTS))
    return model


def _architecture(folder: Path) -> str:
    path = folder / "config.json"
    try:
        name = str(json.loads(path.read_text(encoding="utf-8")).get("architecture", "voxcpm")).lower()
    except (OSError, ValueError, AttributeError, RecursionError):
        raise BackendError(f"{path} cannot be read.") from None
    if name not in MODELS:
        raise BackendError(f"{path} describes another model than VoxCPM.")
    return name


def _check(model: torch.nn.Module, weights: Path, vae_weights: Path) -> None:
    """Raises BackendError where weights are missing, which the library does not say: it would speak noise."""
    expected = set(model.state_dict())
    of_vae = {name for name in expected if name.startswith("audio_vae.")}
    for path, names in (
        (weights, expected - of_vae),
        (vae_weights, {name.removeprefix("audio_vae.") for name in of_vae}),
    ):
        if missing := sorted(names - _names(path)):
            raise BackendError(f"{path} lacks {len(missing)} of the model's tensors: {missing[0]} ...")


def _names(path: Path) -> set[str]:
    if path.suffix == ".safetensors":
        try:
            with safe_open(str(path), framework="pt") as held:
                return set(held.keys())
        except (OSError, SafetensorError):
            raise BackendError(f"{path} is damaged or not whole: fetch it again.") from None
    bundle: Any = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    return set(bundle.get("state_dict", bundle))


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    return next(folder / name for name in names if (folder / name).is_file())
