"""VoxCPM2 by nano-vllm-voxcpm: one engine that speaks all utterances at once, for GPUs of 24 GB and more."""

import os

from core.environment import PROJECT

# Before torch is imported: compiled code is kept for the next start, not in /tmp; and it is compiled in the worker
# itself, so that no further process is left behind where that one is killed.
os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(PROJECT / "assets" / "models" / ".compiled"))
os.environ.setdefault("TRITON_CACHE_DIR", str(PROJECT / "assets" / "models" / ".compiled" / "triton"))
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
