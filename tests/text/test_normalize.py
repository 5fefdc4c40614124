"""What holds for every language, and the languages that only numbers, money, measures and times are written out for."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from text.normalize import spoken

LANGUAGES = ("en", "es", "fr", "it", "pt", "hi", "de", "zh", "ja")
WRITTEN_OUT = ("en", "es", "fr", "it", "pt")

NOISE = st.text(alphabet=st.one_of(st.sampled_from("0123456789.,:/-–%$€°²½#@&+=*()'\" \nIVXaAmMkK"), st.characters()))


@pytest.mark.parametrize(
    ("language", "written", "said"),
    [
        pytest.param("fr", "Il est 9h30.", "Il est neuf heures et demie.", id="french half past"),
        pytest.param("fr", "à 14:05", "à quatorze heures cinq", id="french afternoon"),
        pytest.param("fr", "le 3/4/2025", "le trois avril deux mille vingt-cinq", id="a french date"),
        pytest.param("fr", "le 1er mai", "le premier mai", id="the french first"),
        pytest.param("fr", "12,50 €", "douze euros et cinquante centimes", id="french money"),
        pytest.param("fr", "1 234,5", "mille deux cent trente-quatre virgule cinq", id="french thousands"),
        pytest.param("fr", "25 %", "vingt-cinq pour cent", id="french percent"),
        pytest.param("fr", "40–60 °C", "quarante à soixante degrés Celsius", id="french degrees"),
        pytest.param("fr", "XVIe siècle", "seizième siècle", id="a french century"),
        pytest.param("fr", "Louis XIV", "Louis quatorze", id="a french king"),
        pytest.param("it", "alle 9:30", "alle nove e mezza", id="italian half past"),
        pytest.param("it", "il 3/4/2025", "il tre aprile duemilaventicinque", id="an italian date"),
        pytest.param("it", "1 €", "un euro", id="one euro in italian"),
        pytest.param("it", "$5,3 milioni", "cinque virgola tre milioni di dollari", id="italian millions"),
        pytest.param("it", "100 km/h", "cento chilometri all'ora", id="an italian speed"),
        pytest.param("it", "XVI secolo", "sedicesimo secolo", id="an italian century"),
        pytest.param("pt", "às 9:30", "às nove e meia", id="portuguese half past"),
        pytest.param("pt", "R$ 12,50", "doze reais e cinquenta centavos", id="reais"),
        pytest.param("pt", "3/4/2025", "três de abril de dois mil e vinte e cinco", id="a portuguese date"),
        pytest.param("pt", "2 pessoas", "duas pessoas", id="portuguese gender"),
        pytest.param("pt", "5 kg", "cinco quilos", id="portuguese measures"),
        pytest.param("hi", "25%", "25 प्रतिशत", id="hindi percent"),
        pytest.param("hi", "₹1,25,000", "125000 रुपये", id="rupees with their grouping"),
        pytest.param("hi", "5 kg", "5 किलोग्राम", id="hindi measures"),
        pytest.param("de", "Um 9:30 „Uhr“", 'Um 9:30 "Uhr"', id="another language keeps its digits"),
    ],
)
def test_what_is_written_is_said(language, written, said):
    assert spoken(written, language) == said


@pytest.mark.parametrize("language", WRITTEN_OUT)
@given(text=NOISE)
@settings(max_examples=150, deadline=None)
def test_no_digit_of_any_text_is_left(language, text):
    assert not any("0" <= char <= "9" for char in spoken(text, language))


@pytest.mark.parametrize("language", LANGUAGES)
@given(text=st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Z", "C", "M"])))
@settings(max_examples=50, deadline=None)
def test_no_text_at_all_raises(language, text):
    spoken(text, language)


@pytest.mark.parametrize("language", WRITTEN_OUT)
@given(number=st.integers(min_value=0, max_value=10**18 - 1))
@settings(max_examples=50, deadline=None)
def test_every_number_has_words(language, number):
    assert spoken(str(number), language).replace(" ", "").replace("-", "").isalpha()


@pytest.mark.parametrize("language", LANGUAGES)
def test_line_ends_stay(language):
    assert spoken("one\ntwo\n" * 200, language).count("\n") == 399


@pytest.mark.parametrize("language", WRITTEN_OUT)
def test_ten_thousand_digits_take_less_than_a_tenth_of_a_second(language):
    started = time.process_time()
    said = spoken("7" * 10_000, language)
    assert time.process_time() - started < 0.1
    assert len(said.split()) == 10_000
