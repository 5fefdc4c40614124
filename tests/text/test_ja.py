import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from text.normalize.ja import normalize_ja

NUMBERS = [
    pytest.param("0", "零", id="zero"),
    pytest.param("10と12", "十と十二", id="ten is no one-ten"),
    pytest.param("110", "百十", id="nor is a hundred one hundred"),
    pytest.param("10000", "一万", id="but ten thousand is one"),
    pytest.param("1001", "千一", id="a gap is not said"),
    pytest.param("1,234,567", "百二十三万四千五百六十七", id="commas"),
    pytest.param("1万2,000円", "一万二千円", id="a scale in Han"),
    pytest.param("1800円", "千ハッピャク円", id="eight hundred is also part of a name"),
    pytest.param("3.14", "三点イチヨン", id="decimals"),
    pytest.param("12.5", "十二点五", id="one decimal"),
    pytest.param(".5", "零点五", id="a decimal without a whole"),
    pytest.param("気温は-5度", "気温はマイナス五度", id="a negative number"),
    pytest.param("−3", "マイナス三", id="a minus sign"),
    pytest.param("007", "ゼロゼロナナ", id="zeros in front make a code"),
    pytest.param("８００円", "ハッピャク円", id="full-width digits"),
    pytest.param("①まず②次", "一まず二次", id="circled digits"),
    pytest.param("第Ⅲ章", "第三章", id="a Roman numeral of its own code point"),
    pytest.param(
        "123456789012345678", "十二京三千四百五十六兆七千ハッピャク九十億千二百三十四万五千六百七十八", id="eighteen"
    ),
    pytest.param(
        "12345678901234567890",
        "イチニーサンヨン、ゴーロクナナハチ、キューゼロイチニー、サンヨンゴーロク、ナナハチキューゼロ",
        id="a long run",
    ),
    pytest.param("1人、2日、3本、20歳", "一人、二日、三本、二十歳", id="counters are left to the reader"),
    pytest.param("2、3日", "二、三日", id="two or three"),
]

DATES = [
    pytest.param("2025年12月1日", "二千二十五年十二月一日", id="a date"),
    pytest.param("2025/12/01", "二千二十五年十二月一日", id="with slashes"),
    pytest.param("2025-12-01", "二千二十五年十二月一日", id="with dashes"),
    pytest.param("2025.12.1", "二千二十五年十二月一日", id="with dots"),
    pytest.param("2025/12", "二千二十五年十二月", id="a month"),
    pytest.param("12/1(月)に", "十二月一日、月曜日、に", id="with the day of the week"),
    pytest.param("12月24日(水)", "十二月二十四日、水曜日、", id="in Han with the day of the week"),
    pytest.param("1-5月", "一から五月", id="months from to"),
]

TIMES = [
    pytest.param("9:30", "九時三ジュップン", id="half past"),
    pytest.param("9:00", "九時", id="a full hour"),
    pytest.param("9:05", "九時ゴフン", id="five past"),
    pytest.param("２１：１５", "二十一時十ゴフン", id="full-width"),
    pytest.param("21:15:30", "二十一時十ゴフン三十秒", id="seconds"),
    pytest.param("3:05 PM", "午後三時ゴフン", id="PM"),
    pytest.param("9:00〜17:00", "九時から十七時", id="from to"),
    pytest.param("あと10分です", "あとジュップンです", id="ten minutes are not enough"),
    pytest.param("2分、110分、100分", "ニフン、百ジュップン、百分", id="minutes"),
    pytest.param("3分の1、10分割", "三分の一、十分割", id="parts are no minutes"),
    pytest.param("3:2", "三対二", id="a score"),
]

