"""VoxCPM 1.5 and 2 by their own library: a language model that speaks without tokens, and clones from a few seconds."""

import os

from core.environment import PROJECT

# Before torch is imported: else a bar is drawn for every utterance, and a folder for compiled code made in /tmp.
os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(PROJECT / "assets" / "models" / ".compiled"))
