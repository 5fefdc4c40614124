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
from backends.voxcpm import checkpoint
from core.speech import REFERENCE_RATE, Priors, Reference, Samples, Task, Traits

_SPACED = "da de el en es fi fr he hi id it ko ms nl no pl pt ru sv sw tl tr vi ar".split()
_UNSPACED = "ja km lo my th zh".split()
CHARS: Mapping[str, int] = {**dict.fromkeys(_SPACED, 240), **dict.fromkeys(_UNSPACED, 80)}
"""Languages of VoxCPM2, and characters of an utterance: about 16 s. It would take more, and drift."""

FIRST_LANGUAGES = ("en", "zh")
"""Of VoxCPM 1 and 1.5."""

REFERENCE_S = 30
"""Seconds of a recording that are listened to."""

DEFAULT_CFG = 2.0
"""How closely it keeps to voice and text, where a request leaves it open."""

RATES: Mapping[str, tuple[float, ...]] = {"cpu": (0.1,), "gpu": (3.3, 3.6)}
"""Seconds of audio a second with that many processes, by what others have measured; the server learns its own."""

START_S = 20.0
"""From spawn to ready."""

_COMMANDS = str.maketrans(
    {**dict.fromkeys("()[]", ","), **dict.fromkeys("（）", "，"), **dict.fromkeys("<>|＜＞｜", " ")}
)
"""Parentheses at the start of a text would be taken for a description of the voice, and not be spoken; the vocabulary's
own words stand between the others."""

SPARE_TOKENS = 8
"""For marks that the library puts between text, reference and sound."""

LEAST_PATCHES, MOST_PATCHES = 2, 6
"""Of sound that the model must have room for, and of what it may speak before it is told to stop, a token of text."""


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
        timesteps = self._options["voxcpm_inference_timesteps"]
        return Traits(
            backend="voxcpm",
            revision=f"voxcpm-{checkpoint.revision(folder)}-{timesteps}",
            sample_rate=self._model.sample_rate,
            slots=1,
            languages=CHARS if self._is_second else {language: CHARS[language] for language in FIRST_LANGUAGES},
            first_chars=40,
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
        if reference.sample is None:
            raise KeyError(reference.key)
        if not self._is_second and not reference.transcript:
            raise BackendError("VoxCPM 1 and 1.5 need to know what is said in a voice's recording.")
        made = {}
        if self._is_second:
            made["ref_audio_feat"] = self._features(reference.sample, pad_left=False)
        is_whole = len(reference.sample) <= REFERENCE_S * REFERENCE_RATE
        if not self._is_second and not is_whole:
            raise BackendError(f"VoxCPM 1 and 1.5 take a recording of {REFERENCE_S} s at most.")
        if reference.transcript and is_whole:  # else the words would be of more than is heard
            made["audio_feat"] = self._features(reference.sample, pad_left=True)
        return made

    def speak(self, task: Task, voice: Prepared, stop: Stop) -> Iterator[Samples]:
        """One patch after the other; ends between two of them when it is to stop, and leaves the model clean."""
        text = " ".join(task.utterance.text.translate(_COMMANDS).split()).lstrip(",， ")
        if not text:
            return
        sow(task.seed)
        cfg = task.params.cfg_value
        transcript = task.voice.transcript.translate(_COMMANDS)
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
            raise BackendError("The model came to its limit before it came to the end of the text.")

    def _limit(self, text: str, transcript: str, voice: Prepared) -> int:
        """Patches that it may speak: what its memory has room for behind what it is told, and no more than makes sense.

        Raises BackendError where that is not enough for the text.
        """
        tokens = len(self._model.text_tokenizer(text))
        told = tokens + len(self._model.text_tokenizer(transcript)) + sum(len(each) for each in voice.values())
        room = int(self._model.config.max_length) - told - SPARE_TOKENS
        if room < LEAST_PATCHES * tokens + 1:
            raise BackendError(
                "The voice's recording and its transcript are so long that the model has no room to speak."
            )
        return min(room, MOST_PATCHES * tokens + 10)

    def _features(self, sample: Samples, *, pad_left: bool) -> np.ndarray:
        """Features of a recording, shape (patches, patch size, channels): as the library makes them of a file."""
        model = self._model
        vae = model.audio_vae
        heard = torch.from_numpy(np.array(sample[: REFERENCE_S * REFERENCE_RATE]))[None]
        audio = torchaudio.functional.resample(heard, REFERENCE_RATE, vae.sample_rate)
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
