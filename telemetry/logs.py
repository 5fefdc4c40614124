"""One line an event, with fields. No line holds a name that a user sent, nor, without LOG_TEXT, a word of a text."""

import json
import logging
import sys
from contextvars import ContextVar

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""Of the request in whose task a line is written; empty outside of one."""

_LOG = logging.getLogger("uttera_tts")


def set_up(*, debug: bool) -> None:
    """Send this process's lines to standard error. debug: more of them."""
    # No line shows them, and each of them is looked up for every line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    _LOG.setLevel(logging.DEBUG if debug else logging.INFO)
    for name in ("uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.addFilter(_is_news)
    # They write down query strings and bytes of forms, which are a user's.
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)


def _is_news(record: logging.LogRecord) -> bool:
    """uvicorn takes an answer that is broken off on purpose, which has its own line, for a fault of the app."""
    return not str(record.msg).startswith("ASGI callable returned without completing response")


def request_broke(place: str) -> None:
    """An error of our own reached the edge of a request; place: kind and line, no message."""
    _write(logging.ERROR, "request broke", error=place)


class LogEvents:
    """`core.events.Events` as lines."""

    def __init__(self, *, log_text: bool) -> None:
        """log_text: whether they hold what is spoken."""
        self._log_text = log_text
        if log_text:
            _write(logging.WARNING, "LOG_TEXT is on: every text that is spoken is written into this log")

    def backend_chosen(self, *, backend: str, passed_over: str) -> None:
        """TTS_BACKEND left it to the server."""
        _write(logging.INFO, "backend chosen", backend=backend, passed_over=passed_over)

    def backend_hazard(self, *, backend: str, hazard: str) -> None:
        """The engine has a fault that is known."""
        _write(logging.WARNING, "known hazard", backend=backend, hazard=hazard)

    def server_started(self, *, backend: str) -> None:
        """The HTTP side is up; the model may still be loading."""
        _write(logging.INFO, "server started", backend=backend)

    def server_exposed(self, *, host: str) -> None:
        """It listens beyond this machine, and no key is asked for."""
        _write(logging.WARNING, "server open to the network", host=host, remedy="set API_KEYS")

    def registry_lost(self, *, reason: str) -> None:
        """Redis cannot be told that this server is there."""
        _write(logging.WARNING, "registry lost", reason=reason)

    def registry_found(self) -> None:
        """Redis can be told again."""
        _write(logging.INFO, "registry found again")

    def worker_spawned(self, worker: int, *, pid: int) -> None:
        """A child process has started loading."""
        _write(logging.INFO, "worker loading", worker=worker, pid=pid)

    def worker_ready(self, worker: int, *, seconds: float, slots: int) -> None:
        """A worker takes work."""
        _write(logging.INFO, "worker ready", worker=worker, after_s=round(seconds, 1), slots=slots)

    def worker_died(self, worker: int, *, reason: str, restart_s: float) -> None:
        """A worker is gone."""
        _write(logging.WARNING, "worker died", worker=worker, reason=reason, restart_in_s=round(restart_s, 1))

    def task_failed(self, worker: int, *, reason: str) -> None:
        """An utterance raised in its worker."""
        _write(logging.WARNING, "utterance failed", worker=worker, reason=reason)

    def template_refused(self, *, reason: str) -> None:
        """Workers cannot be forked."""
        _write(logging.WARNING, "template refused", reason=reason)

    def memory_unknown(self, *, reason: str) -> None:
        """Memory cannot be read."""
        _write(logging.WARNING, "memory unknown", reason=reason)

    def notes_lost(self, *, reason: str) -> None:
        """What was learned cannot be kept for the next start."""
        _write(logging.WARNING, "learned figures lost", reason=reason)

    def voices_read(self, *, loaded: int, failed: int) -> None:
        """The operator's voices were read."""
        if loaded or failed:
            _write(logging.WARNING if failed else logging.INFO, "voices read", loaded=loaded, failed=failed)

    def voices_rehearsed(self, *, made: int, failed: int, seconds: float) -> None:
        """Registered voices were made ready ahead."""
        if made or failed:
            _write(logging.INFO, "voices made ready", made=made, failed=failed, after_s=round(seconds, 2))

    def voices_lost(self, *, reason: str) -> None:
        """The operator's voices could not be read at all."""
        _write(logging.ERROR, "voices lost", reason=reason)

    def cache_failed(self, *, reason: str) -> None:
        """The cache was of no use."""
        _write(logging.WARNING, "cache failed", reason=reason)

    def cache_exposed(self, *, folder: str) -> None:
        """Others may look into the cache's folder."""
        _write(logging.WARNING, "cache folder open to others", folder=folder)

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
        """A request for speech is over."""
        _write(
            logging.INFO,
            f"speech {outcome}",
            cache=cache,
            format=format,
            chars=chars,
            audio_s=round(audio_s, 2),
            first_audio_s=None if first_audio_s is None else round(first_audio_s, 3),
            wall_s=round(wall_s, 3),
            text=text if self._log_text else "",
        )


def _write(level: int, event: str, **fields: object) -> None:
    fields["request"] = REQUEST_ID.get()
    told = [f"{name}={_quoted(str(value))}" for name, value in fields.items() if value not in (None, "")]
    _LOG.log(level, "%s", " ".join([event, *told]))


def _quoted(value: str) -> str:
    """In quotation marks where it is no plain word; on one line in any case, for all that take a line apart."""
    if value.isprintable() and " " not in value:
        return value
    spelled = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in spelled)
