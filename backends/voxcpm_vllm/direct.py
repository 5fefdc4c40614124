"""The library's engine, stepped by us: no process and no queue between it and the worker."""

import io
import wave
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from backends.voxcpm_vllm.engine import Patch, Prompt
from core.speech import REFERENCE_RATE, Samples


class Server(Protocol):
    """What is called of nanovllm_voxcpm.models.voxcpm2.server.VoxCPM2ServerImpl."""

    def add_request(self, seq_id: str, target_text: str, **options: Any) -> None:
        """Begin a sequence. Raises ValueError where it cannot be."""

    def step(self) -> Sequence[Any]:
        """Advance; the sequences that made a patch."""

    def cancel(self, seq_id: str) -> None:
        """End a sequence; one that is not known is none."""

    def encode_latents(self, wav: bytes, wav_format: str) -> bytes:
        """Latents of a file."""


class Direct:
    """A Batch of the library's own engine object, in this process."""

    def __init__(self, server: Server, tokens: Callable[[str], int]) -> None:
        """tokens: counts those of a text."""
        self._server = server
        self.tokens = tokens

    def add(self, key: str, prompt: Prompt) -> None:
        """See `Batch.add`."""
        self._server.add_request(key, prompt.text, **options_of(prompt))

    def step(self) -> Sequence[Patch]:
        """See `Batch.step`."""
        return [
            Patch(made.seq_id, made.custom_payload.generated_waveforms[-1], made.is_finished)
            for made in self._server.step()
        ]

    def cancel(self, key: str) -> None:
        """See `Batch.cancel`."""
        self._server.cancel(key)

    def encode(self, sample: Samples) -> bytes:
        """See `Batch.encode`."""
        return self._server.encode_latents(wav_of(sample), "wav")


def options_of(prompt: Prompt) -> dict[str, Any]:
    """The library's names for all of a prompt but its text."""
    goes_on = {"prompt_latents": prompt.reference, "prompt_text": prompt.transcript} if prompt.transcript else {}
    return {
        **goes_on,
        "ref_audio_latents": prompt.reference,
        "max_generate_length": prompt.most,
        "temperature": prompt.temperature,
        "cfg_value": prompt.cfg,
        "lora_name": prompt.lora,
        "seed": prompt.seed,
    }


def wav_of(sample: Samples) -> bytes:
    """A file of 16 bit at REFERENCE_RATE, as the library wants a recording."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, REFERENCE_RATE, 0, "NONE", ""))
        out.writeframes((np.clip(sample, -1, 1) * 32767).astype("<i2").tobytes())
    return file.getvalue()
