"""Every environment variable, typed and frozen. Read once at start, then passed down.

A `.env` in the project folder is read too; the real environment wins; an empty value counts as unset.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import NoDecode

from core.engine_settings import CoquiSettings, KokoroSettings, VoxcpmSettings, VoxcpmVllmSettings, WeightsSettings
from core.environment import PROJECT, DeviceChoice, Group, Key, Network, SettingsError, listed


class ServerSettings(Group):
    """Where the server listens and what it lets in."""

    host: str = Field("127.0.0.1", description="Address to listen on. 0.0.0.0 opens it to the network.")
    port: int = Field(9004, ge=1, le=65535, description="Port to listen on.")
    debug: bool = Field(False, description="Log more. Never logs the text of a request.")
    log_text: bool = Field(False, description="Log what is spoken, for debugging. Nothing of it is private any more.")
    api_keys: Annotated[tuple[Key, ...], NoDecode, BeforeValidator(listed)] = Field(
        (),
        description="Comma-separated keys, in ASCII; speech then needs one of them. Empty: whoever reaches the server "
        "may speak.",
    )
    admin_api_key: Key = Field(
        SecretStr(""),
        description="Key for routes that change something (voices, /admin), in ASCII. Empty: only from this machine, "
        "with one of API_KEYS where there are any. Behind a proxy or tunnel, set it: everybody seems to be at this "
        "machine there.",
    )
    public_listings: bool = Field(
        True, description="false: the lists of voices and models need a key too, where API_KEYS has any."
    )
    rate_limit_rpm: int = Field(
        0, ge=0, le=1_000_000, description="Requests for speech a minute, for each key, else each address. 0: no limit."
    )
    trusted_proxies: Annotated[tuple[Network, ...], NoDecode, BeforeValidator(listed)] = Field(
        (),
        description="Comma-separated addresses and networks of your reverse proxies, whose X-Forwarded-For tells "
        "clients apart for the queue and RATE_LIMIT_RPM. Empty: none is believed.",
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


class SpeechSettings(Group):
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


class PoolSettings(Group):
    """The worker processes."""

    tts_backend: str = Field("auto", min_length=1, description="Engine: auto, kokoro, coqui, voxcpm or voxcpm-vllm.")
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


class CacheSettings(Group):
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


def _redis_url(url: SecretStr) -> SecretStr:
    """Not a word of it is repeated: it may hold a password. Raises ValueError."""
    if not re.fullmatch(r"|rediss?://([^/?#]*@)?[^/?#@]+(/\d*)?(\?\S*)?|unix://\S+", url.get_secret_value()):
        raise ValueError("It should look like redis://:password@host:6379/0, rediss://... or unix:///path")
    return url


class NodeSettings(Group):
    """Telling a router of several servers that this one is there, by Redis (./setup.sh --with redis)."""

    redis_url: Annotated[SecretStr, AfterValidator(_redis_url)] = Field(
        SecretStr(""), description="Redis that is told, redis://:password@host:6379/0. Empty: none."
    )
    redis_publish_interval: float = Field(
        5.0, ge=0.1, le=3600, description="Seconds between two words to it; after three without one the entry expires."
    )
    node_id: str = Field(
        "", pattern=r"^[\w.:-]{0,128}$", description="Name of this server there. Empty: the machine's, and the port."
    )
    node_host: str = Field(
        "", description="Address at which others reach it. Empty: HOST, or the machine's name where that is none of it."
    )
    node_port: int | None = Field(None, ge=1, le=65535, description="Port at which others reach it. Empty: PORT.")


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
    voxcpm_vllm: VoxcpmVllmSettings
    weights: WeightsSettings
    node: NodeSettings

    def options(self, backend: str) -> dict[str, Any]:
        """What a worker is told for its backend: the group of that name, as JSON values; empty where there is none."""
        group = getattr(self, backend.replace("-", "_"), None)
        return group.model_dump(mode="json") if isinstance(group, Group) else {}


_GROUPS: dict[str, type[Group]] = {
    "server": ServerSettings,
    "speech": SpeechSettings,
    "pool": PoolSettings,
    "cache": CacheSettings,
    "kokoro": KokoroSettings,
    "coqui": CoquiSettings,
    "voxcpm": VoxcpmSettings,
    "voxcpm_vllm": VoxcpmVllmSettings,
    "weights": WeightsSettings,
    "node": NodeSettings,
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
            said = [(each["loc"], each["msg"].removeprefix("Value error, ")) for each in error.errors()]
            problems += [f"{str(where[0]).upper()}: {message}" if where else message for where, message in said]
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
    return str(value).lower() if isinstance(value, bool) else "" if value in (None, ()) else str(value)


if __name__ == "__main__":
    print(env_example(), end="")
