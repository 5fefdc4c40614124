"""Where an engine on torch runs."""

import os

import torch

from backends.base import BackendError
from core.cgroups import usable_cores


def open_device(device: str) -> None:
    """Make sure that a device is there, and that no more threads run than it has use for. Raises BackendError.

    A worker may come from a process that was started with one thread. On a GPU there is nothing for more to do.
    """
    if device != "cpu" and not torch.cuda.is_available():
        raise BackendError(
            f"The torch {torch.__version__} of this installation cannot use a GPU: TTS_DEVICE=cpu does without one; "
            "TORCH_INDEX (see ./setup.sh --help) takes another build."
        )
    asked = os.environ.get("OMP_NUM_THREADS", "")
    torch.set_num_threads(1 if device != "cpu" else int(asked) if asked.isdecimal() and int(asked) else usable_cores())
