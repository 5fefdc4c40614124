"""One request for speech as the scheduler sees it: what waits, runs and is done, and how far the client has come."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from core.speech import Params, Reference, Task, Utterance
from scheduler.estimator import words_of

MAX_MISSES = 2
"""How often one utterance may come out wrong before its job fails: it is tried once more, with another seed."""

MISS_STRIDE = 500_009
"""Between the seeds of two tries; far more than a text has utterances."""

MAX_RUNS = 3
"""How often one utterance is tried before its job fails: a worker may die beside it twice, and not by its fault."""


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
    """What is submitted, whole. id: the pool's. client, max_wait_s, streamed, paced: see `SpeechRequest`.

    is_admitted: it was let in while the engine loaded, and is not refused for a long queue any more.
    """

    utterances: tuple[Utterance, ...]
    voice: Reference
    id: int = 0
    params: Params = Params()
    seed: int | None = None
    client: str = ""
    max_wait_s: float | None = None
    streamed: bool = True
    paced: bool = False
    is_admitted: bool = False


@dataclass(slots=True)
class Job:
    """A submitted job; the scheduler alone moves it.

    submitted_at: when it came. deadline: when it is given up, if it has no sound by then; None: never.
    estimate_s: seconds of audio that others wait for on its behalf.
    waiting: indices in order. running: index to task. expected: seconds of audio of those that run.
    released: utterances some of whose audio has left for good.
    made_s, consumed_s: seconds of audio as the engine makes it, finished by workers and taken by the client.
    played_s: how long the client plays what it took: silence is cut off, pauses are put in, the tempo is its own.
    fled: a cold worker died under it. words: of the whole text. misses: how often an utterance came out wrong.
    clients: all who hear it; the first is the one that it came from.
    plays_until: when a listener who plays all that is made, as soon as it is, hears its end.
    """

    spec: JobSpec
    submitted_at: float = 0.0
    deadline: float | None = None
    estimate_s: float = 0.0
    state: JobState = JobState.QUEUED
    waiting: list[int] = field(default_factory=list)
    running: dict[int, Task] = field(default_factory=dict)
    expected: dict[int, float] = field(default_factory=dict)
    runs: dict[int, int] = field(default_factory=dict)
    released: set[int] = field(default_factory=set)
    made_s: float = 0.0
    consumed_s: float = 0.0
    played_s: float = 0.0
    sounding_since: float | None = None
    plays_until: float | None = None
    fled: bool = False
    words: int = 0
    misses: Counter[int] = field(default_factory=Counter)
    clients: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clients = [self.spec.client]
        self.waiting = [utterance.index for utterance in self.spec.utterances]
        self.words = sum(words_of(utterance) for utterance in self.spec.utterances)

    def seed(self, index: int) -> int | None:
        """Of an utterance: the same again after a death, another one after a miss. None where the request has none."""
        if self.spec.seed is None:
            return None
        return (self.spec.seed * 1_000_003 + index + MISS_STRIDE * self.misses[index]) % 2**31

    def is_spent(self, index: int) -> bool:
        """Whether an utterance must not be run once more."""
        return index in self.released or self.runs[index] >= MAX_RUNS or self.misses[index] >= MAX_MISSES

    def move(self, state: JobState) -> None:
        """Change state. Raises ValueError for a move that is not in the table."""
        if state not in MOVES[self.state]:
            raise ValueError(f"a job cannot go from {self.state.value} to {state.value}")
        self.state = state

    @property
    def opening(self) -> bool:
        """True while an opening utterance runs: the rest waits, so that nothing slows down what is listened for."""
        return any(task.utterance.is_opening for task in self.running.values())

    @property
    def next(self) -> Utterance:
        """The utterance that is to run next."""
        return self.spec.utterances[self.waiting[0]]

    @property
    def gives_up_at(self) -> float | None:
        """When it is over unless it sounds before."""
        return self.deadline if self.sounding_since is None else None

    @property
    def dry_at(self) -> float | None:
        """When its listener will have heard all that is made or being made; None before there is any."""
        return None if self.plays_until is None else self.plays_until + sum(self.expected.values())

    def start(self, task: Task, expected_s: float) -> None:
        """An utterance has a slot. expected_s: seconds of audio that it will make."""
        index = task.utterance.index
        self.waiting.remove(index)
        self.runs[index] = self.runs.get(index, 0) + 1
        self.running[index] = task
        self.expected[index] = expected_s
        if self.state is JobState.QUEUED:
            self.move(JobState.RUNNING)

    def stop(self, index: int) -> None:
        """An utterance has no slot any more."""
        del self.running[index]
        del self.expected[index]

    def finish(self, index: int, audio_s: float, now: float) -> None:
        """An utterance is made."""
        self.stop(index)
        self.made_s += audio_s
        self.plays_until = max(self.plays_until or now, now) + audio_s

    def expected_s(self) -> float:
        """Seconds of audio made or being made."""
        return self.made_s + sum(self.expected.values())

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
