"""Whose utterance is next. Between clients: deficit round robin over seconds of audio. Within one: the most urgent job.

A client that was silent is served at once, for one quantum, before the others have their turns again: a short request
does not wait behind those who ask all the time, and who asks all the time is not starved by newcomers either. Among the
jobs of one client:

    0  streams that their listeners hear the end of within HURRY_S, soonest first
    1  jobs without sound yet, streams that ran dry, and answers that leave whole, in the order of that moment or of
       their coming; of the last kind, what is beyond SAFE_S of audio counts as if it had come as much later
    2  streams that are within SAFE_S of their end, soonest first
    3  all others: they are far ahead

An answer that several clients hear stands in the line of each, and is made in whoever's turn comes first.

So a stream that plays is kept playing, the next one starts as soon as that is sure, and a long text in the lead makes
room. Streams that play go ahead of other clients too, on credit: a slot that is taken is not given back for seconds,
which is too late for a listener. A job that ran dry has lost its privilege: on a machine slower than speech, it takes
turns with the others.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from scheduler.job import Job

QUANTUM_S = 4.0
"""Seconds of audio that a client may have made before it is the next one's turn."""

HURRY_S = 5.0
"""Seconds of audio ahead of a listener that are too few to start another job first."""

SAFE_S = 20.0
"""Seconds that are enough for the longest utterance of somebody else and one's own, one behind the other."""

CREDIT_S = 30.0
"""Seconds of audio that a client's streams may be ahead of its turns."""

Cost = Callable[[Job], float]
Claim = Callable[[Job], bool]


@dataclass(slots=True)
class _Flow:
    """One client's jobs, by id, and the seconds of audio that it may still have made in this turn."""

    jobs: dict[int, Job] = field(default_factory=dict)
    deficit_s: float = QUANTUM_S

    def next(self, now: float, fits: Claim) -> Job | None:
        return min((job for job in self.jobs.values() if fits(job)), key=lambda job: urgency(job, now), default=None)

    def urgent(self, now: float, fits: Claim) -> Job | None:
        """The next job, where it is one that may go ahead of other clients."""
        job = self.next(now, fits) if self.deficit_s > -CREDIT_S else None
        return job if job and urgency(job, now)[0] in (0, 2) else None


def urgency(job: Job, now: float) -> tuple[int, float, int]:
    """Smaller is sooner; see the module's docstring."""
    dry_at = job.dry_at
    if dry_at is None:
        return 1, job.submitted_at, job.spec.id
    if not job.spec.streamed:
        due = job.submitted_at + max(0.0, job.expected_s() - SAFE_S)
        return 1 if due <= now else 3, due, job.spec.id
    if dry_at <= now:
        return 1, dry_at, job.spec.id
    ahead_s = dry_at - now
    return 0 if ahead_s < HURRY_S else 2 if ahead_s < SAFE_S else 3, dry_at, job.spec.id


class FairQueue:
    """All jobs that are not over, by client."""

    def __init__(self, cost_s: Cost) -> None:
        """cost_s: seconds of audio that a job's next utterance will make."""
        self._cost_s = cost_s
        self._flows: dict[str, _Flow] = {}
        self._fresh: deque[str] = deque()
        self._old: deque[str] = deque()

    def add(self, job: Job) -> None:
        """A job joins those of all its clients, where it is not among them yet."""
        for client in job.clients:
            if client not in self._flows:
                self._flows[client] = _Flow()
                self._fresh.append(client)
            self._flows[client].jobs[job.spec.id] = job

    def remove(self, job: Job) -> None:
        """A job is over. A client without jobs is forgotten, but not before it has paid what it had on credit."""
        for client in job.clients:
            flow = self._flows[client]
            flow.jobs.pop(job.spec.id, None)
            if not flow.jobs and flow.deficit_s >= 0:
                (self._fresh if client in self._fresh else self._old).remove(client)
                del self._flows[client]

    def take(self, now: float, fits: Claim) -> Job | None:
        """The job whose next utterance runs now, charged to its client; None where none fits."""
        if self._fresh and (job := self._in_turn(self._fresh, now, fits)):
            return job
        urgent = [(job, flow) for flow in self._flows.values() if (job := flow.urgent(now, fits))]
        if urgent:
            job, flow = min(urgent, key=lambda each: urgency(each[0], now))
            flow.deficit_s -= self._cost_s(job)
            return job
        return self._in_turn(self._old, now, fits)

    def _in_turn(self, turns: deque[str], now: float, fits: Claim) -> Job | None:
        """Turns of the fresh clients, who become old ones with it, or of the old ones."""
        idle = 0
        while idle < len(turns):
            client = turns[0]
            flow = self._flows[client]
            job = flow.next(now, fits)
            if job is not None and flow.deficit_s >= (cost_s := self._cost_s(job)):
                flow.deficit_s -= cost_s
                return job
            turns.popleft()
            if job is not None or not flow.jobs:
                flow.deficit_s += QUANTUM_S
            if not flow.jobs and flow.deficit_s >= 0:
                del self._flows[client]
                continue
            self._old.append(client)
            idle = 0 if job is not None else idle + (turns is self._old)
        return None
