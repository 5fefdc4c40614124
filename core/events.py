"""What rooms tell of themselves. Telemetry listens; nobody else knows that it does."""

from typing import Protocol


class Events(Protocol):
    """Called at things worth telling; but for `text`, no value holds a word of what a user sent."""

    def backend_chosen(self, *, backend: str, passed_over: str) -> None:
        """TTS_BACKEND left it to the server; `passed_over` says why the better ones were not taken."""

    def backend_hazard(self, *, backend: str, hazard: str) -> None:
        """The engine has a fault that is known and that its operator should know. Told once a start."""

    def server_started(self, *, backend: str) -> None:
        """The HTTP side is up; the model may still be loading."""

    def server_exposed(self, *, host: str) -> None:
        """It listens beyond this machine, and no key is asked for: whoever reaches it may speak."""

    def registry_lost(self, *, reason: str) -> None:
        """Redis cannot be told of this server, once an outage; `reason` is the kind and place of the exception."""

    def registry_found(self) -> None:
        """Redis can be told again."""

    def worker_spawned(self, worker: int, *, pid: int) -> None:
        """A child process has started loading."""

    def worker_ready(self, worker: int, *, seconds: float, slots: int) -> None:
        """A worker takes work, `seconds` after its spawn."""

    def worker_died(self, worker: int, *, reason: str, restart_s: float) -> None:
        """A worker is gone; the next one starts in `restart_s` seconds."""

    def task_failed(self, worker: int, *, reason: str) -> None:
        """An utterance raised in its worker; `reason` is the kind and place of the exception."""

    def template_refused(self, *, reason: str) -> None:
        """Workers are started by exec from now on, which takes seconds longer."""

    def memory_unknown(self, *, reason: str) -> None:
        """Memory cannot be read, so that no cold worker is started; `reason` is the kind and place of the exception."""

    def notes_lost(self, *, reason: str) -> None:
        """What was learned cannot be kept for the next start; `reason` is the kind and place of the exception."""

    def voices_read(self, *, loaded: int, failed: int) -> None:
        """The operator's voices were read; how many are voices, and how many entries are none."""

    def voices_rehearsed(self, *, made: int, failed: int, seconds: float) -> None:
        """An engine that batches has made registered voices ready, one after the other, in so many seconds."""

    def voices_lost(self, *, reason: str) -> None:
        """The operator's voices could not be read at all; `reason` is the kind and place of the exception."""

    def cache_failed(self, *, reason: str) -> None:
        """The cache was of no use, once of many times; `reason` is the kind and place of the exception."""

    def cache_exposed(self, *, folder: str) -> None:
        """Others may look into the cache's folder, which was there before; its files are still private."""

    def job_ended(
        self,
        *,
        outcome: str,
        text: str,
        cache: str,
        format: str,
        chars: int,
        audio_s: float,
        first_audio_s: float | None,
        wall_s: float,
    ) -> None:
        """A request for speech is over: done, failed, cancelled or rejected. Seconds count from its admission.

        text: what was to be said; a listener keeps it to itself unless the operator wants to see it.
        cache: as the client was told, empty where it did not come so far.
        """


class Silence:
    """Events that nobody listens to: for tests, and for `say`."""

    def backend_chosen(self, *, backend: str, passed_over: str) -> None:
        """Ignored."""

    def backend_hazard(self, *, backend: str, hazard: str) -> None:
        """Ignored."""

    def server_started(self, *, backend: str) -> None:
        """Ignored."""

    def server_exposed(self, *, host: str) -> None:
        """Ignored."""

    def registry_lost(self, *, reason: str) -> None:
        """Ignored."""

    def registry_found(self) -> None:
        """Ignored."""

    def worker_spawned(self, worker: int, *, pid: int) -> None:
        """Ignored."""

    def worker_ready(self, worker: int, *, seconds: float, slots: int) -> None:
        """Ignored."""

    def worker_died(self, worker: int, *, reason: str, restart_s: float) -> None:
        """Ignored."""

    def task_failed(self, worker: int, *, reason: str) -> None:
        """Ignored."""

    def template_refused(self, *, reason: str) -> None:
        """Ignored."""

    def memory_unknown(self, *, reason: str) -> None:
        """Ignored."""

    def notes_lost(self, *, reason: str) -> None:
        """Ignored."""

    def voices_read(self, *, loaded: int, failed: int) -> None:
        """Ignored."""

    def voices_rehearsed(self, *, made: int, failed: int, seconds: float) -> None:
        """Ignored."""

    def voices_lost(self, *, reason: str) -> None:
        """Ignored."""

    def cache_failed(self, *, reason: str) -> None:
        """Ignored."""

    def cache_exposed(self, *, folder: str) -> None:
        """Ignored."""

    def job_ended(
        self,
        *,
        outcome: str,
        text: str,
        cache: str,
        format: str,
        chars: int,
        audio_s: float,
        first_audio_s: float | None,
        wall_s: float,
    ) -> None:
        """Ignored."""
