"""What the author of a backend writes whose library advances many utterances together, step by step."""

from typing import Protocol, runtime_checkable

from backends.base import Engine, Prepared
from backends.voices import Voices
from core.speech import Reference, Traits


@runtime_checkable
class Batching(Protocol):
    """One library that speaks many utterances at once, alone in its process. It brings its own `Engine`.

    The worker's loop steps that engine: there is no second process, queue or scheduler behind it.
    """

    def load(self, device: str) -> Traits:
        """See `Backend.load`; the traits say that it batches."""

    def prepare(self, reference: Reference) -> Prepared:
        """See `Backend.prepare`; called between two steps."""

    def engine(self, voices: Voices) -> Engine:
        """What speaks, once it is loaded. voices: asked between two steps for what `prepare` makes of them."""
