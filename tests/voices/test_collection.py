"""Recordings in a folder become voices; whatever is wrong with one of them is told, and harms no other."""

import json
import os
from pathlib import Path

import pytest

from core.errors import BadSample, InvalidValue
from harness.recording import recording
from voices.collection import MAX_FILE_BYTES, Collection, Notes


@pytest.fixture
def root(tmp_path) -> Path:
    (tmp_path / "voices" / "elite").mkdir(parents=True)
    return tmp_path / "voices"


@pytest.fixture
def collection(root, tmp_path) -> Collection:
    return Collection(root, tmp_path / "voices.json", taken=frozenset({"alloy"}))


def write(root: Path, name: str, data: bytes | dict | None = None) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(recording() if data is None else json.dumps(data).encode() if isinstance(data, dict) else data)
    return path


def test_a_recording_in_the_folder_is_a_voice_of_its_name(collection, root):
    write(root, "elite/anna.wav")
    assert collection.reload().loaded == ("anna",)
    anna = collection.voices["anna"]
    assert (anna.voice.id, anna.voice.language, anna.voice.path) == ("anna", None, "elite/anna.wav")


def test_what_is_written_beside_it_and_in_voices_json_is_read_and_the_latter_wins(collection, root):
    write(root, "elite/anna.wav")
    write(root, "elite/config.json", {"language": "de", "style": "calm", "speed": 3})
    write(root, "elite/anna.json", {"description": "A friend", "style": "lively", "file": "../elsewhere.wav"})
    write(root.parent, "voices.json", {"Anna": {"file": "elite/anna.wav", "style": "stern", "transcript": "Hello."}})
    assert collection.reload().loaded == ("anna",)
    notes = collection.voices["anna"].notes
    assert notes == Notes(
        file="elite/anna.wav", language="de", style="stern", description="A friend", transcript="Hello."
    )
    assert collection.voices["anna"].voice.name == "Anna"


def test_a_name_alone_is_enough_in_voices_json(collection, root):
    write(root, "elite/one.wav")
    write(root, "elite/sub/two.wav", recording(300.0))
    write(root.parent, "voices.json", {"My Own": "elite/one.wav", "deep": "elite/sub/two.wav"})
    assert collection.reload().loaded == ("my-own", "deep")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        pytest.param("elite/none.wav", "not there", id="no such file"),
        pytest.param("../secret.wav", "below", id="a path that leads out"),
        pytest.param("elite/link.wav", "below", id="a link that leads out"),
        pytest.param("/etc/passwd", "below", id="an absolute path"),
        pytest.param("elite/a\0.wav", "names no file", id="NUL"),
        pytest.param("", "names no file", id="nothing"),
        pytest.param("elite", "below", id="a folder"),
        pytest.param("elite/text.wav", "no recording", id="text"),
        pytest.param("elite/short.wav", "1 s at least", id="too short"),
        pytest.param({"file": "elite/good.wav", "language": "!!"}, "language", id="a bad language"),
        pytest.param({"file": 7}, "file", id="a file that is no text"),
        pytest.param([], "entry", id="no entry"),
    ],
)
def test_a_bad_entry_is_told_and_takes_no_other_one_down(collection, root, entry, said):
    write(root.parent, "secret.wav")
    write(root, "elite/text.wav", b"This is text.")
    write(root, "elite/short.wav", recording(seconds=0.2))
    (root / "elite" / "link.wav").symlink_to(root.parent / "secret.wav")
    write(root, "elite/good.wav", recording(300.0))
    write(root.parent, "voices.json", {"bad": entry, "best": "elite/good.wav"})
    change = collection.reload()
    assert "best" in change.loaded
    assert "bad" not in change.loaded
    assert said in change.failed["bad"]


