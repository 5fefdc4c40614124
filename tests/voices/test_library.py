"""Names are forgiving in case and spaces, and nothing else is a voice."""

import pytest

from core.errors import UnknownVoice
from core.speech import Voice
from voices.library import OPENAI_NAMES, Library

OWN = Voice("af_heart", "Heart", "en")


def test_openai_s_thirteen_names_are_there_and_the_default_comes_first():
    names = [voice.id for voice in Library("Nova").all]
    assert names[0] == "nova"
    assert sorted(names) == sorted(OPENAI_NAMES)
    assert len(names) == 13


@pytest.mark.parametrize("name", ["alloy", "ALLOY", " alloy ", "\tAlloy\n", None])
def test_a_name_is_found_whatever_its_case_and_spaces(name):
    assert Library("alloy").resolve(name).id == "alloy"


@pytest.mark.parametrize("name", ["anna-bell", "Anna Bell", " ANNA BELL "])
def test_a_voice_answers_to_the_name_that_it_is_listed_with(name):
    bell = Voice("anna-bell", "Anna Bell")
    assert Library("alloy").with_more([bell]).resolve(name) == bell
    assert Library("Anna Bell").with_more([bell]).resolve(None) == bell


def test_an_engine_s_voice_is_found_however_its_engine_spells_it():
    assert (
        Library("alloy").with_more([Voice("Claribel Dervla", "Claribel")]).resolve("claribel dervla").name == "Claribel"
    )


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        ".",
        "..",
        "../../etc/passwd",
        "/etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "..\\..\\windows\\win.ini",
        "alloy\0",
        "con",
        "NUL",
        "nobody",
        "x" * 5000,
        "\ud800",
    ],
    ids=ascii,
)
def test_anything_else_is_unknown_and_is_not_repeated(name):
    with pytest.raises(UnknownVoice) as caught:
        Library("alloy").resolve(name)
    assert caught.value.param == "voice"
    assert "Available voices: alloy," in caught.value.message
    assert not name.strip(". ") or name not in caught.value.message


def test_a_backend_s_own_voices_come_behind_and_never_replace_a_name():
    library = Library("af_heart").with_more([OWN, Voice("alloy", "Other", "fr")])
    assert library.resolve(None) == OWN
    assert library.all[0] == OWN
    assert library.resolve("alloy").language is None


def test_a_default_that_does_not_exist_is_the_operator_s_to_mend():
    with pytest.raises(UnknownVoice, match=r"^DEFAULT_VOICE of this server names no voice"):
        Library("nobody").resolve(None)
