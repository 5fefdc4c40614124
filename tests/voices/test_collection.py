"""Recordings in a folder become voices; whatever is wrong with one of them is told, and harms no other."""

import json
import os
import time
import tracemalloc
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest

from audio.encode import Encoder
from core.errors import BadSample, InvalidValue, TooLarge
from core.files import SCRATCH_PREFIX, SCRATCH_SUFFIX, STALE_S
from core.speech import AudioFormat
from harness.audit import watched
from harness.recording import recording
from voices.collection import Collection
from voices.folder import MAX_ENTRIES, MAX_FILE_BYTES
from voices.notes import MAX_JSON_BYTES, Notes
from voices.reading import Custom


@pytest.fixture
def root(tmp_path) -> Path:
    (tmp_path / "voices" / "elite").mkdir(parents=True)
    return tmp_path / "voices"


@pytest.fixture
def collection(root, tmp_path) -> Collection:
    return Collection(root, tmp_path / "voices.json", standard=frozenset({"alloy"}))


def write(root: Path, name: str, data: bytes | dict | None = None) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(recording() if data is None else json.dumps(data).encode() if isinstance(data, dict) else data)
    return path


def recorded_as(format: AudioFormat) -> bytes:
    encoder = Encoder(format, source_rate=24_000, streamed=False)
    return encoder.feed((0.3 * np.sin(np.arange(48_000) / 20)).astype(np.float32)) + encoder.finish()


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


@pytest.mark.parametrize("name", ["anna.json", "config.json"])
@pytest.mark.parametrize("entry", [{}, {"anna": "elite/anna.wav"}], ids=["loose", "in voices.json"])
def test_notes_that_lie_elsewhere_are_not_read(collection, root, tmp_path, name, entry):
    write(tmp_path, "secret.json", {"transcript": "a secret"})
    write(root, "elite/anna.wav")
    write(tmp_path, "voices.json", entry)
    (root / "elite" / name).symlink_to(tmp_path / "secret.json")
    assert collection.reload().failed == {}
    assert collection.voices["anna"].notes.transcript == ""
    write(root, "elsewhere/notes.json", {"transcript": "no secret"})
    (root / "elite" / name).unlink()
    (root / "elite" / name).symlink_to(root / "elsewhere" / "notes.json")
    assert collection.reload().failed == {}
    assert collection.voices["anna"].notes.transcript == "no secret"


def test_no_more_names_are_looked_at_than_there_may_be(collection, root):
    write(root, "elite/anna.wav")
    write(root.parent, "voices.json", {str(number): "elite/none.wav" for number in range(MAX_ENTRIES + 1)})
    began = time.monotonic()
    change = collection.reload()
    assert (change.loaded, list(change.failed)) == (("anna",), ["voices.json"])
    assert time.monotonic() - began < 2


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


@pytest.mark.parametrize(
    "name", ["alloy", "ALLOY", "config", "Config", "", "..", "a/b", "a\\b", "a\0", "é", "x" * 65, "-x", "con."]
)
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
    again = Collection(root, tmp_path / "voices.json", standard=frozenset())
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
    tracemalloc.start()
    try:
        assert "25 MiB" in collection.reload().failed["huge"]
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["anna.json", "config.json", "../../voices.json"])
@pytest.mark.parametrize("kind", ["a pipe", "without an end", "too large", "nested"])
def test_notes_that_are_none_hold_nobody_up(collection, root, name, kind):
    path = root / "elite" / name
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "without an end":
        path.symlink_to("/dev/zero")
    elif kind == "too large":
        path.write_bytes(b" " * MAX_JSON_BYTES + b"{}")
    else:
        path.write_bytes(b"[" * 100_000)
    write(root, "elite/anna.wav")
    assert collection.reload().loaded == ("anna",)


def test_an_absolute_path_into_a_folder_with_two_names_is_one_below_it(root, tmp_path):
    (tmp_path / "other").symlink_to(root)
    write(root, "elite/anna.wav")
    write(tmp_path, "voices.json", {"bell": str(root / "elite" / "anna.wav")})
    collection = Collection(tmp_path / "other", tmp_path / "voices.json", standard=frozenset())
    assert collection.reload().loaded == ("bell",)
    assert collection.voices["bell"].voice.path == "elite/anna.wav"


