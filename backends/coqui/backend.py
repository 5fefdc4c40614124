"""Speaks with XTTS-v2: text to tokens, tokens to audio tokens one by one, their latents to sound piece by piece."""

import hashlib
import logging
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np
import torch

from audio.join import silence
from backends.base import BackendError, Prepared, Stop
from backends.coqui import checkpoint, languages
from backends.coqui.precision import DTYPES, convert
from backends.coqui.vocoder import StreamingVocoder
from backends.engines import COQUI, find
from backends.on_torch import open_device, sow
from backends.warm_up import warm_up
from core.speech import REFERENCE_RATE, Params, Priors, Reference, Samples, Task, Traits, Voice

FIRST_TOKENS = 10
"""Audio tokens before the first piece of sound: 0.3 s of it, in hand 0.15 s after the start on a large GPU."""

PIECE_TOKENS = 30
"""Audio tokens, of 0.046 s each, before each later piece."""

COLDEST = 0.01
"""Below this temperature the likeliest token is taken: probabilities would be no numbers any more."""

REFERENCE_S = 30
"""Seconds of a recording that are listened to."""

INNER_PAUSE_S = 0.12
"""Between the pieces of an utterance that had more tokens than the model takes."""

RATES: Mapping[str, tuple[float, ...]] = {
    "cpu": (0.35, 0.4),
    "gpu": (3.8, 6.4, 8.9, 9.6, 10.3, 11.0, 11.6),
    "mps": (3.6, 6.3, 8.9, 12.0, 15.0, 18.0),
}
"""Seconds of audio a second with that many processes: two cores; one large GPU; the same one under MPS.

Measured on GPUs with 1, 3, 6 and 7 (bench/results/xtts-pool.md); what lies between is drawn through."""

START_S = 18.0
"""From spawn to ready."""


def make(options: Mapping[str, Any]) -> "CoquiBackend":
    """The backend, unloaded. options: the settings of group `coqui`."""
    return CoquiBackend(options)


