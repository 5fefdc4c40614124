"""Speaks with VoxCPM: one patch of 0.16 s after the other, each heard as soon as it is made."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np
import torch
import torchaudio
from voxcpm.model.voxcpm2 import VoxCPM2Model

from backends.base import BackendError, Prepared, Stop
from backends.engines import VOXCPM, find
from backends.on_torch import open_device, sow
from backends.on_voxcpm import (
    AT_LIMIT,
    CHARS,
    DEFAULT_CFG,
    FIRST_CHARS,
    REFERENCE_S,
    heard,
    is_whole,
    most_patches,
    sample_of,
    spoken,
)
from backends.voxcpm import checkpoint
from backends.warm_up import warm_up
from core.speech import REFERENCE_RATE, Priors, Reference, Samples, Task, Traits

FIRST_LANGUAGES = ("en", "zh")
"""Of VoxCPM 1 and 1.5."""

RATES: Mapping[str, tuple[float, ...]] = {"cpu": (0.1,), "gpu": (3.3, 3.6)}
"""Seconds of audio a second with that many processes, by what others have measured; the server learns its own."""

START_S = 20.0
"""From spawn to ready."""


def make(options: Mapping[str, Any]) -> "VoxcpmBackend":
    """The backend, unloaded. options: the settings of group `voxcpm`."""
    return VoxcpmBackend(options)


class VoxcpmBackend:
    """One model, one utterance at a time: it has a single cache, and patches its own decoder while it streams."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """options: `voxcpm_model`, `tts_home`, `voxcpm_inference_timesteps`."""
        self._options = options

    def load(self, device: str) -> Traits:
        """Open the checkpoint on the device. Raises BackendError."""
        folder = find(VOXCPM, self._options)
        open_device(device)
        self._model = checkpoint.open_model(folder, device)
        self._is_second = isinstance(self._model, VoxCPM2Model)
        warm_up(self, transcript="" if self._is_second else "Good morning.")
        timesteps = self._options["voxcpm_inference_timesteps"]
        return Traits(
            backend="voxcpm",
            revision=f"voxcpm-{checkpoint.revision(folder)}-{timesteps}",
            sample_rate=self._model.sample_rate,
            slots=1,
            languages=CHARS if self._is_second else {language: CHARS[language] for language in FIRST_LANGUAGES},
            first_chars=FIRST_CHARS,
            can_clone=True,
            is_sampled=True,
            needs_transcript=not self._is_second,
            gains_from_processes=device != "cpu",
            priors=Priors(RATES["cpu" if device == "cpu" else "gpu"], START_S, VOXCPM.memory_bytes),
            model="VoxCPM2" if self._is_second else "VoxCPM",
            precision=str(self._model.config.dtype),
        )

    def prepare(self, reference: Reference) -> Prepared:
        """A recording as the model's own features. Raises KeyError where there is none: no voice is built in.

        Where it is known what is said in it, the model goes on from there, and keeps closer to the way it is said.
        """
        sample = sample_of(reference)
        if not self._is_second and not reference.transcript:
            raise BackendError("VoxCPM 1 and 1.5 need to know what is said in a voice's recording.")
        made = {}
        if self._is_second:
            made["ref_audio_feat"] = self._features(sample, pad_left=False)
        if not self._is_second and not is_whole(reference):
            raise BackendError(f"VoxCPM 1 and 1.5 take a recording of {REFERENCE_S} s at most.")
        if reference.transcript and is_whole(reference):
            made["audio_feat"] = self._features(sample, pad_left=True)
        return made

    def speak(self, task: Task, voice: Prepared, stop: Stop) -> Iterator[Samples]:
        """One patch after the other; ends between two of them when it is to stop, and leaves the model clean."""
        text = spoken(task.utterance.text)
        if not text:
            return
        sow(task.seed)
        cfg = task.params.cfg_value
        transcript = heard(task.voice.transcript)
        limit = self._limit(text, transcript, voice)
        patches = self._model.generate_with_prompt_cache_streaming(
            target_text=text,
            prompt_cache=_prompt(voice, transcript),
            max_len=limit,
            inference_timesteps=int(self._options["voxcpm_inference_timesteps"]),
            cfg_value=DEFAULT_CFG if cfg is None else cfg,
        )
        number = 0
        with closing(patches):
            for number, (sound, _, _) in enumerate(patches, 1):  # noqa: B007
                if stop.is_set:
                    return
                yield np.asarray(sound.reshape(-1).float().cpu().numpy())
        if number >= limit:
            raise BackendError(AT_LIMIT)

    def _limit(self, text: str, transcript: str, voice: Prepared) -> int:
        """See `most_patches`. Raises BackendError."""
        tokens = len(self._model.text_tokenizer(text))
        told = len(self._model.text_tokenizer(transcript)) + sum(len(each) for each in voice.values())
        return most_patches(tokens, told=told, room=int(self._model.config.max_length))

    def _features(self, sample: Samples, *, pad_left: bool) -> np.ndarray:
        """Features of a recording, shape (patches, patch size, channels): as the library makes them of a file."""
        model = self._model
        vae = model.audio_vae
        audio = torch.from_numpy(np.array(sample))[None]
        audio = torchaudio.functional.resample(audio, REFERENCE_RATE, vae.sample_rate)
        size = model.patch_size * model.chunk_size
        padding = -audio.shape[1] % size
        audio = torch.nn.functional.pad(audio, (padding, 0) if pad_left else (0, padding))
        with torch.inference_mode():
            features = vae.encode(audio.to(model.device), vae.sample_rate).float().cpu()
        return np.asarray(features.view(vae.latent_dim, -1, model.patch_size).permute(1, 2, 0).contiguous().numpy())


def _prompt(voice: Prepared, transcript: str) -> dict[str, Any]:
    """What the library calls a prompt cache."""
    held: dict[str, Any] = {name: torch.from_numpy(np.array(each)) for name, each in voice.items()}
    has_reference, goes_on = "ref_audio_feat" in held, "audio_feat" in held
    mode = "ref_continuation" if has_reference and goes_on else "reference" if has_reference else "continuation"
    return {**held, "mode": mode, **({"prompt_text": transcript} if goes_on else {})}
