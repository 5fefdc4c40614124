"""XTTS-v2 with random weights in the genuine layout, small enough for tests: two layers, and always TOKENS long.

Stands for the released weights, which are a download; what it says is noise, and everything else is as it is there.
Its vocoder and speaker encoder have no knobs and are of full size.
"""

import json
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from TTS.tts.configs.xtts_config import XttsArgs, XttsAudioConfig, XttsConfig
from TTS.tts.models.xtts import Xtts

TOKENS = 12
"""Audio tokens of every utterance, of 1114 or 1115 samples each."""

SMALL = {"gpt_layers": 2, "gpt_n_model_channels": 64, "gpt_n_heads": 2, "decoder_input_dim": 64}
VOCABULARY = 6681
"""Tokens of text in the release."""

SECOND_VERSION = {
    "gpt_use_perceiver_resampler": True,
    "gpt_num_audio_tokens": 1026,
    "gpt_start_audio_token": 1024,
    "gpt_stop_audio_token": 1025,
    "gpt_code_stride_len": 1024,
    "gpt_max_text_tokens": 402,
    "gpt_max_prompt_tokens": 70,
}
LETTERS = (
    "abcdefghijklmnopqrstuvwxyz0123456789!'(),-./:;?áàâäãåąćçčďéèêëęěğíìîïıłńňñóòôöõőøœæřśšşťúùûüůűýžźż"
    + "".join(
        chr(code) for start, end in ((0x430, 0x450), (0x621, 0x64B), (0x900, 0x970)) for code in range(start, end)
    )
)


def write(folder: Path, *, tokens: int = TOKENS, full_size: bool = False) -> Path:
    """Write a checkpoint; takes a second or two, or half a minute and 1.9 GB for one of full size."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = _write_vocabulary(folder / "vocab.json", VOCABULARY if full_size else 0)
    sizes = {**({} if full_size else SMALL), "gpt_max_audio_tokens": tokens + 3}
    arguments = XttsArgs(**SECOND_VERSION, **sizes)
    config = XttsConfig(model_args=arguments, audio=XttsAudioConfig(sample_rate=22050, output_sample_rate=24000))
    config.save_json(str(folder / "config.json"))
    arguments.gpt_number_text_tokens = len(ids)
    arguments.gpt_start_text_token, arguments.gpt_stop_text_token = ids["[START]"], ids["[STOP]"]
    torch.manual_seed(0)
    model = Xtts(config)
    with torch.no_grad():
        model.gpt.mel_head.bias[1025] = -1e4  # a random model stops at any time, or never
        model.hifigan_decoder.waveform_decoder.conv_post.weight *= 20  # and it is all but silent
    torch.save({"model": model.state_dict()}, folder / "model.pth")
    voice = {
        "gpt_cond_latent": torch.randn(1, 32, arguments.gpt_n_model_channels),
        "speaker_embedding": torch.nn.functional.normalize(torch.randn(1, 512, 1), dim=1),
    }
    torch.save({"Ana Florence": voice}, folder / "speakers_xtts.pth")
    return folder


def _write_vocabulary(path: Path, size: int) -> dict[str, int]:
    special = ["[STOP]", "[UNK]", "[SPACE]", *(f"[{code}]" for code in XttsConfig().languages), "[START]"]
    unused = [f"<unused{number}>" for number in range(size)]
    symbols = list(dict.fromkeys([*special[:-1], *LETTERS, *unused]))
    symbols = symbols[: size - 1] if size else symbols
    ids = {symbol: number for number, symbol in enumerate([*symbols, "[START]"])}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[], unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens([AddedToken(symbol, special=True, normalized=False) for symbol in special])
    tokenizer.save(str(path))
    return json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
