"""The settings of each engine, and of fetching their weights. A group has its backend's name in Settings."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from core.environment import Group, Key


class KokoroSettings(Group):
    """The embedded CPU model."""

    kokoro_slots: int = Field(0, ge=0, le=256, description="Utterances at once. 0: one for each usable core.")
    kokoro_model_dir: Path = Field(Path("assets/models"), description="Where the joined weights lie.")


class _Checkpoint(Group):
    tts_home: Path = Field(Path("assets/models"), description="Folder in which checkpoints lie.")


class CoquiSettings(_Checkpoint):
    """XTTS-v2 by the Coqui library."""

    coqui_precision: Literal["fp32", "fp16", "bf16"] = Field(
        "fp32", description="Numbers of the language model: fp32, or half of that memory with fp16 and bf16 (GPU)."
    )
    tts_model: str = Field(
        "tts_models/multilingual/multi-dataset/xtts_v2",
        min_length=1,
        description="Folder of a checkpoint, or its name below TTS_HOME.",
    )
    default_temperature: float = Field(0.75, ge=0, le=2, description="How freely it speaks. 0: always the likeliest.")
    default_top_k: int = Field(50, ge=1, le=1000, description="Choose among that many likeliest sounds.")
    default_top_p: float = Field(0.85, gt=0, le=1, description="Choose among the likeliest sounds of that probability.")
    default_repetition_penalty: float = Field(
        5.0, ge=1, le=20, description="How much a sound that was spoken before is avoided. 1: not at all."
    )
    default_length_penalty: float = Field(
        1.0, ge=-10, le=10, description="Taken for compatibility; without a beam search it changes nothing."
    )


class VoxcpmSettings(_Checkpoint):
    """VoxCPM 1.5 and 2 by their own library."""

    voxcpm_model: str = Field(
        "openbmb/VoxCPM2", min_length=1, description="Folder of a checkpoint, or its name below TTS_HOME."
    )
    voxcpm_inference_timesteps: int = Field(
        10, ge=1, le=100, description="Steps of diffusion for each 0.16 s of sound: more are finer, and slower."
    )


class VoxcpmVllmSettings(VoxcpmSettings):
    """VoxCPM2 by an engine that batches all requests (nano-vllm-voxcpm), for GPUs of 24 GB and more."""

    vllm_gpu_mem_util: float = Field(
        0.85, gt=0, le=0.98, description="Share of the GPU's memory that the engine may fill."
    )
    vllm_max_num_seqs: int = Field(
        32, ge=1, le=512, description="Utterances at once: more make more speech, and each of them slower."
    )
    vllm_max_num_batched_tokens: int = Field(
        16384, ge=256, le=131072, description="Tokens of new utterances taken in at one step; memory grows with them."
    )
    vllm_max_model_len: int = Field(
        4096,
        ge=256,
        le=32768,
        description="Tokens of one utterance: its voice's recording (6.25 a second), text and speech together. At most "
        "VLLM_MAX_NUM_BATCHED_TOKENS.",
    )
    vllm_engine: Literal["direct", "pool"] = Field(
        "direct", description="direct: driven by the worker itself. pool: by the library, in a process of its own."
    )
    vllm_lora_dir: Path | None = Field(
        None,
        description="Folder of LoRA adapters, each a folder with lora_weights.safetensors and lora_config.json; a "
        "request names one in `lora`. Empty: none.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.vllm_max_model_len > self.vllm_max_num_batched_tokens:
            raise ValueError("VLLM_MAX_MODEL_LEN should be at most VLLM_MAX_NUM_BATCHED_TOKENS")
        return self


class WeightsSettings(Group):
    """Fetching the weights of XTTS-v2 and VoxCPM2 (./setup_assets.sh --model)."""

    coqui_tos_agreed: bool = Field(
        False,
        description="1: you accept the licence of XTTS-v2's weights (Coqui Public Model License, non-commercial use "
        "only), and are not asked.",
    )
    hf_endpoint: str = Field(
        "https://huggingface.co", pattern=r"^https?://[^\s?#@]+$", description="Address of the hub that has them."
    )
    hf_token: Key = Field(
        SecretStr(""),
        description="Your token for that hub, sent to nobody else. Empty: none, which is enough for both.",
    )
