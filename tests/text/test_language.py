import pytest

from text.language import canonical, detect

SPOKEN = ("en", "es", "fr", "it", "pt", "zh", "ja", "hi")
EUROPEAN = (*SPOKEN, "de", "nl", "pl", "ko", "ru")


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("zh", "zh"),
        ("zh-cn", "zh"),
        ("zh-CN", "zh"),
        ("zh_Hant_TW", "zh"),
        ("cmn", "zh"),
        ("cmn-Hans-CN", "zh"),
        ("en-US", "en"),
        ("en_us", "en"),
        (" EN ", "en"),
        ("English", "en"),
        ("PORTUGUESE", "pt"),
        ("pt-br", "pt"),
        ("jpn", "ja"),
        ("es-419", "es"),
        ("fr-FR", "fr"),
        ("Mandarin", "zh"),
        ("ru", "ru"),
    ],
)
def test_a_tag_is_an_iso_code_in_lower_case(tag, code):
    assert canonical(tag) == code


@pytest.mark.parametrize(
    "tag", ["", " ", "e", "klingon please", "en-", "-", "english-us-x!", "xqz", "12", "中文", "en\nx"]
)
def test_what_is_no_tag_is_refused_without_being_repeated(tag):
    with pytest.raises(ValueError, match="such as en, en-US or zh-CN") as refused:
        canonical(tag)
    assert len(tag.strip()) < 4 or tag not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        pytest.param("The weather is nice and we are going to the park.", "en", id="english"),
        pytest.param("Can you tell me where the station is?", "en", id="an english question"),
        pytest.param("It's a pity that they don't know it.", "en", id="english with apostrophes"),
        pytest.param("El perro de mi vecino no para de ladrar por la noche.", "es", id="spanish"),
        pytest.param("¿Dónde está la biblioteca?", "es", id="a spanish question"),
        pytest.param("Hola, buenos días, ¿cómo estás?", "es", id="a spanish greeting"),
        pytest.param("Mañana vamos a la playa con los niños.", "es", id="spanish by its letters"),
        pytest.param("Le chat est sur la table et il ne bouge pas.", "fr", id="french"),
        pytest.param("Bonjour, je voudrais une baguette et des croissants.", "fr", id="french in a shop"),
        pytest.param("C’est très gentil, merci.", "fr", id="french with a curly apostrophe"),
        pytest.param("Où est la gare, s'il vous plaît ?", "fr", id="a french question"),
        pytest.param("Il gatto è sul tavolo e non si muove.", "it", id="italian"),
        pytest.param("Buongiorno, come sta? Grazie, molto bene.", "it", id="an italian greeting"),
        pytest.param("Perché non andiamo al mare questa sera?", "it", id="an italian question"),
        pytest.param("O gato está em cima da mesa e não se mexe.", "pt", id="portuguese"),
        pytest.param("Bom dia, você pode me ajudar com isso?", "pt", id="a portuguese question"),
        pytest.param("Obrigado, eu também não sei o que é isso.", "pt", id="portuguese thanks"),
        pytest.param("Der Hund ist im Garten und die Katze schläft.", "de", id="german"),
        pytest.param("Guten Tag, ich habe eine Frage für Sie.", "de", id="a german question"),
        pytest.param("Ik heb het niet op de tafel gezien, maar ook niet in een kast.", "nl", id="dutch"),
        pytest.param("Dzień dobry, czy to jest dla mnie?", "pl", id="polish"),
        pytest.param("今天天气很好，我们去公园散步吧。", "zh", id="chinese"),
        pytest.param("请打开 GitHub 的 pull request 页面", "zh", id="chinese with english terms"),
        pytest.param("我用 Python 写了一个 Web server，部署在 Kubernetes 上。", "zh", id="chinese of a programmer"),
        pytest.param("這是繁體中文的句子。", "zh", id="traditional chinese"),
        pytest.param("2024年3月5日", "zh", id="a chinese date"),
        pytest.param("你好", "zh", id="two characters"),
        pytest.param("我最喜欢的品牌是の，大家都知道这个日本的品牌。", "zh", id="chinese with one kana"),
        pytest.param("今日はいい天気ですね。", "ja", id="japanese"),
        pytest.param("東京タワーへ行きました。", "ja", id="japanese with kanji"),
        pytest.param("GitHubでpull requestを開いてください", "ja", id="japanese with english terms"),
        pytest.param("カタカナ", "ja", id="katakana alone"),
        pytest.param("आज मौसम बहुत अच्छा है।", "hi", id="hindi"),
        pytest.param("मुझे Python सीखना है", "hi", id="hindi with an english term"),
        pytest.param("오늘 날씨가 좋네요.", "ko", id="korean"),
        pytest.param("Сегодня хорошая погода.", "ru", id="russian"),
        pytest.param(
            "The Japanese word 木漏れ日 means sunlight that filters through the leaves of the trees.",
            "en",
            id="a japanese quotation in english",
        ),
        pytest.param(
            "The Chinese characters 你好 mean hello, and they are among the first that students learn.",
            "en",
            id="a chinese quotation in english",
        ),
        pytest.param(
            "See https://elperro.es/la/casa/de/los for the details of it.", "en", id="addresses have no language"
        ),
        pytest.param("La resistencia es de 5 kΩ y la de los otros es de 3 kΩ.", "es", id="a greek sign in spanish"),
    ],
)
def test_a_text_tells_its_language(text, language):
    assert detect(text, languages=EUROPEAN, default="en") == language


@pytest.mark.parametrize("default", SPOKEN)
@pytest.mark.parametrize(
    "text", ["", "OK", "Taxi", "12345", "🎉", "Madrid 2024", "\ud800", "!!!", "a<b e c<d", "e.g. No. 5, a"]
)
def test_what_does_not_tell_is_of_the_default_language(text, default):
    assert detect(text, languages=SPOKEN, default=default) == default


@pytest.mark.parametrize(
    ("text", "language"),
    [
        pytest.param("Сегодня хорошая погода.", "ru", id="cyrillic"),
        pytest.param("Сьогодні її день.", "uk", id="ukrainian letters"),
        pytest.param("الطقس جميل اليوم", "ar", id="arabic"),
        pytest.param("오늘 날씨가 좋네요.", "ko", id="hangul"),
        pytest.param("Ο καιρός είναι καλός σήμερα.", "el", id="greek"),
        pytest.param("מזג האוויר יפה היום", "he", id="hebrew"),
        pytest.param("วันนี้อากาศดี", "th", id="thai"),
        pytest.param("今天天气很好", "zh", id="han"),
    ],
)
def test_a_foreign_script_is_told_even_where_nobody_speaks_it(text, language):
    assert detect(text, languages=("en", "es"), default="en") == language


def test_a_latin_language_that_nobody_speaks_is_not_answered():
    assert detect("Der Hund ist im Garten und die Katze schläft.", languages=SPOKEN, default="fr") != "de"


def test_only_the_start_of_a_long_text_is_looked_at():
    assert detect("The cat is on the mat. " * 400 + "今天天气很好" * 4000, languages=SPOKEN, default="es") == "en"