def test_a_standard_voice_that_cannot_be_looked_for_takes_no_other_one_down(root, tmp_path):
    name = "x" * 5000  # which no file may be called
    write(root, "elite/anna.wav")
    change = Collection(root, tmp_path / "voices.json", standard=frozenset({name})).reload()
    assert (change.loaded, list(change.failed)) == (("anna",), [f"standard/{name}.wav"])


def test_a_file_whose_name_is_no_text_can_be_told_of(collection, root):
    (root / "elite" / os.fsdecode(b"Zo\xeb.wav")).write_bytes(recording())
    (failed,) = collection.reload().failed
    assert failed.encode() == rb"Zo\udceb"


def test_a_file_that_a_link_leads_to_can_be_told_of_whatever_it_is_called(collection, root):
    odd = write(root, os.fsdecode(b"Zo\xeb.wav"))
    (root / "elite" / "zoe.wav").symlink_to(odd)
    collection.reload()
    assert collection.voices["zoe"].voice.path.encode() == rb"Zo\udceb.wav"


# --- what a change may not do to another voice


@pytest.mark.parametrize("kind", [AudioFormat.WAV, AudioFormat.FLAC])
def test_a_recording_that_voices_json_gives_to_another_voice_is_left_alone(collection, root, kind):
    bob = write(root, "elite/anna.wav", recording(500.0))
    write(root.parent, "voices.json", {"bob": "elite/anna.wav"})
    collection.reload()
    with pytest.raises(InvalidValue, match=r"voices\.json"):
        collection.add("anna", recorded_as(kind), Notes())
    assert list((root / "elite").iterdir()) == [bob]
    assert bob.read_bytes() == recording(500.0)
    assert collection.reload().loaded == ("bob",)


def test_nothing_is_changed_while_nobody_knows_what_voices_json_says(collection, root):
    write(root, "elite/anna.wav")
    collection.reload()
    write(root.parent, "voices.json", b"{")
    for change in (lambda: collection.add("anna", recording(), Notes()), lambda: collection.remove("anna")):
        with pytest.raises(InvalidValue, match=r"voices\.json"):
            change()
    assert (root / "elite" / "anna.wav").exists()


def test_one_voice_is_one_file_however_it_was_spelled(collection, root):
    for name in ("ben.WAV", "Ben.mp3", "ben.json", "Anna Bell.wav", "bennet.wav"):
        write(root, f"elite/{name}", b"{}" if name.endswith(".json") else recording())
    change = collection.reload()
    assert sorted(change.loaded) == ["anna-bell", "ben", "bennet"]
    assert list(change.failed) == ["elite/ben.WAV"]
    collection.add("ben", recording(300.0), Notes())
    collection.remove("anna-bell")
    assert sorted(path.name for path in (root / "elite").iterdir()) == ["ben.json", "ben.wav", "bennet.wav"]
    collection.remove("BEN")
    assert collection.reload().loaded == ("bennet",)


def test_an_engine_s_own_name_is_not_given_away(collection, root):
    with pytest.raises(InvalidValue, match="another voice"):
        collection.add("AF_heart", recording(), Notes(), taken=frozenset({"af_heart"}))
    write(root, "elite/af_heart.wav")
    assert "af_heart" in collection.reload(taken=frozenset({"af_heart"})).failed


def test_a_recording_beyond_the_size_of_a_file_is_not_added(collection, root):
    with pytest.raises(TooLarge) as refused:
        collection.add("anna", recording() + bytes(MAX_FILE_BYTES), Notes())
    assert refused.value.param == "audio_sample"
    assert list((root / "elite").iterdir()) == []


def test_notes_for_all_that_are_wrong_are_told_before_anything_is_written(collection, root):
    write(root, "elite/config.json", {"language": "!!"})
    with pytest.raises(InvalidValue, match="language"):
        collection.add("anna", recording(), Notes())
    assert [path.name for path in (root / "elite").iterdir()] == ["config.json"]
    assert collection.add("anna", recording(), Notes(language="en")).voice.language == "en"


