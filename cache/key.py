"""What makes two answers the same."""

import hashlib
import json
from collections.abc import Mapping


def key_of(facts: Mapping[str, object]) -> str:
    """One name for everything that changes the sound: 32 hexadecimal digits.

    facts: JSON values by name. Raises ValueError for what JSON has no spelling for.
    """
    spelled = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.md5(spelled.encode("ascii"), usedforsecurity=False).hexdigest()
