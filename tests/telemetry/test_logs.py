"""What is written into the log, and that each event is one line of it."""

import logging

import pytest

from core.events import Events
from telemetry.logs import LogEvents


def told(caplog: pytest.LogCaptureFixture, text: str) -> str:
    events: Events = LogEvents(log_text=True)
    with caplog.at_level(logging.INFO, "uttera_tts"):
        events.job_ended(
            outcome="done", text=text, cache="", format="", chars=0, audio_s=0, first_audio_s=None, wall_s=0
        )
    return caplog.messages[-1]


@pytest.mark.parametrize(
    "char", ["\n", "\r", "\t", "\0", "\x1b", "\x7f", "\u0085", "\u009b", "\u2028", "\u2029", "\ud800"]
)
def test_an_event_is_one_line_for_whoever_takes_lines_apart(caplog, char):
    line = told(caplog, f"one{char}two")
    assert line.isprintable()
    assert "one\\" in line


@pytest.mark.parametrize(
    ("text", "shown"), [("one", "text=one"), ("one two", 'text="one two"'), ("你好 é", 'text="你好 é"')]
)
def test_a_text_that_can_be_read_is_shown_as_it_is(caplog, text, shown):
    assert shown in told(caplog, text)
