import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.speech import Utterance
from text.plan import plan

PROSE = "On a bright day the fox, who had been waiting since 9:30, jumped over 3 dogs. It was **late**, and he left. "


def planned(text: str, language: str = "en") -> tuple[Utterance, ...]:
    return plan(text, language=language, limit=200, first=20)


def test_utterances_are_numbered_spoken_and_paused():
    assert planned("# Title\n\nIt costs $5, they say. We left at 9:30PM.") == (
        Utterance(0, "Title", "en", 0.6),
        Utterance(1, "It costs five dollars, they say. We left at nine thirty P.M.", "en", 0.0),
    )


@pytest.mark.parametrize(
    "text",
    ["", "  ", "\n\n", "***", "...", "—", "🎉👍", "```\ncode\n```", "\u200b\ufeff", "--\n***", "\ud800", "<br>"],
)
def test_nothing_to_say_is_no_utterance(text):
    assert planned(text) == ()


@pytest.mark.parametrize("text", ["https://example.com", "5", "a", "中", "`x`", "50%", "#1"])
def test_anything_that_can_be_said_is_an_utterance(text):
    assert len(planned(text)) == 1


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Z", "C", "M"]), max_size=400))
@settings(deadline=None)
def test_any_text_is_planned_within_the_limits(text):
    utterances = plan(text, language="en", limit=100, first=20)
    assert [utterance.index for utterance in utterances] == list(range(len(utterances)))
    assert all(0 < len(utterance.text) <= 100 for utterance in utterances)
    assert not utterances or utterances[-1].pause_after_s == 0


@pytest.mark.parametrize("language", ["en", "es", "zh"])
def test_a_long_text_is_planned_in_a_moment(language):
    text = (PROSE * 200)[:20_000]
    started = time.process_time()
    assert len(planned(text, language)) > 100
    assert time.process_time() - started < 0.3  # 0.05 s where nothing else runs


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize(
    "unit",
    [
        *("((((", "a@a@a@", "1.1.1.1", "http://http://", "****", "[[[[", "....", "<a <a", "<!--", "`a", "# #", "|  x"),
        *("- - -x", "1-", "1/", "a_", "A A ", "$1", "1:1", "~~", "&a", "12,345", " ", "\t", "\n", "a.b.", "@a", "#a"),
        *(
            "+1 ",
            "1 ",
            "Dr.",
            "I",
            "'\"",
            "[a](",
            "![",
            "[a][",
            "0x",
            "\u0301",
            "<script>",
            "\\*",
            "1%-",
            "www.",
            "XVI",
        ),
    ],
)
def test_no_repetition_takes_long(unit, language):
    text = (unit * 32_768)[:32_768] + "!"
    started = time.process_time()
    planned(text, language)
    assert time.process_time() - started < 0.6  # 0.3 s where nothing else runs
