import pytest
from hypothesis import given
from hypothesis import strategies as st

from text.pauses import pause_after
from text.split import split

TEXT = st.text(alphabet=st.one_of(st.sampled_from("ab .,!?\n。，'\"e\u0301界"), st.characters()), max_size=600)


def cut(text: str, *, language: str = "en", limit: int = 200, first: int = 20) -> list[str]:
    return split(text, language=language, limit=limit, first=first)


@given(TEXT, st.sampled_from(["en", "es", "zh", "ja"]), st.integers(1, 250), st.integers(1, 80))
def test_nothing_is_lost_and_no_piece_is_too_long(text, language, limit, first):
    pieces = split(text, language=language, limit=limit, first=first)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(0 < len(piece) <= limit for piece in pieces)


@pytest.mark.parametrize(
    ("text", "opening"),
    [
        pytest.param("Hello there.", "Hello there.", id="a short text is one piece"),
        pytest.param(
            "Hello, my dear friend. How are you?", "Hello, my dear friend.", id="a short sentence stays whole"
        ),
        pytest.param("Hi. How are you today? Fine.", "Hi. How are you today?", id="a word takes a sentence with it"),
        pytest.param(
            "My name is John, and I would like to tell you a story.",
            "My name is John,",
            id="a long one ends at a comma",
        ),
        pytest.param(
            "The quick brown fox jumped lazily over the dog that was sleeping near the river.",
            "The quick brown fox jumped lazily",
            id="without a comma it ends before a preposition",
        ),
        pytest.param(
            "The quick brown fox lazily jumps because everything is fine at the farm.",
            "The quick brown fox lazily jumps",
            id="it ends before a conjunction",
        ),
        pytest.param(
            "This is a sentence of about fifty characters here.",
            "This is a sentence of about fifty characters here.",
            id="a medium one without a comma stays whole",
        ),
        pytest.param(
            "I would like to know something about you, really.",
            "I would like to know something about you, really.",
            id="no word is left alone",
        ),
    ],
)
def test_the_first_piece_lets_sound_start_early(text, opening):
    assert cut(text)[0] == opening


@given(st.lists(st.sampled_from("the house of cards, and another word that is long. Then".split()), min_size=30))
def test_the_first_two_pieces_are_short(words):
    pieces = cut(" ".join(words))
    assert len(pieces[0]) <= 60
    assert len(pieces[1]) <= 120


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        pytest.param("He met Dr. Smith. Then he left.", ["He met Dr. Smith.", "Then he left."], id="titles"),
        pytest.param("It is 3.5 meters. Really.", ["It is 3.5 meters.", "Really."], id="numbers"),
        pytest.param("J. K. Rowling wrote it. Yes.", ["J. K. Rowling wrote it.", "Yes."], id="initials"),
        pytest.param("We met at 5 P.M. Then we left.", ["We met at 5 P.M.", "Then we left."], id="p.m. may end one"),
        pytest.param("At 5 P.M. today we left. Yes.", ["At 5 P.M. today we left.", "Yes."], id="p.m. may not end one"),
        pytest.param("At 5 P.M. EST it began. Yes.", ["At 5 P.M. EST it began.", "Yes."], id="a time zone goes on"),
        pytest.param("Yes. No. Maybe.", ["Yes.", "No. Maybe."], id="no may be a number"),
        pytest.param('"Really?" he asked. Yes.', ['"Really?" he asked.', "Yes."], id="a question within a sentence"),
        pytest.param("What?! Wait... No!", ["What?!", "Wait...", "No!"], id="several marks"),
        pytest.param("one\ntwo", ["one", "two"], id="line ends"),
        pytest.param("(It is so.) Yes.", ["(It is so.)", "Yes."], id="a closing bracket belongs to its sentence"),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text, sentences):
    assert cut(text, limit=max(map(len, sentences)), first=1000) == sentences


def test_short_neighbours_are_spoken_in_one_breath():
    pieces = cut("This is the first sentence of it. " + "It goes on. " * 30)
    assert all(40 <= len(piece) <= 120 for piece in pieces[1:-1])


def test_nothing_is_merged_across_paragraphs():
    assert cut("One here.\nTwo here.\nThree here.") == ["One here.", "Two here.", "Three here."]


def test_the_last_piece_of_a_long_sentence_is_no_crumb():
    sentence = "word " * 41
    assert min(map(len, cut(sentence, first=1000))) > 30


def test_a_combining_mark_stays_with_its_letter():
    pieces = cut("e\u0301" * 150, limit=75, first=1000)
    assert all(piece.startswith("e") for piece in pieces)


def test_chinese_is_cut_at_its_own_marks():
    text = (
        "今天天气很好，我们去公园散步吧。你好！这是一个很长的句子，里面有很多的内容，我们需要把它切开，然后再说出来。"
    )
    pieces = cut(text, language="zh", limit=50)
    assert pieces[0] == "今天天气很好，"
    assert all(piece[-1] in "，。！" for piece in pieces)


@pytest.mark.parametrize(
    ("longer", "shorter"),
    [
        pytest.param("End.", "Clause,", id="a sentence pauses longer than a clause"),
        pytest.param("结束。", "从句，", id="in chinese too"),
        pytest.param('"End."', "Clause;", id="the mark may be in quotes"),
        pytest.param("Clause:", "cut", id="a clause pauses longer than a cut"),
        pytest.param("Ende?)", "", id="nothing pauses least"),
    ],
)
def test_the_mark_tells_the_pause(longer, shorter):
    assert pause_after(longer, ends_paragraph=False) > pause_after(shorter, ends_paragraph=False)


def test_a_paragraph_pauses_longest():
    assert pause_after("Title", ends_paragraph=True) > pause_after("End.", ends_paragraph=False)
