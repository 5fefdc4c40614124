"""Which words end workers. What was aboard a worker that died is accused, until it sounds; what was alone is convicted.

Words are kept as numbers, from which nobody can read what was to be said, and for CONVICTION_S.
"""

from core.speech import Params, Reference, Task, Utterance
from scheduler.job import JobSpec

CONVICTION_S = 600.0
"""How long it is remembered what ended a worker."""


class Blame:
    """Words in a voice, by what is known against them. They outlive their jobs: a client that leaves clears nothing."""

    def __init__(self) -> None:
        self._accused: dict[int, float] = {}
        self._convicted: dict[int, float] = {}

    def accuse(self, task: Task, now: float) -> None:
        """It was aboard a worker that died."""
        self._accused[_fingerprint(task.utterance, task.voice, task.params)] = now + CONVICTION_S

    def convict(self, task: Task, now: float) -> None:
        """It was accused, alone aboard, and that worker died too."""
        self.accuse(task, now)
        self._convicted[_fingerprint(task.utterance, task.voice, task.params)] = now + CONVICTION_S

    def clear(self, task: Task) -> None:
        """It sounds."""
        if self._accused:
            self._accused.pop(_fingerprint(task.utterance, task.voice, task.params), None)

    def is_accused(self, utterance: Utterance, spec: JobSpec) -> bool:
        """Whether it is to run alone."""
        return bool(self._accused) and _fingerprint(utterance, spec.voice, spec.params) in self._accused

    def is_convicted(self, utterance: Utterance, spec: JobSpec) -> bool:
        """Whether it is not to run at all."""
        return bool(self._convicted) and _fingerprint(utterance, spec.voice, spec.params) in self._convicted

    def has_convict(self, spec: JobSpec) -> bool:
        """Whether that holds for any of a job's utterances."""
        return any(self.is_convicted(each, spec) for each in spec.utterances)

    def forget(self, now: float) -> None:
        """Drop what is too long ago."""
        for words in (self._accused, self._convicted):
            for each in [each for each, until in words.items() if until <= now]:
                del words[each]


def _fingerprint(utterance: Utterance, voice: Reference, params: Params) -> int:
    return hash((utterance.text, utterance.language, voice, params))
