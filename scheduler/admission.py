"""Whether a job may join the queue, and how long it will wait for its first sound.

The forecast is a fluid one: what will be made before the job's first utterance, by the rate of all slots together.
Clients take turns, so of another client's work only as much counts as the job's own client has before it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from core.errors import Overloaded
from scheduler.autoscaler import Demand
from scheduler.fleet import Fleet
from scheduler.job import Job, JobState
from scheduler.supervisor import Supervisor

AHEAD_S = 10.0
"""Seconds of audio of one job that count: what is further ahead of its listener makes room for a new one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What is let in. 0: no limit.

    jobs: that wait for their first slot. wait_s: forecast seconds to first audio.
    deadline_s: until the first audio of one that was let in.
    """

    jobs: int = 0
    wait_s: float = 0.0
    deadline_s: float = 0.0

    def deadline(self, now: float, max_wait_s: float | None) -> float | None:
        """When a job that comes now is given up. max_wait_s: what its client is ready to wait, None: for ever."""
        bounds = [bound for bound in (self.deadline_s or None, max_wait_s) if bound is not None]
        return now + min(bounds) if bounds else None


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Load:
    """What an engine has before it. backlog_s: seconds of audio that are to be made, by client.

    begun_s: the same of each job that has sound or a slot. waiting: the other jobs. rate: seconds of audio a second
    with all slots busy. slots, free_slots: all, and the idle ones. starts_in_s: seconds until there is a worker at all.
    soon_rate: the rate from soon_s on, when those workers are there that load or will be started for this queue.
    """

    backlog_s: Mapping[str, float]
    begun_s: tuple[float, ...]
    waiting: int
    rate: float
    slots: int
    free_slots: int
    starts_in_s: float = 0.0
    soon_rate: float = 0.0
    soon_s: float = 0.0

    def made_in_s(self, audio_s: float) -> float:
        """Seconds until so much audio is made."""
        soon_s = self.soon_s if self.soon_rate > self.rate else float("inf")
        at_once = self.rate * soon_s
        return audio_s / self.rate if audio_s <= at_once else soon_s + (audio_s - at_once) / self.soon_rate


def weigh(jobs: Collection[Job], demand: Demand, supervisor: Supervisor, now: float) -> Load:
    """What there is to do, and with what. demand: what of it cold workers may do."""
    fleet = supervisor.fleet
    backlog_s: defaultdict[str, float] = defaultdict(float)
    begun_s = []
    for job in jobs:
        is_queued = job.state is JobState.QUEUED
        seconds = job.estimate_s if is_queued else min(AHEAD_S, remaining_s(job, fleet, AHEAD_S))
        backlog_s[job.spec.client] += seconds
        if not is_queued:
            begun_s.append(seconds)
    soon_rate, soon_s = supervisor.soon(demand)
    return Load(
        backlog_s=backlog_s,
        begun_s=tuple(begun_s),
        waiting=len(jobs) - len(begun_s),
        rate=fleet.rate(),
        slots=fleet.slots,
        free_slots=fleet.free_slots,
        starts_in_s=supervisor.starts_in_s(now),
        soon_rate=soon_rate,
        soon_s=soon_s,
    )


def remaining_s(job: Job, fleet: Fleet, bound_s: float) -> float:
    """Seconds of audio that are still to be made for a job; about `bound_s` where it is more."""
    seconds = sum(job.expected.values()) / 2  # what runs is half done, on average
    for index in job.waiting:
        if seconds > bound_s:
            break
        seconds += fleet.audio_s(job.spec.utterances[index], job.spec.params.speed)
    return seconds


def forecast_s(load: Load, client: str, first_s: float) -> float:
    """Seconds until a job of `client` has its first sound. first_s: that its first utterance takes in a slot."""
    own_s = load.backlog_s.get(client, 0.0)
    ahead_s = sum(min(backlog_s, own_s + AHEAD_S) for other, backlog_s in load.backlog_s.items() if other != client)
    queued_s = 0.0 if load.free_slots > load.waiting else load.made_in_s(own_s + ahead_s)
    return load.starts_in_s + queued_s + first_s


def check(limits: Limits, load: Load, wait_s: float, longest_s: float | None) -> Overloaded | None:
    """None, or the refusal with the seconds after which a place is free.

    wait_s: the job's forecast. longest_s: what its client is ready to wait, None for the server's own limit alone.
    """
    if limits.jobs and load.waiting >= limits.jobs:
        seconds = load.starts_in_s + _starts_s(load, load.waiting - limits.jobs)
        return Overloaded(f"{load.waiting} requests are waiting, which is all that this server lets.", seconds)
    bounds = [bound for bound in (limits.wait_s or None, longest_s) if bound is not None]
    if bounds and wait_s > min(bounds):
        return Overloaded(f"Sound would start in about {wait_s:.0f} s, which is too late.", wait_s - min(bounds))
    return None


def check_unloaded(limits: Limits, waiting: int, starts_in_s: float, longest_s: float | None) -> Overloaded | None:
    """The same before any worker has loaded, when no more is known of those that wait than how many they are."""
    load = Load({}, (), waiting, rate=1.0, slots=0, free_slots=0, starts_in_s=starts_in_s)
    return check(limits, load, starts_in_s, longest_s)


def _starts_s(load: Load, place: int) -> float:
    """Seconds until the waiting job at this place, from 0, has a slot: when so many that have begun are through."""
    begun_s = sorted(load.begun_s)
    if place < len(begun_s):
        return begun_s[place] * max(1, min(load.slots, len(begun_s))) / load.rate
    waiting_s = (sum(load.backlog_s.values()) - sum(begun_s)) / max(1, load.waiting)
    return load.made_in_s(sum(begun_s) + (place - len(begun_s)) * waiting_s)
