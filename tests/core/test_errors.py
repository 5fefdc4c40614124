"""The tree as it is drawn, and what its members keep to themselves."""

import re
from collections.abc import Iterator

import pytest

from core import errors
from core.errors import Overloaded, SpeechError, Unavailable, UnknownVoice, UnsupportedLanguage, place_of


def tree(kind: type[SpeechError], depth: int = 0) -> Iterator[tuple[int, str, int]]:
    """Depth, name and status of every error, in the order of the file."""
    yield depth, kind.__name__, kind.status
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from tree(child, depth + 1)


def test_the_drawing_shows_the_tree_that_there_is() -> None:
    drawn = re.findall(r"^([│├└─ ]*)(\w+)(?: \((\d+)\)| {2,}\S)", errors.__doc__ or "", re.MULTILINE)
    real = list(tree(SpeechError))
    assert [(len(lead) // 4, name) for lead, name, _ in drawn] == [(depth, name) for depth, name, _ in real]
    assert [int(status or real[i][2]) for i, (*_, status) in enumerate(drawn)] == [status for *_, status in real]


@pytest.mark.parametrize("kind", [name for _, name, _ in tree(SpeechError)])
def test_the_class_fixes_what_a_program_reads(kind: str) -> None:
    error = getattr(errors, kind)
    is_client_s = 400 <= error.status < 500
    assert (error.type in ("invalid_request_error", "requests")) is is_client_s
    assert error.status in (400, 401, 403, 404, 408, 413, 422, 429, 500, 503, 504)
    assert error.code.replace("_", "").islower()


def test_no_two_errors_of_different_status_share_a_code() -> None:
    codes = [getattr(errors, name).code for _, name, _ in tree(SpeechError)]
    assert len(codes) == len(set(codes))


def test_an_unknown_voice_is_told_what_there_is() -> None:
    error = UnknownVoice(("alloy", "nova"))
    assert (error.message, error.param) == ("No such voice. Available voices: alloy, nova.", "voice")
    assert str(error) == error.message
    assert UnsupportedLanguage("No French here.").param == "language"


@pytest.mark.parametrize(("asked", "told"), [(-3, 0.5), (0, 0.5), (1, 1), (90, 90)])
def test_nobody_is_asked_to_come_again_at_once(asked: float, told: float) -> None:
    for kind in (Unavailable, Overloaded):
        assert kind("No.", retry_after_s=asked).retry_after_s == told
    assert SpeechError("No.").retry_after_s is None


def test_the_place_of_an_error_is_its_innermost_line_without_a_word_of_it() -> None:
    with pytest.raises(ValueError, match="literal") as caught:
        (lambda text: int(text))("the user's words")
    assert re.fullmatch(rf"ValueError at {re.escape(__file__)}:\d+", place_of(caught.value))
    assert place_of(ValueError("the user's words")) == "ValueError at ?"
