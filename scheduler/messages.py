"""What the scheduler hears (events) and what it says (commands). All frozen; times are arguments of `handle`."""

from dataclasses import dataclass
from typing import TypeAlias

from core.errors import SpeechError
from core.speech import Priors, Task
from scheduler.job import JobSpec

# --- events


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job asks for speech."""

    job: JobSpec


@dataclass(frozen=True, slots=True)
class Left:
    """A job's client is gone, or has all that it wanted."""

    job: int


@dataclass(frozen=True, slots=True)
class Consumed:
    """A job's client took more. made_s: seconds as the engine made them. played_s: what of it is heard, and pauses."""

    job: int
    made_s: float
    played_s: float


@dataclass(frozen=True, slots=True)
class FirstAudio:
    """The first audio of one utterance has left for its client: from now on it cannot be run again."""

    job: int
    index: int


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker has loaded and takes work. priors: what its backend promises."""

    worker: int
    slots: int
    priors: Priors


@dataclass(frozen=True, slots=True)
class Finished:
    """A task ended in its worker. audio_s: seconds of sound it made; None where it failed."""

    worker: int
    task: int
    audio_s: float | None


@dataclass(frozen=True, slots=True)
class Stopped:
    """A cancelled task has left its slot."""

    worker: int
    task: int


@dataclass(frozen=True, slots=True)
class Died:
    """A worker process is gone. reason: for the operator, where it said one before it died."""

    worker: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event: TypeAlias = Submitted | Left | Consumed | FirstAudio | Ready | Finished | Stopped | Died | Tick

# --- commands


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start this worker."""

    worker: int


@dataclass(frozen=True, slots=True)
class Start:
    """Give this task to this worker."""

    worker: int
    task: Task


@dataclass(frozen=True, slots=True)
class Cancel:
    """Tell this worker to stop this task."""

    worker: int
    task: int


@dataclass(frozen=True, slots=True)
class Restart:
    """Forget the audio of one utterance: it will be run again."""

    job: int
    index: int


@dataclass(frozen=True, slots=True)
class Fail:
    """Tell a job that it is over."""

    job: int
    error: SpeechError


Command: TypeAlias = Spawn | Start | Cancel | Restart | Fail
