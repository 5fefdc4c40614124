"""The real model behind the real server, heard by a recogniser that the product knows nothing of."""

import re
import subprocess
import wave
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import cycle, product

import numpy as np
import pytest

from gauges.asr import character_errors, hear, word_errors
from gauges.sound import decode, pitch_hz
from gauges.speaker import embed, similarity
from harness.server import running_server
from voices.library import OPENAI_NAMES

pytestmark = pytest.mark.slow(file_s=300)

SENTENCES = (
    "The meeting starts at nine thirty.",
    "Please bring two copies and a pen.",
    "Our train leaves from platform seven.",
    "It will be cold in the evening.",
    "She bought apples, bread and some cheese.",
    "Turn left and walk to the bridge.",
    "The museum is closed on Mondays.",
    "He has worked here for ten years.",
    "The children play football after school.",
    "You can send me a short message.",
    "A good book is all I need.",
    "The doctor said to drink more water.",
)
SHORT = (
    "Close the door.",
    "Dinner is ready.",
    "He works hard.",
    "I like music.",
    "My train is late.",
    "Open the window.",
    "She found a coin.",
    "The garden looks wonderful.",
    "They play football.",
    "Turn left here.",
    "We need water.",
    "You forgot your umbrella.",
)
TEXT = " ".join(SENTENCES)
TWELVE = " ".join(SHORT)
HALF_A_MINUTE = f"{TEXT} {SENTENCES[0]}"
SENTINELS = "zebra piano lemon tiger rocket violin banana castle dragon window".split()
PARTS = [f"{TEXT[:350].rsplit('.', 1)[0]}. Remember the word {word}." for word in SENTINELS]
LONG = (f"{TEXT} " * 20 + "\n\n".join(PARTS))[-4096:].partition(" ")[2]
"""The most that OpenAI's API takes, with words in it that tell whether all of it is there."""

MODES = ("mp3", "opus", "aac", "flac", "wav", "pcm")

CHINESE = (
    "今天的天气非常好，我们一起去公园散步吧。",
    "请在明天上午九点以前把报告发给我。",
    "他在北京住了十年，现在搬到了上海。",
    "这本书很有意思，我已经看了三遍。",
    "我想喝一杯热咖啡，再吃一块蛋糕。",
)
MIXED = (
    "请打开 Google 的网站，然后登录。",
    "我的电话是 Apple 的，你的呢？",
    "我在用 Windows 电脑写这份报告。",
    "他们的公司在 New York 有一个办公室。",
    "周末我们去看了一部 Disney 的电影。",
)
JAPANESE = (
    "今日はとても天気がいいですね。",
    "明日の会議は午後三時から始まります。",
    "駅の前に新しい喫茶店ができました。",
    "彼は大学で日本の歴史を勉強しています。",
    "すみません、図書館はどこにありますか。",
    "週末は家族と一緒に海へ行きました。",
)


def heard(answer, format: str, language: str = "en") -> str:
    assert answer.status_code == 200, answer.text
    samples, rate = decode(answer.content, format)
    return hear(samples, rate, language)


def heard_all(answers, language: str) -> str:
    """Several answers, one after the other: the recogniser takes as long for a sentence as for half a minute."""
    clips = [decode(answer.content, "mp3") for answer in answers]
    return hear(np.concatenate([samples for samples, _ in clips]), clips[0][1], language)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Its speech is looked at as that of an engine that samples: none of these hundreds of clips is found wrong."""
    with running_server(tmp_path_factory.mktemp("speech"), TTS_BACKEND="guarded_kokoro:make") as running:
        yield running
        assert "quality: " not in running.log.read_text()


@pytest.fixture(scope="module")
def spoken(server):
    """The answer to a text in a format, streamed or not; asked for once."""

    def speak(text, format, is_streamed, **more):
        return server.speak(text, response_format=format, stream=is_streamed, **more)

    return cache(speak)


@pytest.fixture(scope="module")
def chapter(server) -> bytes:
    """The plain route's answer to a long text: mp3 that left while it was made, as fast as it was."""
    return server.speak(LONG, speed=1.6).content


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("format", "is_streamed", "voice"),
    [(*way, voice) for way, voice in zip(product(MODES, (False, True)), OPENAI_NAMES, strict=False)],
)
def test_english_is_understood_in_every_format(spoken, format, is_streamed, voice):
    assert word_errors(TWELVE, heard(spoken(TWELVE, format, is_streamed, voice=voice), format)) <= 0.05


@pytest.mark.timeout(180)
@pytest.mark.parametrize("texts", [CHINESE, MIXED], ids=["Chinese alone", "with English words"])
def test_chinese_is_understood(server, texts):
    # Turn by turn a woman and a man, who speak through different packs.
    answers = [server.speak(text, voice=voice) for text, voice in zip(texts, cycle(["nova", "onyx"]), strict=False)]
    assert character_errors("".join(texts), heard_all(answers, "zh"), "zh") <= 0.15


@pytest.mark.timeout(180)
def test_japanese_is_understood(server):
    answers = [server.speak(text) for text in JAPANESE]
    assert character_errors("".join(JAPANESE), heard_all(answers, "ja"), "ja") <= 0.20


