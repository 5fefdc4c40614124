"""From the language model's latents to sound, piece by piece, and yet the same as all at once.

The library decodes everything from the start for each piece that it streams, which is quadratic. A convolution sees
only so far: decoding a window with REACH frames on either side gives the same samples in its middle.
"""

import numpy as np
import torch
from TTS.tts.layers.xtts.hifigan_decoder import HifiDecoder

from core.speech import Samples

REACH = 16
"""Frames beside it that a frame of sound depends on: 3 for the first convolution, 8 for the widest block of the first
stage, which has eight times the rate, 1 for each step up, and less than 2 for all that follows."""

HOP = 256
"""Samples a frame."""


class StreamingVocoder:
    """Decodes one utterance in one voice. Each sample is made once; each latent is decoded about once."""

    def __init__(self, decoder: HifiDecoder, speaker: torch.Tensor) -> None:
        """speaker: embedding, shape (1, 512, 1), on the decoder's device."""
        self._decoder = decoder
        self._speaker = speaker
        self._fine = decoder.ar_mel_length_compression / decoder.output_hop_length
        self._stretch = decoder.output_sample_rate / decoder.input_sample_rate
        self._latents: list[torch.Tensor] = []
        self._count = 0
        self._done = 0

    @torch.inference_mode()
    def feed(self, latents: torch.Tensor) -> Samples:
        """Take latents, shape (n, channels); return the samples that no later latent can change, shape (m,)."""
        self._latents.append(latents.float())
        self._count += len(latents)
        # The last latent has no right neighbour yet: what lies between them cannot be known.
        known = int(self._stretch * (self._fine * self._count - 2.5)) - 1
        return self._decode(known, known - REACH)

    @torch.inference_mode()
    def finish(self) -> Samples:
        """The samples that are left, shape (m,)."""
        total = int(int(self._count * self._fine) * self._stretch)
        return self._decode(total, total)

    def _decode(self, known: int, end: int) -> Samples:
        """Samples of the frames up to `end`; `known`: how many frames there are."""
        start = max(0, self._done - REACH)
        if end <= self._done:
            return np.zeros(0, np.float32)
        sound = self._decoder.waveform_decoder(self._frames(start, known), g=self._speaker).reshape(-1)
        fresh = sound[(self._done - start) * HOP : (end - start) * HOP]
        self._done = end
        return np.asarray(fresh.float().cpu().numpy())

    def _frames(self, start: int, end: int) -> torch.Tensor:
        """The decoder's input for frames from `start` to `end`, shape (1, channels, frames).

        The library stretches the latents in two linear steps, to frames of the model's rate and then of the output's.
        """
        latents = torch.cat(self._latents)
        self._latents = [latents]
        device = latents.device
        target = torch.arange(start, end, device=device, dtype=torch.float64)
        place = ((target + 0.5) / self._stretch - 0.5).clamp(min=0)
        low = place.long()
        last = int(self._count * self._fine) - 1
        left, right = (self._fine_frames(latents, index.clamp(max=last)) for index in (low, low + 1))
        share = (place - low).to(latents.dtype)[:, None]
        return torch.lerp(left, right, share).T[None]

    def _fine_frames(self, latents: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        place = ((index.double() + 0.5) / self._fine - 0.5).clamp(min=0)
        low = place.long()
        share = (place - low).to(latents.dtype)[:, None]
        return torch.lerp(latents[low], latents[(low + 1).clamp(max=len(latents) - 1)], share)
