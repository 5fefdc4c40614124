"""A backend whose import starts a thread, as numeric libraries do: a process that has it must not be forked."""

import threading

from tone_backend import make

threading.Thread(target=threading.Event().wait, daemon=True).start()

__all__ = ["make"]
