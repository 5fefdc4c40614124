"""What the scheduler hears (events), says (commands) and shows (`View`). All frozen; times are arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from core.errors import SpeechError
from core.speech import Priors, Task
from scheduler.job import JobSpec

CPU = "cpu"
"""The device of a worker that uses no GPU; others are named by their UUID."""

# --- events


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job asks for speech."""

    job: JobSpec


@dataclass(frozen=True, slots=True)
class Joined:
    """One more client hears a job."""

    job: int
    client: str


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
class Phase:
    """A worker that starts has come to this phase, or further within it. name: imports, weights, ..."""

    worker: int
    name: str


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker has loaded and takes work. The rest is what its backend says of itself, see `Traits`."""

    worker: int
    slots: int
    priors: Priors
    gains_from_processes: bool = False
    batches: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """A worker lives, and some audio of this task has come; 0: of none."""

    worker: int
    task: int = 0


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
    """A worker process is gone. reason: for the operator, where it said one before it died.

    is_out_of_memory: it died for want of memory. is_device_fault: its GPU has failed it, and may have failed others.
    """

    worker: int
    reason: str = ""
    is_out_of_memory: bool = False
    is_device_fault: bool = False


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """One device at one moment. id: UUID of a GPU, or "cpu". free_bytes: what workers may still take of it."""

    id: str
    free_bytes: int
    total_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """A reading of the devices that workers may be started on. workers: bytes that each worker holds, where known."""

    devices: tuple[DeviceMemory, ...]
    workers: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed. late_s: by which this comes later than it was asked for: the server itself stood still."""

    late_s: float = 0.0


Event: TypeAlias = (
    Submitted
    | Joined
    | Left
    | Consumed
    | FirstAudio
    | Phase
    | Ready
    | Progress
    | Finished
    | Stopped
    | Died
    | Memory
    | Tick
)

# --- commands


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start this worker on this device: UUID of a GPU, or "cpu"."""

    worker: int
    device: str


@dataclass(frozen=True, slots=True)
class Retire:
    """Let this worker end: it has no work."""

    worker: int


@dataclass(frozen=True, slots=True)
class Kill:
    """End this worker now: it hangs. reason: for the operator."""

    worker: int
    reason: str


@dataclass(frozen=True, slots=True)
class Start:
    """Give this task to this worker. route: what its client is told of it."""

    worker: int
    task: Task
    route: str = "HOT"


@dataclass(frozen=True, slots=True)
class Cancel:
    """Tell this worker to stop this task."""

    worker: int
    task: int


@dataclass(frozen=True, slots=True)
class Rerun:
    """Forget the audio of one utterance: it will be run again."""

    job: int
    index: int


@dataclass(frozen=True, slots=True)
class Fail:
    """Tell a job that it is over."""

    job: int
    error: SpeechError


Command: TypeAlias = Spawn | Retire | Kill | Start | Cancel | Rerun | Fail

# --- the look at it


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One worker at one moment. kind, state, device: as told. finished: utterances that it made.

    memory_bytes: what it holds, None where that was not read.
    """

    id: int
    kind: str
    state: str
    device: str
    uptime_s: float
    slots: int
    busy: int
    finished: int
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class ColdView:
    """The cold pool at one moment. active, loading: workers that work, that load. wanted: how many more the queue is
    worth. cap: of them at most. need_bytes: memory that one more needs. room_bytes: what is free for it.
    """

    active: int
    loading: int
    wanted: int
    cap: int
    need_bytes: int
    room_bytes: int


@dataclass(frozen=True, slots=True)
class View:
    """The scheduler at one moment. waiting: jobs without a slot so far. queued: utterances without one.

    words: of the waiting jobs. word_s: seconds of a slot that a word takes, 0 as long as none was spoken.
    drain_s: seconds until all is made that a new job would wait for. busy: slots with a task in them.
    is_ready: a job would be spoken now. is_hot: the hot worker has loaded; is_unloaded: it went for want of
    work; is_hopeless: it does not start. reason: why it is not there.
    start_s: seconds that a worker takes to start; is_start_known: as seen, not as the backend promised.
    memory: of the hot worker's device, None as long as it was not read.
    """

    jobs: int
    waiting: int
    queued: int
    words: int
    word_s: float
    drain_s: float
    busy: int
    slots: int
    is_ready: bool
    is_hot: bool
    is_unloaded: bool
    is_hopeless: bool
    restarts: int
    reason: str
    start_s: float
    is_start_known: bool
    cold: ColdView
    memory: DeviceMemory | None
    workers: tuple[WorkerView, ...]

    @property
    def gpu(self) -> DeviceMemory | None:
        """The hot worker's GPU, None where it has none or its memory was not read."""
        return self.memory if self.memory and self.memory.id != CPU else None
