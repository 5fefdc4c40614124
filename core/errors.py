"""Everything this server can say no with. The class fixes what a program reads, the instance what a person reads.

SpeechError (500)
├── InvalidValue (422)            a field is missing, empty, of the wrong type or out of range
├── RequestRefused (400)
│   ├── Unauthorized (401)        no key, or a wrong one
│   ├── Forbidden (403)           it is not for who asks
│   ├── NotFound (404)            nothing of that name
│   ├── UnknownVoice              no voice of that name
│   ├── VoiceNotRecorded          the engine needs a recording of this voice, or what is said in it
│   ├── UnsupportedLanguage       the backend does not speak it, or an extra is missing
│   ├── CloningNotSupported       a sample was sent to a backend that cannot clone
│   └── BadSample                 no recording, or one that no voice can be made from
├── RateLimited (429)             more requests than one client may make
├── TooLarge (413)                text or body beyond a limit that the message names
├── TooSlow (408)                 the client did not send its whole request
├── Unavailable (503)             no engine could be started, or the server is stopping
│   └── Overloaded                no room for this job now
├── DeadlineExceeded (504)        the job was admitted and did not make it in time
└── SynthesisFailed (500)         the engine failed, or died with audio already out
"""

from typing import ClassVar, Final

MIN_RETRY_S: Final = 0.5
"""Nobody is asked to come again at once."""


class SpeechError(Exception):
    """Anything this server can say no with.

    param: the request field at fault, None where no single field is.
    retry_after_s: seconds after which a new attempt makes sense, None where it does not.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: ClassVar[str] = "internal_error"
    retry_after_s: float | None = None

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class InvalidValue(SpeechError):
    """A field is missing, empty, of the wrong type or out of range."""

    status, type, code = 422, "invalid_request_error", "invalid_value"


class RequestRefused(SpeechError):
    """A well-formed request for something that this server does not have."""

    status, type, code = 400, "invalid_request_error", "invalid_request"


class Unauthorized(RequestRefused):
    """No key, or a wrong one."""

    status, code = 401, "invalid_api_key"


class Forbidden(RequestRefused):
    """It is not for who asks."""

    status, code = 403, "forbidden"


class NotFound(RequestRefused):
    """Nothing of that name. The message never repeats the name: it is the user's text."""

    status, code = 404, "not_found"


class UnknownVoice(RequestRefused):
    """No voice of that name. The message never repeats the name: it is the user's text."""

    code = "unknown_voice"

    def __init__(self, known: tuple[str, ...], *, is_default: bool = False) -> None:
        """is_default: the request named none, and the operator's DEFAULT_VOICE is none."""
        what = "DEFAULT_VOICE of this server names no voice" if is_default else "No such voice"
        super().__init__(f"{what}. Available voices: {', '.join(known)}.", param="voice")


class VoiceNotRecorded(RequestRefused):
    """A voice that this engine makes from a recording, and what it needs of that is not there."""

    code = "voice_not_recorded"


class UnsupportedLanguage(RequestRefused):
    """The backend does not speak it, or what it needs is not installed."""

    code = "unsupported_language"

    def __init__(self, message: str) -> None:
        super().__init__(message, param="language")


class CloningNotSupported(RequestRefused):
    """A voice sample was sent to a backend that cannot clone."""

    code = "cloning_not_supported"


class BadSample(RequestRefused):
    """No recording, or one that no voice can be made from; the message says what would do."""

    code = "invalid_sample"


class RateLimited(SpeechError):
    """More requests than one client may make."""

    status, type, code = 429, "requests", "rate_limit_exceeded"  # OpenAI's own words

    def __init__(self, per_minute: int, *, retry_after_s: float) -> None:
        super().__init__(f"Rate limit reached: {per_minute} requests a minute (RATE_LIMIT_RPM).")
        self.retry_after_s = max(MIN_RETRY_S, retry_after_s)


class TooLarge(SpeechError):
    """Text or body beyond a limit that the message names."""

    status, type, code = 413, "invalid_request_error", "too_large"


class TooSlow(SpeechError):
    """The client did not send its whole request."""

    status, type, code = 408, "invalid_request_error", "request_timeout"


class Unavailable(SpeechError):
    """No engine could be started, or the server is stopping."""

    status, type, code = 503, "server_error", "unavailable"

    def __init__(self, message: str, retry_after_s: float = 5.0) -> None:
        super().__init__(message)
        self.retry_after_s = max(MIN_RETRY_S, retry_after_s)


class Overloaded(Unavailable):
    """No room for this job now."""

    type, code = "overloaded_error", "overloaded"


class DeadlineExceeded(SpeechError):
    """The job was admitted and did not make it in time."""

    status, code = 504, "deadline_exceeded"


class SynthesisFailed(SpeechError):
    """The engine failed, or died with audio already out."""

    code = "synthesis_failed"


def place_of(error: BaseException) -> str:
    """Kind and place of an exception, for a log. Not its message: that may hold a user's text."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"
    return f"{type(error).__name__} at {where}"