@pytest.mark.parametrize("name", ["alloy", "ALLOY", "", "..", "a/b", "a\\b", "a\0", "é", "x" * 65, "-x", "con."])
def test_a_name_that_is_none_or_another_voice_s_is_refused(collection, root, name):
    write(root, "elite/good.wav", recording(300.0))
    write(root.parent, "voices.json", {name: "elite/good.wav"})
    assert name in collection.reload().failed
    with pytest.raises(InvalidValue):
        collection.add(name, recording(), Notes())
    assert sorted(path.name for path in root.rglob("*") if path.is_file()) == ["good.wav"]


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'"x"'])
def test_a_broken_voices_json_leaves_the_folder_s_voices(collection, root, content):
    write(root, "elite/anna.wav")
    write(root.parent, "voices.json", content)
    change = collection.reload()
    assert change.loaded == ("anna",)
    assert "voices.json" in change.failed


def test_what_is_gone_is_told_and_what_was_read_before_stays_readable_meanwhile(collection, root):
    path = write(root, "elite/anna.wav")
    collection.reload()
    before = collection.voices
    path.unlink()
    assert collection.reload().removed == ("anna",)
    assert "anna" in before
    assert not collection.voices


def test_a_voice_that_is_added_comes_back_byte_for_byte_and_after_a_restart(collection, root, tmp_path):
    data = recording(250.0)
    added = collection.add("New Voice", data, Notes(language="en", transcript="Hello.", description="Mine"))
    assert added.voice.id == "new-voice"
    assert added.path.read_bytes() == data
    again = Collection(root, tmp_path / "voices.json", taken=frozenset())
    again.reload()
    assert again.voices["new-voice"].notes.transcript == "Hello."
    assert sorted(path.name for path in (root / "elite").iterdir()) == ["new-voice.json", "new-voice.wav"]
    assert all(path.stat().st_mode & 0o077 == 0 for path in (root / "elite").iterdir())


def test_one_that_is_added_again_replaces_the_other_whatever_its_kind(collection, root):
    write(root, "elite/anna.mp3", recording())  # a wav that is called otherwise
    collection.reload()
    collection.add("anna", recording(300.0), Notes())
    assert [path.name for path in (root / "elite").iterdir() if path.suffix != ".json"] == ["anna.wav"]
    assert collection.voices["anna"].path.read_bytes() == recording(300.0)


def test_what_no_voice_can_be_made_from_is_not_added(collection, root):
    for data in (b"", b"text", recording(seconds=0.2)):
        with pytest.raises(BadSample) as refused:
            collection.add("anna", data, Notes())
        assert refused.value.param == "audio_sample"
    assert list((root / "elite").iterdir()) == []


def test_a_voice_is_removed_with_what_is_written_about_it(collection, root):
    collection.add("anna", recording(), Notes(description="Mine"))
    collection.remove("anna")
    assert list((root / "elite").iterdir()) == []
    assert not collection.voices
    with pytest.raises(KeyError):
        collection.remove("anna")


def test_what_the_operator_wrote_into_voices_json_is_his_to_change(collection, root):
    write(root, "elite/anna.wav")
    write(root.parent, "voices.json", {"anna": "elite/anna.wav", "sub": "elite/sub/s.wav"})
    write(root, "elite/sub/s.wav")
    collection.reload()
    for name in ("anna", "sub"):
        with pytest.raises(InvalidValue, match=r"voices\.json"):
            collection.remove(name)
        with pytest.raises(InvalidValue, match=r"voices\.json"):
            collection.add(name, recording(), Notes())
    assert (root / "elite" / "anna.wav").exists()


def test_a_pipe_holds_nobody_up(collection, root):
    os.mkfifo(root / "elite" / "pipe.wav")
    assert "pipe" in collection.reload().failed


def test_a_file_that_is_too_large_is_not_even_read(collection, root):
    path = write(root, "elite/huge.wav")
    os.truncate(path, MAX_FILE_BYTES + 1)
    assert "25 MiB" in collection.reload().failed["huge"]
