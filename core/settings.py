"""Every environment variable, typed and frozen. Read once at start, then passed down.

A `.env` in the project folder is read too; the real environment wins; an empty value counts as unset.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

PROJECT = Path(__file__).resolve().parent.parent
"""The checkout: relative paths in settings start here, wherever the server was started."""


class SettingsError(Exception):
    """Settings that cannot be used; one readable line a field."""


class _Group(BaseSettings):
    model_config = SettingsConfigDict(
        env_file=PROJECT / ".env", env_ignore_empty=True, extra="ignore", frozen=True, hide_input_in_errors=True
    )


DeviceChoice: TypeAlias = Literal["auto", "cpu", "gpu"]
"""Where workers shall run; auto: where the engine belongs, if there is such a device."""


def _sendable(key: SecretStr) -> SecretStr:
    """A key that a client can send in a header just as it is. Raises ValueError."""
    text = key.get_secret_value()
    if text != text.strip() or not (text.isascii() and text.isprintable()):
        raise ValueError("It should have printable ASCII characters only, and no blank at its ends")
    return key


class ServerSettings(_Group):
    """Where the server listens and what it lets in."""

    host: str = Field("127.0.0.1", description="Address to listen on. 0.0.0.0 opens it to the network.")
    port: int = Field(9004, ge=1, le=65535, description="Port to listen on.")
    debug: bool = Field(False, description="Log more. Never logs the text of a request.")
    log_text: bool = Field(False, description="Log what is spoken, for debugging. Nothing of it is private any more.")
    admin_api_key: Annotated[SecretStr, AfterValidator(_sendable)] = Field(
        SecretStr(""),
        description="Key for routes that change something (voices, /admin), in ASCII. Empty: only from this machine. "
        "Behind a proxy or tunnel, set it: everybody seems to be at this machine there.",
    )
    cors_allow_origins: str = Field(
        "", description="Comma-separated web origins that may call from a browser. Empty: none."
    )
    max_input_chars: int = Field(32768, ge=1, description="Longest text in characters; longer ones are answered 413.")
    max_body_bytes: int = Field(26 * 2**20, ge=1024, description="Longest request body in bytes, uploads included.")
    max_spool_bytes: int = Field(
        512 * 2**20,
        ge=2**20,
        description="Memory in bytes for answers that must be whole before they leave (wav, flac).",
    )
    max_upload_bytes: int = Field(
        256 * 2**20,
        ge=2**20,
        description="Memory in bytes for recordings that requests bring; where it is full, the next is answered 503.",
    )
    send_timeout_s: float = Field(
        60.0, gt=0, description="Seconds that a client may take to send or read one piece before it counts as gone."
    )
    drain_seconds: int = Field(
        30,
        ge=0,
        description="Seconds for running answers to finish when the server stops; then they end with an error.",
    )


class SpeechSettings(_Group):
    """What is spoken when a request leaves it open."""

    default_voice: str = Field("alloy", min_length=1, description="Voice of a request that names none.")
    default_language: str = Field(
        "en",
        pattern=r"^[A-Za-z]{2}([-_][A-Za-z\d]{2,8}){0,3}$",
        description="Language where neither request, voice nor text tells: en, zh-CN.",
    )
    voice_asset_dir: Path = Field(
        Path("assets/voices"), description="Folder of your own voices, for engines that can clone; see voices.json."
    )
    served_model_name: str = Field("", description="One more name in the list of models.")


class PoolSettings(_Group):
    """The worker processes."""

    tts_backend: str = Field("auto", min_length=1, description="Engine: auto, kokoro, coqui or voxcpm.")
    stream_lead_s: float = Field(
        60.0, gt=0, description="Seconds of audio that may be made ahead of what a streaming client plays."
    )
    cold_pool_size: int | None = Field(
        None,
        ge=0,
        le=64,
        description="Cold workers at most. Empty: 6 for engines that gain from more processes, else none.",
    )
    cold_worker_idle_timeout: float = Field(60.0, gt=0, description="Seconds without work after which a cold one goes.")
    cold_worker_idle_stagger: float = Field(10.0, ge=0, description="Seconds later for each cold worker before it.")
    cold_pool_manager_interval: float = Field(0.5, gt=0, description="Seconds between two starts of cold workers.")
    hot_queue_safety_factor: float = Field(
        0.8, ge=0, description="How many times its own start a cold worker must save before it is started."
    )
    tts_device: DeviceChoice = Field(
        "auto", description="Where workers run: auto (where the engine belongs), cpu, or gpu (NVIDIA)."
    )
    gpu_mps: Literal["off", "auto", "on"] = Field(
        "off",
        description="Let workers on one GPU compute at the same time (NVIDIA MPS): several times as much speech, but a "
        "fault of one ends all of them. auto: where it is installed.",
    )
    min_cold_ram_gb: float = Field(
        1.0, ge=0, description="Free memory in GiB without which no cold worker is started, where there is no GPU."
    )
    min_cold_vram_gb: float = Field(
        2.5, ge=0, description="Free memory of a GPU in GiB without which no cold worker is started on it."
    )
    stream_on_cold: bool = Field(False, description="Let cold workers speak streams too.")
    hot_idle_timeout: float = Field(
        0.0, ge=0, description="Seconds without work after which the hot worker is unloaded too. 0: never."
    )
    routing_drain_cap_seconds: float = Field(
        120.0, gt=0, description="Seconds of queued work at which /health reports a load score of 1."
    )
    max_queue_length: int = Field(512, ge=0, description="Requests that may wait for their turn. 0: no limit.")
    max_queue_seconds: float = Field(
        120.0, ge=0, description="Longest forecast wait for first sound; later requests are refused. 0: no limit."
    )
    deadline_seconds: float = Field(
        600.0, ge=0, description="Seconds after which a request that has no sound yet is given up (504). 0: never."
    )
    state_dir: Path = Field(
        Path("assets/state"),
        description="Folder of what the server learned of its own speed, and of voices as engines hear them.",
    )
    quality_guard: bool = Field(
        True, description="Look at what engines are known to get wrong, and let them try once more."
    )
    hang_seconds: float = Field(
        20.0,
        gt=0,
        description="Seconds, at least, without progress in an utterance before its worker is ended.",
    )


class CacheSettings(_Group):
    """Answers that were made before."""

    audio_cache_dir: Path = Field(Path("assets/cache"), description="Folder of finished answers.")
    cache_ttl_minutes: float = Field(
        10080.0,
        ge=0,
        description="Minutes that an answer is kept. 0: no cache, nothing of a request is written to disk, "
        "and what was kept before is removed at the start.",
    )
    cache_max_bytes: int = Field(
        2 * 2**30, ge=0, description="Size in bytes of all of them; beyond, the least recently used go first."
    )


class KokoroSettings(_Group):
    """The embedded CPU model."""

    kokoro_slots: int = Field(0, ge=0, le=256, description="Utterances at once. 0: one for each usable core.")
    kokoro_model_dir: Path = Field(Path("assets/models"), description="Where the joined weights lie.")


class _Checkpoint(_Group):
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


class WeightsSettings(_Group):
    """Fetching the weights of XTTS-v2 and VoxCPM2 (./setup_assets.sh --model)."""

    coqui_tos_agreed: bool = Field(
        False,
        description="1: you accept the licence of XTTS-v2's weights (Coqui Public Model License, non-commercial use "
        "only), and are not asked.",
    )
    hf_endpoint: str = Field(
        "https://huggingface.co", pattern=r"^https?://[^\s?#@]+$", description="Address of the hub that has them."
    )
    hf_token: Annotated[SecretStr, AfterValidator(_sendable)] = Field(
        SecretStr(""),
        description="Your token for that hub, sent to nobody else. Empty: none, which is enough for both.",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All groups, validated together."""

    server: ServerSettings
    speech: SpeechSettings
    pool: PoolSettings
    cache: CacheSettings
    kokoro: KokoroSettings
    coqui: CoquiSettings
    voxcpm: VoxcpmSettings
    weights: WeightsSettings

    def options(self, backend: str) -> dict[str, Any]:
        """What a worker is told for its backend: the group of that name, as JSON values; empty where there is none."""
        group = getattr(self, backend, None)
        return group.model_dump(mode="json") if isinstance(group, _Group) else {}