@pytest.mark.timeout(300)
def test_all_thirteen_names_are_told_apart(server):
    names = [voice["id"] for voice in server.http.get("/v1/voices").json()["data"] if voice["wav_path"]]
    assert len(names) == 13

    def voices(text: str) -> dict:
        with ThreadPoolExecutor(2) as both_cores:
            answers = both_cores.map(lambda name: server.speak(text, voice=name, response_format="wav"), names)
        return {name: embed(*decode(answer.content)) for name, answer in zip(names, answers, strict=True)}

    known, asked = voices(SENTENCES[4]), voices(SENTENCES[11])
    nearest = {name: max(names, key=lambda other: similarity(asked[name], known[other])) for name in names}
    assert nearest == {name: name for name in names}


@pytest.mark.timeout(120)
def test_a_streamed_wav_holds_the_same_speech_as_a_whole_one(server, tmp_path):
    text = " ".join(SHORT[-4:])
    whole = server.speak(text, response_format="wav").content
    streamed = server.speak(text, "/v1/audio/speech/stream").content
    assert streamed[:4] == b"RIFF"
    assert streamed.count(b"RIFF") == 1
    assert len(streamed) == pytest.approx(len(whole), rel=0.01)
    (tmp_path / "a.wav").write_bytes(whole)
    with wave.open(str(tmp_path / "a.wav")) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
    assert "umbrella" in hear(*decode(streamed, "wav"))


def ffprobe_seconds(path) -> float:
    command = ["ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def errors_of_a_full_decode(path) -> str:
    command = ["ffmpeg", "-v", "error", "-i", str(path), "-f", "null", "-"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_a_minute_of_mp3_decodes_without_an_error_and_tells_its_length(server, chapter, tmp_path, is_streamed):
    answer = chapter if is_streamed else server.speak(HALF_A_MINUTE, stream=False, speed=0.25).content
    expected = len(decode(answer)[0]) / decode(answer)[1]
    assert expected > 60
    for data, seconds in ((answer, expected), (answer + answer, 2 * expected)):
        path = tmp_path / "a.mp3"
        path.write_bytes(data)
        assert errors_of_a_full_decode(path) == ""
        assert len(decode(data)[0]) / decode(data)[1] == pytest.approx(seconds, rel=0.02)
        assert ffprobe_seconds(path) == pytest.approx(seconds, rel=0.02)
        assert len(re.findall(rb"Xing|Info", data)) <= 1


@pytest.mark.parametrize("text", ["Yes.", "It is a quarter past ten.", "We shall see what tomorrow brings, my friend."])
def test_opus_is_a_whole_ogg_file_of_the_same_length(server, tmp_path, text):
    opus = server.speak(text, response_format="opus").content
    assert opus.startswith(b"OggS")
    assert opus[28:36] == b"OpusHead"
    last_page = opus[opus.rindex(b"OggS") :]
    assert last_page[5] & 4
    (tmp_path / "a.ogg").write_bytes(opus)
    wav, rate = decode(server.speak(text, response_format="wav").content)
    assert ffprobe_seconds(tmp_path / "a.ogg") == pytest.approx(len(wav) / rate, abs=0.06)


@pytest.mark.timeout(400)
def test_four_thousand_characters_are_spoken_to_the_last_word(chapter):
    said = hear(*decode(chapter)).lower()
    places = [said.find(word) for word in SENTINELS]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.timeout(200)
def test_letters_without_any_mark_are_spoken_whole(server):
    text = " ".join(re.sub(r"[^a-z ]", "", sentence.lower()) for sentence in SENTENCES)
    text = f"{text} {text}"[:900].rsplit(" ", 1)[0]
    # Of 159 words six are only written otherwise ("930", "7"), and a listener too hears "pen our" as one word.
    assert word_errors(text, heard(server.speak(text), "mp3")) <= 0.10


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("text", "language"),
    [
        pytest.param("abcdefghij" * 30, "en", id="300 letters without a space"),
        pytest.param("今天的天气非常好我们一起去公园散步。" * 34, "zh", id="600 Chinese characters"),
    ],
)
def test_text_beyond_one_call_of_the_model_is_cut_and_not_lost(server, text, language):
    """Nobody understands that, but how long it takes to say tells whether all of it is said."""
    samples, rate = decode(server.speak(text, response_format="wav", speed=2.0).content)
    assert len(samples) / rate * 2.0 > len(text) / (25 if language == "en" else 8)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("format", ["wav", "mp3"])
@pytest.mark.parametrize("speed", [0.25, 0.5, 2.0, 4.0])
def test_speed_changes_the_length_and_not_the_pitch(server, spoken, speed, format):
    text = " ".join(SENTENCES[:2])
    plain, rate = decode(spoken(text, format, None).content)
    other, _ = decode(server.speak(text, response_format=format, speed=speed).content)
    assert len(plain) / len(other) == pytest.approx(speed, rel=0.1)
    assert pitch_hz(other, rate) == pytest.approx(pitch_hz(plain, rate), rel=0.15)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        pytest.param("Hola, ¿cómo estás? Hoy hace muy buen tiempo.", "es", id="Spanish"),
        pytest.param("Bonjour, comment allez-vous ce matin ?", "fr", id="French"),
        pytest.param("Buongiorno, oggi andiamo al mercato insieme.", "it", id="Italian"),
        pytest.param("Bom dia, hoje vamos ao mercado com a minha irmã.", "pt", id="Portuguese"),
    ],
)
def test_the_text_tells_its_language(server, text, language):
    answer = server.speak(text)
    assert word_errors(text, heard(answer, "mp3", language)) <= 0.35


def test_a_language_that_the_model_lacks_is_refused_by_name(server):
    answer = server.speak("Hello", language="sw")
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "language"
    assert answer.json()["error"]["code"] == "unsupported_language"
