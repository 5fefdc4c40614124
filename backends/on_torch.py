"""What engines on torch do alike: what is no checkpoint, the device, the seed."""

import logging
import os
from pathlib import Path

import torch

from backends.base import BackendError
from core.cgroups import usable_cores


def would_run(path: Path) -> BackendError:
    """What is said of a file that is no data alone."""
    return BackendError(f"{path} holds more than weights: it was not opened, for it could run anything.")


def open_device(device: str) -> None:
    """Make sure that a device is there, and that no more threads run than it has use for. Raises BackendError.

    A worker may come from a process that was started with one thread. On a GPU there is nothing for more to do.
    """
    logging.getLogger("transformers").setLevel(logging.ERROR)  # its advice is for those who train
    if device != "cpu" and not torch.cuda.is_available():
        raise BackendError(
            f"The torch {torch.__version__} of this installation cannot use a GPU: TTS_DEVICE=cpu does without one; "
            "TORCH_INDEX (see ./setup.sh --help) takes another build."
        )
    asked = os.environ.get("OMP_NUM_THREADS", "")
    torch.set_num_threads(1 if device != "cpu" else int(asked) if asked.isdecimal() and int(asked) else usable_cores())


def sow(seed: int | None) -> None:
    """Begin what is drawn by lot, at a place that comes again or, for None, at one that does not."""
    torch.manual_seed(seed if seed is not None else int.from_bytes(os.urandom(7)))
