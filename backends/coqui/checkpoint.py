"""An XTTS-v2 checkpoint on disk: checked and opened. It is data: nothing that it holds is run."""

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers.initialization import no_init_weights
from TTS.config.shared_configs import BaseDatasetConfig
from TTS.tts.configs.xtts_config import XttsArgs, XttsAudioConfig, XttsConfig
from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer
from TTS.tts.models.xtts import Xtts

from backends.base import BackendError, Prepared
from backends.engines import revision_of
from backends.on_torch import would_run

SPEAKERS = "speakers_xtts.pth"

_LEGACY = "TTS.tts.models.xtts"
"""Where the classes lived that the original model.pth names: it holds its own settings beside the weights."""

_ALIASES = ("gpt.gpt_inference.", "gpt.gpt.wte.")
"""The same tensors once more, in checkpoints of the first release."""


def revision(folder: Path) -> str:
    """What tells this checkpoint from another one: settings, vocabulary, and the files of its weights and voices."""
    contents, stamps = ("config.json", "vocab.json"), ("model.pth", SPEAKERS)
    return revision_of(
        (folder / file for file in contents), (folder / file for file in stamps if (folder / file).is_file())
    )


def open_model(folder: Path) -> Xtts:
    """The model with its weights, on the CPU, ready to speak. Raises BackendError.

    The weights stay in the file and are read as they are needed: processes on one machine share them.
    """
    config = _config(folder)
    try:
        tokenizer = VoiceBpeTokenizer(vocab_file=str(folder / "vocab.json"))
        arguments = config.model_args
        arguments.gpt_number_text_tokens = tokenizer.get_number_tokens()
        arguments.gpt_start_text_token = tokenizer.tokenizer.token_to_id("[START]")
        arguments.gpt_stop_text_token = tokenizer.tokenizer.token_to_id("[STOP]")
    except Exception:  # the library of tokenizers raises nothing more special
        raise BackendError(f"{folder / 'vocab.json'} is no vocabulary of XTTS-v2.") from None
    if arguments.gpt_start_text_token is None or arguments.gpt_stop_text_token is None:
        raise BackendError(f"{folder / 'vocab.json'} lacks the tokens [START] and [STOP].")
    try:
        with no_init_weights():
            model = Xtts(config)
    except Exception as error:  # settings that fit no model fail wherever they are first used
        raise BackendError(f"{folder / 'config.json'} describes no XTTS-v2 ({type(error).__name__}).") from None
    model.tokenizer = tokenizer
    _fill(model, _read(folder / "model.pth"), folder / "model.pth")
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for module in model.hifigan_decoder.waveform_decoder.modules():
        if torch.nn.utils.parametrize.is_parametrized(module, "weight"):  # else computed anew at each call
            torch.nn.utils.parametrize.remove_parametrizations(module, "weight")
    return model


def speakers(folder: Path) -> Mapping[str, Prepared]:
    """The voices that come with a checkpoint, by the name that people know them by. Raises BackendError."""
    path = folder / SPEAKERS
    if not path.is_file():
        return {}
    try:
        found = _load(path)
        return {
            str(name): {key: entry[key].float().numpy() for key in ("gpt_cond_latent", "speaker_embedding")}
            for name, entry in found.items()
        }
    except (AttributeError, KeyError, TypeError):
        raise BackendError(f"{path} holds no voices of XTTS-v2.") from None


def _config(folder: Path) -> XttsConfig:
    path = folder / "config.json"
    config = XttsConfig()
    try:
        config.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except Exception as error:  # Coqpit raises whatever the first bad field leads to
        raise BackendError(f"{path} cannot be read ({type(error).__name__}).") from None
    if not config.model_args.gpt_use_perceiver_resampler:
        raise BackendError(f"{path} describes another model than XTTS-v2.")
    return config


def _read(path: Path) -> dict[str, torch.Tensor]:
    found = _load(path)
    weights = found.get("model") if isinstance(found, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(each, torch.Tensor) for each in weights.values()):
        raise BackendError(f"{path} holds no weights of XTTS-v2.")
    # What the library's trainer writes has a prefix, and parts that only training needs.
    return {name.removeprefix("xtts."): tensor.float() for name, tensor in weights.items()}


def _load(path: Path) -> Any:
    """What a file of torch holds. Raises BackendError where it is damaged, or would run something."""
    known = [
        XttsConfig,
        BaseDatasetConfig,
        (XttsArgs, f"{_LEGACY}.XttsArgs"),
        (XttsAudioConfig, f"{_LEGACY}.XttsAudioConfig"),
    ]
    try:
        with torch.serialization.safe_globals(known):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError:
        raise would_run(path) from None
    except (RuntimeError, EOFError, OSError, ValueError):
        raise BackendError(f"{path} is damaged or not whole: fetch it again.") from None


def _fill(model: Xtts, weights: dict[str, torch.Tensor], path: Path) -> None:
    """Put the weights into the model. Raises BackendError where some are missing, or of another shape."""
    weights = {name: tensor for name, tensor in weights.items() if not name.startswith(_ALIASES)}
    try:
        left = model.load_state_dict(weights, strict=False, assign=True)
    except RuntimeError:
        raise BackendError(f"The weights in {path} have other shapes than its config.json says.") from None
    if left.missing_keys:
        raise BackendError(f"{path} lacks {len(left.missing_keys)} of the model's tensors: {left.missing_keys[0]} ...")
