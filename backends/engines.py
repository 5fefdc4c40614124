"""What must be known of the engines on torch without importing it: their checkpoints, libraries, memory, licences.

The process that serves HTTP chooses among them by this, and the command `weights` fetches for them.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from os.path import isdir, isfile  # what may not be looked at is not there
from pathlib import Path
from typing import Any

from backends.base import BackendError
from backends.weights.lock import FILE_NAME, read_lock
from core.environment import PROJECT


@dataclass(frozen=True, slots=True)
class Release:
    """Weights that can be had from a hub.

    files: those that are needed, each with what may take its place, best first. extras: those that may be missing.
    terms: what is to be said of the licence before anything is fetched. must_be_accepted: whether it asks for a yes.
    """

    repository: str
    files: tuple[tuple[str, ...], ...]
    extras: tuple[str, ...]
    licence: str
    terms: str
    must_be_accepted: bool = False


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine on torch.

    name: of the backend. model: what `./setup_assets.sh --model` calls its weights. setting: which one names the
    checkpoint. needed: files of a checkpoint, each with what may take its place. libraries: packages that it imports.
    memory_bytes: what must be free on a GPU for a worker. batches: whether one worker fills a GPU: no second one comes
    there, and none is forked. hazard: what an operator is to know at each start.
    """

    name: str
    model: str
    title: str
    setting: str
    needed: tuple[tuple[str, ...], ...]
    libraries: tuple[str, ...]
    memory_bytes: int
    release: Release
    hazard: str = ""
    batches: bool = False

    @property
    def remedy(self) -> str:
        """The command that fetches its weights, or repairs them."""
        return f"./setup_assets.sh --model {self.model}"

    @property
    def is_installed(self) -> bool:
        """Whether its libraries are there. Imports none of them."""
        return all(find_spec(library) for library in self.libraries)

    @property
    def can_use_gpu(self) -> bool:
        """Whether they are there with a torch that was built for GPUs. Imports none of them."""
        try:
            return self.is_installed and not version("torch").endswith("+cpu")
        except PackageNotFoundError:  # a folder of that name is no package
            return False


COQUI = Engine(
    name="coqui",
    model="xtts",
    title="XTTS-v2",
    setting="TTS_MODEL",
    needed=(("config.json",), ("model.pth",), ("vocab.json",)),
    libraries=("torch", "TTS"),
    memory_bytes=3 * 10**9,  # in fp32: 1.9 GB are its weights, the rest CUDA's own and what it computes with
    release=Release(
        repository="coqui/XTTS-v2",
        files=(("config.json",), ("model.pth",), ("vocab.json",)),
        extras=("speakers_xtts.pth",),
        licence="Coqui Public Model License 1.0.0",
        terms="The weights of XTTS-v2 are under the Coqui Public Model License (CPML): they, and what they speak, may "
        "be used for non-commercial purposes only.\nIts text: https://coqui.ai/cpml, or "
        "https://huggingface.co/coqui/XTTS-v2/blob/main/LICENSE.txt",
        must_be_accepted=True,
    ),
)

VOXCPM = Engine(
    name="voxcpm",
    model="voxcpm",
    title="VoxCPM",
    setting="VOXCPM_MODEL",
    needed=(
        ("config.json",),
        ("tokenizer.json",),
        ("tokenizer_config.json",),
        ("model.safetensors", "pytorch_model.bin"),
        ("audiovae.safetensors", "audiovae.pth"),
    ),
    libraries=("torch", "voxcpm"),
    memory_bytes=7 * 10**9,  # VoxCPM2 in bf16: 5 GB are its weights
    release=Release(
        repository="openbmb/VoxCPM2",
        files=(
            ("config.json",),
            ("tokenizer.json",),
            ("tokenizer_config.json",),
            ("model.safetensors",),
            ("audiovae.pth", "audiovae.safetensors"),  # engines that batch know the first one only
        ),
        extras=("special_tokens_map.json",),
        licence="Apache-2.0",
        terms="The weights of VoxCPM2 are under the Apache License 2.0: https://www.apache.org/licenses/LICENSE-2.0",
    ),
    hazard="the library of VoxCPM races where several processes on one GPU use its compiled CUDA graphs; this server "
    "compiles none, but an engine that batches all requests in one process (voxcpm-vllm) is the better one for "
    "production",
)

VOXCPM_VLLM = replace(
    VOXCPM,
    name="voxcpm-vllm",
    title="VoxCPM2",
    needed=(
        ("config.json",),
        ("tokenizer.json",),
        ("tokenizer_config.json",),
        ("model.safetensors",),
        ("audiovae.pth",),
    ),
    libraries=("torch", "nanovllm_voxcpm", "flash_attn"),
    memory_bytes=20 * 10**9,  # a card of 24 GB, and what a desktop takes of it
    hazard="",
    batches=True,
)

ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in (COQUI, VOXCPM, VOXCPM_VLLM)}
"""By the name of the backend."""


def place(engine: Engine, options: Mapping[str, Any]) -> Path:
    """The folder of its checkpoint: where one is, else where one is to be put. options: the engine's settings."""
    places = _places(engine, options)
    return next((folder for folder in places if isdir(folder)), places[-1])


def find(engine: Engine, options: Mapping[str, Any]) -> Path:
    """The folder of a whole checkpoint. options: the engine's settings.

    Sizes are compared with what is remembered of its download, digests are not: that takes seconds.
    Raises BackendError where it is not there, or not all of it.
    """
    folder = place(engine, options)
    if not isdir(folder):
        raise BackendError(
            f"There is no {engine.title} checkpoint: neither {_model(engine, options)} nor a folder of it below "
            f"{PROJECT / options['tts_home']} exists. {engine.remedy} downloads one; or set {engine.setting} to the "
            "folder of your own."
        )
    missing = [" or ".join(names) for names in engine.needed if not any(isfile(folder / name) for name in names)]
    if missing:
        raise BackendError(
            f"The {engine.title} checkpoint in {folder} is not whole: {', '.join(missing)} is missing. "
            f"{engine.remedy} downloads one."
        )
    lock = read_lock(folder)
    other = [] if lock is None else [name for name, kept in lock.files.items() if not kept.has_size_of(folder / name)]
    if other:
        raise BackendError(
            f"The {engine.title} checkpoint in {folder} is not as it was downloaded: {', '.join(other)} is missing or "
            f"of another size. {engine.remedy} repairs it; if it was you who changed it, remove {FILE_NAME}."
        )
    return folder


def revision_of(contents: Iterable[Path], stamps: Iterable[Path]) -> str:
    """What tells a checkpoint from another one: 16 hexadecimal digits.

    contents: files that are read for it. stamps: those that are too large for that; size and time of writing tell.
    """
    digest = hashlib.sha256()
    for path in contents:
        digest.update(path.read_bytes())
    for path in stamps:
        stat = path.stat()
        digest.update(f"{path.name} {stat.st_size} {stat.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def _model(engine: Engine, options: Mapping[str, Any]) -> str:
    return str(options[engine.setting.lower()])


def _places(engine: Engine, options: Mapping[str, Any]) -> list[Path]:
    """Where a checkpoint may lie, first choice first: by path, where the Coqui library puts it, where we do."""
    model, home = _model(engine, options), PROJECT / options["tts_home"]
    if Path(model).is_absolute():
        return [Path(model)]
    name = model.replace("/", "--")
    return [PROJECT / model, home / "tts" / name, home / name]