AMOUNTS = [
    pytest.param("￥1,980", "千九百八十円", id="yen"),
    pytest.param("$5.50", "五点五ドル", id="dollars"),
    pytest.param("$5 million", "五百万ドル", id="millions"),
    pytest.param("100-200円", "百から二百円", id="from to"),
    pytest.param("50％", "五十パーセント", id="a share"),
    pytest.param("10〜20%", "十から二十パーセント", id="shares from to"),
    pytest.param("5kg、16GB、-5℃", "五キログラム、十六ギガバイト、マイナス五度", id="units"),
    pytest.param("5㌔", "五キロ", id="a unit in one sign"),
    pytest.param("時速60km/h", "時速六十キロメートル", id="a speed that is said once"),
    pytest.param("3/4と1 1/2", "四分の三と一と二分の一", id="fractions"),
    pytest.param("½", "二分の一", id="a fraction in one sign"),
    pytest.param("5+3=8", "五プラス三イコール八", id="a sum"),
    pytest.param("3-1=2", "三マイナス一イコール二", id="a difference"),
    pytest.param("3×4÷2", "三かける四割る二", id="a product"),
]

CODES = [
    pytest.param("03-1234-5678", "ゼロサン、イチニーサンヨン、ゴーロクナナハチ", id="a phone"),
    pytest.param("09012345678", "ゼロキューゼロイチ、ニーサンヨンゴー、ロクナナハチ", id="a phone in one run"),
    pytest.param("+81 90-1234-5678", "プラスハチイチ、キューゼロ、イチニーサンヨン、ゴーロクナナハチ", id="abroad"),
    pytest.param("〒100-0001", "郵便番号、イチゼロゼロ、ゼロゼロゼロイチ", id="a letter box"),
    pytest.param("101号室", "イチゼロイチ号室", id="a room"),
    pytest.param("暗証番号は1234です", "暗証番号はイチニーサンヨンです", id="a secret"),
    pytest.param("v1.2.3", "バージョン 一点二点三", id="a version"),
    pytest.param("192.168.0.1", "イチキューニードットイチロクハチドットゼロドットイチ", id="an address of a machine"),
    pytest.param("test@example.comへ", "test アットマーク example ドット comへ", id="a mail address"),
    pytest.param("https://example.com/jaを", "example ドット com スラッシュ jaを", id="a URL"),
    pytest.param("#日本", "ハッシュタグ日本", id="a hashtag"),
    pytest.param("#1", "ナンバー一", id="number one"),
    pytest.param("GPT-4とCOVID-19", "GPT 四とCOVID 十九", id="a hyphen is no minus"),
    pytest.param("A4、Aさん、X線", "エー四、エーさん、エックス線", id="letters by their names"),
    pytest.param("3Dと5G", "スリーディーとファイブジー", id="read in English"),
    pytest.param("R&D", "R and D", id="and between letters"),
    pytest.param("I love you", "I love you", id="English stays"),
    pytest.param("東京〜大阪", "東京から大阪", id="a wave between places"),
    pytest.param("すごい〜", "すごいー", id="a wave that draws a sound out"),
]


@pytest.mark.parametrize(("written", "said"), NUMBERS + DATES + TIMES + AMOUNTS + CODES)
def test_what_is_written_is_said(written, said):
    assert normalize_ja(written) == said


@given(
    st.text(
        alphabet=st.one_of(st.sampled_from("0123456789.,:/-–~〜%¥$°²½#@&+=*年月日時分円のは（）①Ⅳkm "), st.characters())
    )
)
@settings(max_examples=300, deadline=None)
def test_no_digit_of_any_text_is_left(text):
    assert not re.search("[0-9]", normalize_ja(text))


@given(number=st.integers(min_value=0, max_value=10**18 - 1))
@settings(max_examples=200, deadline=None)
def test_a_number_can_be_read_back(number):
    assert _value(normalize_ja(str(number)).replace("ハッピャク", "八百")) == number


def _value(said: str) -> int:
    scales = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "億": 10**8, "兆": 10**12, "京": 10**16}
    total = group = digit = 0
    for sign in said:
        scale = scales.get(sign, 0)
        if not scale:
            digit = "零一二三四五六七八九".index(sign)
        elif scale < 10**4:
            group, digit = group + (digit or 1) * scale, 0
        else:
            total, group, digit = total + (group + digit) * scale, 0, 0
    return total + group + digit


@pytest.mark.parametrize("text", ["7" * 10_000, "1-" * 5_000, "9:" * 5_000, "〜" * 10_000, "1,234," * 2_000])
def test_ten_thousand_signs_take_little_time(text):
    started = time.process_time()
    normalize_ja(text)
    assert time.process_time() - started < 0.1