class CoquiBackend:
    """One model, one utterance at a time: the library keeps the text of the one that is spoken inside the model."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """options: `coqui_precision`, `tts_model`, `tts_home`, and a `default_` for each parameter."""
        self._options = options

    def load(self, device: str) -> Traits:
        """Open the checkpoint and bring it to the device. Raises BackendError."""
        folder = find(COQUI, self._options)
        precision = str(self._options["coqui_precision"])
        logging.getLogger("TTS").setLevel(logging.ERROR)  # its warnings hold the text
        open_device(device)
        self._model = checkpoint.open_model(folder).to(device)
        self._dtype = DTYPES[precision]
        if self._dtype != torch.float32:
            convert(self._model.gpt, self._dtype)
        self._speakers = {_id_of(name): (name, voice) for name, voice in checkpoint.speakers(folder).items()}
        self._limit = self._model.args.gpt_max_text_tokens - 2
        spoken, missing = languages.spoken()
        is_gpu = device != "cpu"
        warm_up(self)
        return Traits(
            backend="coqui",
            revision=f"xtts-{checkpoint.revision(folder)}-{precision}-{self._defaults_digest()}",
            sample_rate=self._model.args.output_sample_rate,
            slots=1,
            languages=spoken,
            missing=missing,
            voices=tuple(Voice(key, name) for key, (name, _) in self._speakers.items()),
            first_chars=40,
            can_clone=True,
            is_sampled=True,
            gains_from_processes=is_gpu,
            priors=Priors(_rates(device), START_S, COQUI.memory_bytes),
            model="XTTS-v2",
            precision=precision,
        )

    def _defaults_digest(self) -> str:
        """Of what a request may leave open: answers that were made with other defaults are others."""
        defaults = sorted((key, value) for key, value in self._options.items() if key.startswith("default_"))
        return hashlib.sha256(repr(defaults).encode()).hexdigest()[:8]

    def prepare(self, reference: Reference) -> Prepared:
        """What the model hears in a recording. Raises KeyError for a built-in voice that is unknown."""
        if reference.sample is None:
            return self._speakers[reference.key][1]
        heard = reference.sample[: REFERENCE_S * REFERENCE_RATE]
        audio = torch.from_numpy(np.array(heard))[None].to(self._model.device)
        latents = self._model.get_gpt_cond_latents(audio, REFERENCE_RATE, length=REFERENCE_S)
        embedding = self._model.get_speaker_embedding(audio, REFERENCE_RATE)
        return {
            "gpt_cond_latent": latents.float().cpu().numpy(),
            "speaker_embedding": embedding.float().cpu().numpy(),
        }

    def speak(self, task: Task, voice: Prepared, stop: Stop) -> Iterator[Samples]:
        """Sound, as soon as there are FIRST_TOKENS of it. Ends between two tokens when it is to stop."""
        sow(task.seed)
        text, language = task.utterance.text, task.utterance.language
        for number, piece in enumerate(languages.tokens(self._model.tokenizer, text, language, self._limit)):
            if number:
                yield silence(INNER_PAUSE_S, self._model.args.output_sample_rate)
            yield from self._speak(piece, task.params, voice, stop)
            if stop.is_set:
                return

    def _speak(self, tokens: list[int], params: Params, voice: Prepared, stop: Stop) -> Iterator[Samples]:
        device = self._model.device
        speaker = torch.from_numpy(np.array(voice["speaker_embedding"])).to(device)
        vocoder = StreamingVocoder(self._model.hifigan_decoder, speaker)
        fresh: list[torch.Tensor] = []
        wanted = FIRST_TOKENS
        with closing(self._latents(tokens, params, voice)) as latents:
            for latent in latents:
                if stop.is_set:
                    return
                fresh.append(latent)
                if len(fresh) >= wanted:
                    yield vocoder.feed(torch.cat(fresh))
                    fresh, wanted = [], PIECE_TOKENS
        if fresh:
            yield vocoder.feed(torch.cat(fresh))
        yield vocoder.finish()

    def _latents(self, tokens: list[int], params: Params, voice: Prepared) -> Generator[torch.Tensor, None, None]:
        """One latent an audio token, shape (1, channels), in the library's own decode loop."""
        device = self._model.device
        gpt = self._model.gpt
        conditioning = torch.from_numpy(np.array(voice["gpt_cond_latent"])).to(device, self._dtype)
        with torch.inference_mode():
            start = gpt.compute_embeddings(conditioning, torch.tensor([tokens], dtype=torch.int32, device=device))
        steps = gpt.get_generator(
            fake_inputs=start,
            num_beams=1,
            num_return_sequences=1,
            output_attentions=False,
            output_hidden_states=True,
            return_dict_in_generate=True,
            **self._sampling(params),
        )
        token = None
        with closing(steps):
            for token, latent in steps:  # noqa: B007
                yield latent
        if token is None or int(token) != gpt.stop_audio_token:
            raise BackendError("The model came to its limit before it came to the end of the text.")

    def _sampling(self, params: Params) -> dict[str, Any]:
        """The library's names for what a request asks for; what it leaves open is the operator's choice."""

        def chosen(name: str) -> float:
            asked = getattr(params, name)
            return float(self._options[f"default_{name}"] if asked is None else asked)

        temperature = chosen("temperature")
        is_greedy = temperature < COLDEST
        return {
            "do_sample": True,
            "temperature": 1.0 if is_greedy else temperature,
            "top_k": 1 if is_greedy else int(chosen("top_k")),
            "top_p": chosen("top_p"),
            "repetition_penalty": chosen("repetition_penalty"),
            "length_penalty": chosen("length_penalty"),
        }


def _id_of(name: str) -> str:
    """What a client sends for a voice that people know by this name."""
    return name.strip().casefold()


def _rates(device: str) -> tuple[float, ...]:
    if device == "cpu":
        return RATES["cpu"]
    return RATES["mps" if "CUDA_MPS_PIPE_DIRECTORY" in os.environ else "gpu"]