_GROUPS: dict[str, type[_Group]] = {
    "server": ServerSettings,
    "speech": SpeechSettings,
    "pool": PoolSettings,
    "cache": CacheSettings,
    "kokoro": KokoroSettings,
    "coqui": CoquiSettings,
    "voxcpm": VoxcpmSettings,
    "weights": WeightsSettings,
}


def load_settings(**overrides: Any) -> Settings:
    """Read the environment and `.env`; `overrides` (by field name) win over both.

    Raises SettingsError with one line for each bad value.
    """
    unknown = set(overrides) - {field for group in _GROUPS.values() for field in group.model_fields}
    if unknown:
        raise TypeError(f"no such settings: {', '.join(sorted(unknown))}")
    groups: dict[str, Any] = {}
    problems: list[str] = []
    for name, group in _GROUPS.items():
        own = {key: value for key, value in overrides.items() if key in group.model_fields}
        try:
            groups[name] = group(**own)
        except ValidationError as error:
            said = [(str(each["loc"][0]).upper(), each["msg"]) for each in error.errors()]
            problems += [f"{field}: {message.removeprefix('Value error, ')}" for field, message in said]
        except UnicodeDecodeError:
            raise SettingsError(f"{PROJECT / '.env'}: The file should be in UTF-8.") from None
    if problems:
        raise SettingsError("\n".join(problems))
    return Settings(**groups)


def env_example() -> str:
    """The text of `.env.example`: every setting with its default, commented out."""
    return "\n".join(_example_lines()) + "\n"


def _example_lines() -> Iterator[str]:
    yield "# Every setting with its default. Copy to .env and change what you need; the real environment wins."
    seen: set[str] = set()
    for group in _GROUPS.values():
        yield ""
        yield f"# --- {(group.__doc__ or '').strip()}"
        for name, field in group.model_fields.items():
            if name in seen:  # two engines share it
                continue
            seen.add(name)
            yield f"# {field.description}{_bounds(field.metadata)}"
            yield f"#{name.upper()}={_plain(field.default)}"


def _bounds(metadata: list[Any]) -> str:
    words = {"ge": "at least", "gt": "above", "le": "at most", "min_length": "length at least"}
    found = [f"{words[key]} {value}" for m in metadata for key in words if (value := getattr(m, key, None)) is not None]
    return f" ({', '.join(found)})" if found else ""


def _plain(value: Any) -> str:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


if __name__ == "__main__":
    print(env_example(), end="")
