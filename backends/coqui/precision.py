"""The language model in half precision. Conditioning and vocoder stay in float32, where they lose nothing."""

from typing import Final

import torch
from TTS.tts.layers.xtts.gpt import GPT

DTYPES: Final = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def convert(gpt: GPT, dtype: torch.dtype) -> None:
    """Turn everything that runs once a token into `dtype`."""
    for part in (
        gpt.gpt,
        gpt.text_embedding,
        gpt.text_pos_embedding,
        gpt.mel_embedding,
        gpt.mel_pos_embedding,
        gpt.final_norm,
        gpt.mel_head,
    ):
        part.to(dtype)

    def no_positions(ids: torch.Tensor) -> torch.Tensor:
        return torch.zeros((*ids.shape, gpt.model_dim), device=ids.device, dtype=dtype)

    gpt.gpt.wpe = no_positions  # the library's own makes float32 of everything
