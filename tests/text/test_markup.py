import pytest
from hypothesis import given
from hypothesis import strategies as st

from text.markup import strip_markup


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        pytest.param("This is **bold** text", "This is bold text", id="bold"),
        pytest.param("This is __bold__ text", "This is bold text", id="bold with underscores"),
        pytest.param("*one* and _two_", "one and two", id="italic"),
        pytest.param("***both***", "both", id="bold and italic"),
        pytest.param("~~gone~~ stays", "gone stays", id="struck through"),
        pytest.param("un**believ**able", "unbelievable", id="bold within a word"),
        pytest.param(
            "[Bob]: Hello.\n[Alice]: Hi.", "[Bob]: Hello.\n[Alice]: Hi.", id="a transcript is no list of links"
        ),
        pytest.param("[1]: https://example.com\nText", "Text", id="a link's definition"),
        pytest.param("In HTML the <script> element loads code.", "In HTML the element loads code.", id="prose on HTML"),
        pytest.param("a<script>alert(1)</script>b", "a b", id="a script"),
        pytest.param("a <!-- b and c", "a <!-- b and c", id="a comment without an end"),
        pytest.param("```Hello my friends, this is prose.", "Hello my friends, this is prose.", id="no fence"),
        pytest.param("```python title=x\ncode\n```\nText", "Text", id="a fence with attributes"),
        pytest.param("H₂O and y⁴", "H2O and y^4", id="signs above and below the line"),
        pytest.param("5㎏ ⓐ", "5kg a", id="signs that are other signs"),
        pytest.param("5℃, №5, Foo™", "5℃, №5, Foo™", id="signs that the language names"),
        pytest.param("[2][3]", "[2][3]", id="notes"),
        pytest.param("# Title", "Title", id="a heading"),
        pytest.param("### Title ###", "Title", id="a closed heading"),
        pytest.param("Title\n=====\nText", "Title\nText", id="an underlined heading"),
        pytest.param("# Title\nText", "Title\nText", id="a heading ends its line"),
        pytest.param("- one\n- two", "one\ntwo", id="a list"),
        pytest.param("* one\n+ two\n• three", "one\ntwo\nthree", id="other bullets"),
        pytest.param("1. one\n2) two", "one\ntwo", id="a numbered list"),
        pytest.param("- [ ] open\n- [x] done", "open\ndone", id="tasks"),
        pytest.param("  - nested\n    - deeper", "nested\ndeeper", id="a nested list"),
        pytest.param("See [the page](https://example.com/a_(b)).", "See the page.", id="a link"),
        pytest.param("See [the page][1].\n\n[1]: https://example.com", "See the page.", id="a reference"),
        pytest.param("![a cat](cat.png)", "a cat", id="an image"),
        pytest.param("<https://example.com>", "https://example.com", id="an address in brackets"),
        pytest.param("As said[^1] before", "As said before", id="a footnote"),
        pytest.param("| a | b |\n|---|:-:|\n| 1 | 2 |", "a, b\n1, 2", id="a table"),
        pytest.param("> quoted", "quoted", id="a quotation"),
        pytest.param("above\n\n---\n\nbelow", "above\nbelow", id="a rule"),
        pytest.param("Run `make test` now", "Run make test now", id="inline code"),
        pytest.param("Before\n```python\nprint(1)\n```\nAfter", "Before\nAfter", id="a code fence"),
        pytest.param("Before\n~~~\ncode\n~~~\nAfter", "Before\nAfter", id="a code fence of tildes"),
        pytest.param("```\ncode\n```", "", id="nothing but code"),
        pytest.param("```\nnever closed", "", id="a code fence without an end"),
        pytest.param("<b>bold</b> and <i class='x'>italic</i>", "bold and italic", id="tags"),
        pytest.param("one<br>two<br/>three", "one\ntwo\nthree", id="line breaks"),
        pytest.param("<p>one</p><p>two</p>", "one\ntwo", id="paragraph tags"),
        pytest.param("a<!-- hidden -->b", "a b", id="a comment"),
        pytest.param("<script>alert(1)</script>said", "said", id="a script"),
        pytest.param("salt &amp; pepper", "salt & pepper", id="an entity"),
        pytest.param("AT&T", "AT&T", id="an ampersand that is no entity"),
        pytest.param("a < b and c > d", "a < b and c > d", id="comparisons are no tags"),
        pytest.param("Nice 🎉👍🏽 👩‍👩‍👧 day ❤️", "Nice day", id="emoji"),
        pytest.param("🇪🇸 1️⃣", "1", id="flags and keycaps"),
        pytest.param("zero\u200bwidth so\u00adft \ufeffmark", "zerowidth soft mark", id="characters without width"),
        pytest.param("a\x00b\x07c\td", "a b c d", id="control characters"),
        pytest.param("cafe\u0301", "café", id="composed characters"),
        pytest.param("ＡＢＣ１２３％", "ABC123%", id="full-width Latin"),
        pytest.param("你好，世界。", "你好，世界。", id="full-width punctuation stays"),
        pytest.param("snake_case_name and 2*3*4", "snake_case_name and 2*3*4", id="signs that mean something"),
        pytest.param("a lone* star", "a lone star", id="an unpaired star"),
        pytest.param(r"\*not bold\* but snake\_case", "not bold but snake_case", id="escaped stars"),
        pytest.param("****", "", id="stars alone"),
        pytest.param("🎉", "", id="emoji alone"),
        pytest.param("— ... !!!", "", id="marks alone"),
        pytest.param("5°C, 10€, ½, §3, x²", "5°C, 10€, ½, §3, x²", id="signs that are said"),
        pytest.param("one\r\ntwo\rthree", "one\ntwo\nthree", id="line ends of other systems"),
        pytest.param(
            "A paragraph that somebody has wrapped at seventy columns or so\nand that goes on here.",
            "A paragraph that somebody has wrapped at seventy columns or so and that goes on here.",
            id="a wrapped paragraph is one",
        ),
        pytest.param(
            "他说今天的天气真的非常好所以我们决定一起去公园里散步然后再去\n吃饭。",
            "他说今天的天气真的非常好所以我们决定一起去公园里散步然后再去吃饭。",
            id="a wrapped chinese paragraph has no space in it",
        ),
    ],
)
def test_what_is_for_eyes_alone_is_dropped(marked, plain):
    assert strip_markup(marked) == plain


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Z", "C", "M"])))
def test_any_text_becomes_clean_lines(text):
    plain = strip_markup(text)
    assert all(line.strip() == line and any(map(str.isalnum, line)) for line in plain.split("\n") if plain)


@given(st.text(alphabet=st.sampled_from("`*_[]()<>#-|~\\&!:>ab1 \n"), max_size=200))
def test_any_markup_ends(text):
    strip_markup(text)
