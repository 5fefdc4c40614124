"""One request for speech as the scheduler sees it: what waits, runs and is done, and how far the client has come."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from core.speech import Params, Reference, Task, Utterance

CHARS_PER_SECOND = 14.0
"""Characters of text to a second of speech at speed 1; only for audio that does not exist yet, so roughly is enough."""

WIDE_CHARS_PER_SECOND: Mapping[str, float] = {"zh": 4.5, "ja": 6.0}
"""The same for languages whose characters are syllables and words."""

MAX_RUNS = 3
"""How often one utterance is tried before its job fails: a worker may die beside it twice, and not by its fault."""


def estimated_s(utterance: Utterance) -> float:
    """Seconds of speech at speed 1 that an utterance will make."""
    return len(utterance.text) / WIDE_CHARS_PER_SECOND.get(utterance.language, CHARS_PER_SECOND)


class JobState(Enum):
    """Where a job stands. RUNNING: an utterance has a slot. STREAMING: audio has left."""

    QUEUED = "queued"
    RUNNING = "running"
    STREAMING = "streaming"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


_ENDS = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})

MOVES: Mapping[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.RUNNING, JobState.FAILED, JobState.CANCELLED}),
    JobState.RUNNING: frozenset({JobState.STREAMING}) | _ENDS,
    JobState.STREAMING: _ENDS,
    JobState.DONE: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
}
"""The only moves there are."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What is submitted, whole. paced: the client plays as it reads, see `SpeechRequest.paced`."""

    id: int
    utterances: tuple[Utterance, ...]
    voice: Reference
    params: Params = Params()
    seed: int | None = None
    paced: bool = False


@dataclass(slots=True)
class Job:
    """A submitted job; the scheduler alone moves it.

    waiting: indices in order. running: index to task. released: utterances some of whose audio has left for good.
    made_s, consumed_s: seconds of audio as the engine makes it, finished by workers and taken by the client.
    played_s: how long the client plays what it took: silence is cut off, pauses are put in, the tempo is its own.
    """

    spec: JobSpec
    state: JobState = JobState.QUEUED
    waiting: list[int] = field(default_factory=list)
    running: dict[int, Task] = field(default_factory=dict)
    runs: dict[int, int] = field(default_factory=dict)
    released: set[int] = field(default_factory=set)
    made_s: float = 0.0
    consumed_s: float = 0.0
    played_s: float = 0.0
    sounding_since: float | None = None

    def __post_init__(self) -> None:
        self.waiting = [utterance.index for utterance in self.spec.utterances]

    def move(self, state: JobState) -> None:
        """Change state. Raises ValueError for a move that is not in the table."""
        if state not in MOVES[self.state]:
            raise ValueError(f"a job cannot go from {self.state.value} to {state.value}")
        self.state = state

    @property
    def opening(self) -> bool:
        """True while an opening utterance runs: the rest waits, so that nothing slows down what is listened for."""
        return any(task.utterance.is_opening for task in self.running.values())

    def expected_s(self) -> float:
        """Seconds of audio made or being made."""
        running_s = sum(estimated_s(task.utterance) for task in self.running.values())
        return self.made_s + running_s / self.spec.params.speed

    def free_at(self, lead_s: float, now: float) -> float | None:
        """When its next utterance may start: a time not after `now` is now, None is not before the client took more.

        Audio is never more than `lead_s` ahead of what the client took; for a paced one, nor of what it can have heard.
        """
        waiting_s = self.expected_s() - self.consumed_s
        if waiting_s >= lead_s:
            return None
        if not self.spec.paced or self.sounding_since is None:
            return now
        return self.sounding_since + self.played_s + waiting_s - lead_s
