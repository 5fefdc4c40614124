"""VoxCPM with random weights in the genuine layout, small enough for tests; every utterance has PATCHES patches.

Stands for the released weights, which are a download; what it says is noise, and everything else is as it is there.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from voxcpm.model.voxcpm import VoxCPMConfig, VoxCPMModel
from voxcpm.model.voxcpm2 import VoxCPM2Model
from voxcpm.model.voxcpm2 import VoxCPMConfig as VoxCPM2Config
from voxcpm.modules.audiovae import AudioVAE, AudioVAEV2

PATCHES = 4
"""Of every utterance, of 0.16 s each: the library lets none end earlier."""

HEAD = 16
SMALL: dict[str, Any] = {
    "lm_config": {
        "bos_token_id": 1, "eos_token_id": 2, "hidden_size": 64, "intermediate_size": 128,
        "max_position_embeddings": 512, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5, "rope_theta": 10000, "kv_channels": HEAD,
        "rope_scaling": {
            "type": "longrope", "long_factor": [1.0] * (HEAD // 2), "short_factor": [1.0] * (HEAD // 2),
            "original_max_position_embeddings": 512,
        },
        "vocab_size": 512, "use_mup": False, "scale_emb": 12, "dim_model_base": 256, "scale_depth": 1.4,
    },
    "patch_size": 4, "feat_dim": 8, "scalar_quantization_latent_dim": 16, "scalar_quantization_scale": 9,
    "residual_lm_num_layers": 1,
    "encoder_config": {"hidden_dim": 32, "ffn_dim": 64, "num_heads": 2, "num_layers": 1, "kv_channels": HEAD},
    "dit_config": {
        "hidden_dim": 32, "ffn_dim": 64, "num_heads": 2, "num_layers": 1, "kv_channels": HEAD,
        "cfm_config": {"sigma_min": 1e-6, "solver": "euler", "t_scheduler": "log-norm", "inference_cfg_rate": 2.0},
    },
    "max_length": 512, "device": "cpu", "dtype": "float32",
}  # fmt: skip
SECOND: dict[str, Any] = {
    **SMALL,
    "architecture": "voxcpm2",
    "residual_lm_no_rope": True,
    "audio_vae_config": {
        "encoder_dim": 4, "encoder_rates": [2, 5, 8, 8], "latent_dim": 8, "decoder_dim": 64,
        "decoder_rates": [8, 6, 5, 2, 2, 2], "sr_bin_boundaries": [20000, 30000, 40000], "sample_rate": 16000,
        "out_sample_rate": 48000,
    },
}  # fmt: skip
FULL_HEAD = 128
FULL: dict[str, Any] = {
    "architecture": "voxcpm2",
    "lm_config": {
        "bos_token_id": 1, "eos_token_id": 2, "hidden_size": 2048, "intermediate_size": 6144,
        "max_position_embeddings": 32768, "num_attention_heads": 16, "num_hidden_layers": 28,
        "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "rope_theta": 10000, "kv_channels": FULL_HEAD,
        "rope_scaling": {
            "type": "longrope", "long_factor": [1.0] * (FULL_HEAD // 2), "short_factor": [1.0] * (FULL_HEAD // 2),
            "original_max_position_embeddings": 32768,
        },
        "vocab_size": 73448, "use_mup": False, "scale_emb": 12, "dim_model_base": 256, "scale_depth": 1.4,
    },
    "patch_size": 4, "feat_dim": 64, "scalar_quantization_latent_dim": 512, "scalar_quantization_scale": 9,
    "residual_lm_num_layers": 8, "residual_lm_no_rope": True,
    "encoder_config": {
        "hidden_dim": 1024, "ffn_dim": 4096, "num_heads": 16, "num_layers": 12, "kv_channels": FULL_HEAD,
    },
    "dit_config": {
        "hidden_dim": 1024, "ffn_dim": 4096, "num_heads": 16, "num_layers": 12, "kv_channels": FULL_HEAD,
        "dit_mean_mode": False,
        "cfm_config": {"sigma_min": 1e-6, "solver": "euler", "t_scheduler": "log-norm", "inference_cfg_rate": 2.0},
    },
    "audio_vae_config": {
        "encoder_dim": 128, "encoder_rates": [2, 5, 8, 8], "latent_dim": 64, "decoder_dim": 2048,
        "decoder_rates": [8, 6, 5, 2, 2, 2], "sr_bin_boundaries": [20000, 30000, 40000], "sample_rate": 16000,
        "out_sample_rate": 48000,
    },
    "max_length": 8192, "device": "cuda", "dtype": "bfloat16",
}  # fmt: skip
FIRST: dict[str, Any] = {
    **SMALL,
    "architecture": "voxcpm",
    "audio_vae_config": {
        "encoder_dim": 4, "encoder_rates": [2, 3, 6, 7, 7], "latent_dim": 8, "decoder_dim": 64,
        "decoder_rates": [7, 7, 6, 3, 2], "sample_rate": 44100,
    },
}  # fmt: skip


def write_full_size(folder: Path) -> Path:
    """Write VoxCPM2 as large as it is released, 5 GB; half a minute on a GPU. No utterance ends by itself."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_tokenizer(folder)
    torch.manual_seed(0)
    config = VoxCPM2Config.model_validate(FULL)
    config.max_length = 64  # of the cache that is made here and thrown away
    with torch.device("cuda" if torch.cuda.is_available() else "cpu") as device:
        vae = AudioVAEV2(config=config.audio_vae_config)
        model = VoxCPM2Model(config, _Nothing(), vae, device=str(device))
    weights = {
        name: each.detach().to(torch.bfloat16).contiguous().cpu().clone()
        for name, each in model.named_parameters()
        if not name.startswith("audio_vae.")
    }
    weights["stop_head.weight"].zero_()
    save_file(weights, str(folder / "model.safetensors"))
    torch.save({"state_dict": {name: each.cpu() for name, each in vae.state_dict().items()}}, folder / "audiovae.pth")
    (folder / "config.json").write_text(json.dumps(FULL))  # the last one: it tells that all of it is there
    return folder


