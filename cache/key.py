"""What makes two answers the same."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path


def key_of(facts: Mapping[str, object]) -> str:
    """One name for everything that changes the sound: 32 hexadecimal digits.

    facts: JSON values by name. Raises ValueError for what JSON has no spelling for.
    """
    spelled = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.md5(spelled.encode("ascii"), usedforsecurity=False).hexdigest()


def version_of(folders: Iterable[Path]) -> str:
    """One name for our own rules: the bytes of all files in these folders, in any order on disk.

    Nobody has to remember to count a version up: a rule that reads otherwise makes other keys.
    """
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".json", ".npz"))
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