def test_notes_for_all_speak_for_a_voice_that_is_added_too(collection, root):
    write(root, "elite/config.json", {"language": "de", "style": "calm"})
    added = collection.add("anna", recording(), Notes(style="stern"))
    assert (added.notes.language, added.notes.style) == ("de", "stern")
    assert added.notes.created_at > 1_700_000_000
    collection.reload()
    assert collection.voices["anna"] == added


def test_a_folder_that_leads_out_takes_no_voice(root, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (root / "elite").rmdir()
    (root / "elite").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidValue, match="below"):
        Collection(root, tmp_path / "voices.json", standard=frozenset()).add("anna", recording(), Notes())
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_where_it_cannot_be_written_whole_nothing_new_is_left(collection, root):
    collection.add("anna", recording(), Notes())
    (root / "elite" / "anna.json").unlink()
    (root / "elite" / "anna.json" / "x").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        collection.add("anna", recorded_as(AudioFormat.FLAC), Notes())
    assert sorted(path.name for path in (root / "elite").iterdir()) == ["anna.json", "anna.wav"]
    assert collection.voices["anna"].path.suffix == ".wav"


def test_a_voice_is_replaced_before_the_old_one_goes(collection, root):
    """Seen by one who looks whenever a file has been moved or removed."""
    collection.add("anna", recording(), Notes(transcript="Old."))
    seen = []

    def look(event: str, args: tuple[object, ...]) -> None:
        if event in ("os.rename", "os.remove") and str(root) in str(args[0]):
            custom = collection.voices["anna"]
            seen.append((event, custom.notes.transcript, custom.path.exists()))

    with watched(look):
        collection.add("anna", recorded_as(AudioFormat.FLAC), Notes(transcript="New."))
    assert seen == [("os.rename", "Old.", True), ("os.rename", "Old.", True), ("os.remove", "New.", True)]


def test_changes_at_once_are_made_one_after_the_other(collection, root):
    names = [f"voice-{number}" for number in range(12)]

    def change(name: str) -> None:
        collection.add(name, recording(), Notes())
        collection.reload()
        if name in names[::2]:
            collection.remove(name)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(change, names))
    assert sorted(collection.voices) == sorted(names[1::2])
    assert len(list((root / "elite").iterdir())) == 12


def test_a_voice_that_is_added_while_all_are_read_is_not_lost_by_that(collection, root):
    write(root, "elite/first.wav")
    adding: list[Future[Custom]] = []

    def look(event: str, args: tuple[object, ...]) -> None:
        if event == "open" and not adding and str(args[0]).endswith("first.wav"):
            adding.append(threads.submit(collection.add, "anna", recording(), Notes()))
            wait(adding, timeout=0.5)

    with ThreadPoolExecutor(1) as threads:
        with watched(look):
            collection.reload()
        assert adding[0].result().voice.id == "anna"
    assert sorted(collection.voices) == ["anna", "first"]


def test_only_what_has_changed_is_decoded_again(collection, root):
    for name in ("anna", "ben"):
        write(root, f"elite/{name}.wav")
    collection.reload()
    opened: list[str] = []
    with watched(lambda event, args: opened.append(str(args[0])) if event == "open" else None):
        collection.add("carl", recording(), Notes())
        write(root, "elite/ben.wav", recording(300.0))
        collection.reload()
    assert {Path(name).name for name in opened if name.endswith(".wav")} == {"ben.wav"}


def test_what_a_process_that_was_killed_left_half_written_goes(collection, root):
    for folder in ("elite", "standard"):
        for name, age_s in (("old", STALE_S + 60), ("young", 0)):
            path = write(root, f"{folder}/{SCRATCH_PREFIX}{name}{SCRATCH_SUFFIX}")
            os.utime(path, (0, time.time() - age_s))
    collection.reload()
    assert sorted(path.name for path in root.rglob("*") if path.is_file()) == [".uttera-young.new"] * 2


def test_a_voice_is_on_the_disk_before_it_is_in_its_place(collection):
    events: list[str] = []
    synced = os.fsync
    with pytest.MonkeyPatch.context() as patch, watched(lambda event, args: events.append(event)):
        patch.setattr(os, "fsync", lambda number: (events.append("fsync"), synced(number)))
        collection.add("anna", recording(), Notes())
    assert [event for event in events if event in ("fsync", "os.rename")] == ["fsync", "os.rename"] * 2