def write(folder: Path, *, second: bool = True) -> Path:
    """Write a checkpoint of VoxCPM2, or of VoxCPM 1.5; takes less than a second."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_tokenizer(folder)
    plan = SECOND if second else FIRST
    (folder / "config.json").write_text(json.dumps(plan))
    torch.manual_seed(0)
    if second:
        config = VoxCPM2Config.model_validate(plan)
        vae = AudioVAEV2(config=config.audio_vae_config)
        model = VoxCPM2Model(config, _Nothing(), vae, device="cpu")
    else:
        config = VoxCPMConfig.model_validate(plan)
        vae = AudioVAE(config=config.audio_vae_config)
        model = VoxCPMModel(config, _Nothing(), vae, device="cpu")
    with torch.no_grad():  # it stops as soon as it may
        model.stop_proj.weight.zero_()
        model.stop_proj.bias.fill_(1.0)
        model.stop_head.weight[0].fill_(-1.0)
        model.stop_head.weight[1].fill_(1.0)
    weights = {name: each.detach().clone() for name, each in model.state_dict().items() if "audio_vae." not in name}
    save_file(weights, str(folder / "model.safetensors"))
    torch.save({"state_dict": vae.state_dict()}, folder / "audiovae.pth")
    return folder


class _Nothing:
    """In the place of a tokenizer, which only those who speak need."""

    vocab: Mapping[str, int] = MappingProxyType({})


def _write_tokenizer(folder: Path) -> None:
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for symbol in [*(f"<0x{code:02X}>" for code in range(256)), *map(chr, range(32, 127)), "\u2581"]:
        vocabulary.setdefault(symbol, len(vocabulary))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.save(str(folder / "tokenizer.json"))
    told = {"tokenizer_class": "LlamaTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({**told, "add_bos_token": False}))
