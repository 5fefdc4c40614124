"""`voices add` as a person types it, and the page that says how to record."""

import asyncio
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from cli.voices import GOOD_RATE, GOOD_S, SPOKEN, record
from core.settings import load_settings
from harness.recording import recording
from voices.collection import open_collection
from voices.folder import MAX_FILE_BYTES
from voices.library import OPENAI_NAMES
from voices.sample import MAX_CLIPPED, MAX_S, MIN_S, MIN_SPEECH_DBFS

PAGE = Path(__file__).resolve().parent.parent.parent / "CLONE_VOICES.md"


@pytest.fixture(scope="module")
def spoken() -> bytes:
    return recording(seconds=8.0, pauses=True)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("VOICE_ASSET_DIR", str(tmp_path / "voices"))
    monkeypatch.setenv("COLUMNS", "500")
    return tmp_path


def add(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["voices", "add", *map(str, words)])


def test_a_good_recording_is_shown_and_kept(folder, spoken):
    file = folder / "Anna.wav"
    file.write_bytes(spoken)
    told = add(file, "--language", "en", "--transcript", "Hello.")
    assert told.exit_code == 0, told.output
    assert "wav, 24000 Hz, 1 channel, 8.0 s" in told.output
    assert "Note:" not in told.output
    assert "the voice anna" in told.output
    assert (folder / "voices" / "elite" / "anna.wav").read_bytes() == file.read_bytes()
    assert "Hello." in (folder / "voices" / "elite" / "anna.json").read_text()


@pytest.mark.parametrize(
    ("sound", "advice"),
    [
        ({"seconds": 2.0}, "6 to 30 s"),
        ({"rate": 16_000}, "22050 Hz"),
        ({"level": 0.02}, "quiet"),
        ({"noise": 0.05}, "noise"),
    ],
)
def test_what_would_be_better_is_said(folder, sound, advice):
    file = folder / "a.wav"
    file.write_bytes(recording(**{"seconds": 8.0, "pauses": True, **sound}))
    told = add(file, "--name", "better")
    assert told.exit_code == 0, told.output
    assert [line for line in told.output.splitlines() if line.startswith("Note:") and advice in line]


@pytest.mark.parametrize(
    ("data", "words", "said"),
    [
        (b"text", [], "no recording"),
        (recording(seconds=0.2), [], "1 s at least"),
        (recording(level=0.0), [], "silent"),
        (recording(level=40.0), [], "too loud"),
        (recording(), ["--name", "alloy"], "another voice"),
        (recording(), ["--name", "../x"], "letters"),
        (recording(), ["--language", "!!"], "en or zh-CN"),
        (recording(), ["--transcript", "x" * 4097], "--transcript: It should have 4096 characters"),
        (recording(), ["--transcript", "\udce4"], "--transcript: It should be in UTF-8"),
    ],
)
def test_what_is_no_good_is_refused_and_not_kept(folder, data, words, said):
    file = folder / "a.wav"
    file.write_bytes(data)
    told = add(file, *words)
    assert told.exit_code != 0
    assert said in told.output
    assert "Traceback" not in told.output
    assert not (folder / "voices").exists()


@pytest.mark.parametrize("name", ["anna.wav", "anna.mp3", "Anna Bell.flac"])
def test_a_file_that_lies_in_the_folder_is_checked_and_stays_as_it_is(folder, spoken, name):
    elite = folder / "voices" / "elite"
    elite.mkdir(parents=True)
    (elite / name).write_bytes(spoken)
    (elite / name).with_suffix(".json").write_text('{"transcript": "Mine."}')
    (folder / "link.wav").symlink_to(elite / name)
    before = {path: path.read_bytes() for path in elite.iterdir()}
    for file in (elite / name, folder / "link.wav"):
        told = add(file)
        assert told.exit_code == 0, told.output
        assert f"the voice {Path(name).stem.lower().replace(' ', '-')}" in told.output
    refused = add(elite / name, "--transcript", "Other.")
    assert (refused.exit_code, "already" in refused.output) == (1, True)
    assert {path: path.read_bytes() for path in elite.iterdir()} == before


def test_a_file_in_the_folder_that_is_no_voice_is_told_so(folder, spoken):
    elite = folder / "voices" / "elite"
    elite.mkdir(parents=True)
    (elite / "alloy.wav").write_bytes(spoken)
    told = add(elite / "alloy.wav")
    assert (told.exit_code, "another voice" in told.output) == (1, True)


def test_a_file_that_is_not_there_is_told(folder):
    assert "cannot be read" in add(folder / "none.wav").output


def test_the_page_says_what_the_code_accepts():
    page = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))
    low, high = GOOD_S
    for said in (
        f"{low:.0f} to {high:.0f} s of one person",
        f"Less than {MIN_S:.0f} s or more than {MAX_S:.0f} s is refused",
        f"more than {MAX_CLIPPED * 100:.0f} % does",
        f"below {MIN_SPEECH_DBFS:.0f} dBFS",
        f"{GOOD_RATE:_} Hz".replace("_", " "),
        f"At most {MAX_FILE_BYTES // 2**20} MiB",
    ):
        assert said in page


def test_what_voices_json_calls_for_is_told_and_not_broken(folder, spoken):
    elite = folder / "voices" / "elite"
    elite.mkdir(parents=True)
    (elite / "config.json").write_text('{"language": "!!"}')
    (folder / "a.wav").write_bytes(spoken)
    told = add(folder / "a.wav")
    assert (told.exit_code, told.exception.__class__) == (1, SystemExit)
    assert "language" in told.output
    assert [path.name for path in elite.iterdir()] == ["config.json"]


@pytest.mark.usefixtures("fakes_path")
def test_the_standard_voices_are_recorded_with_what_is_said_in_them(folder, capsys):
    settings = load_settings(tts_backend="tone_backend:make")
    standard = folder / "voices" / "standard"
    standard.mkdir(parents=True)
    asyncio.run(record(settings, standard, OPENAI_NAMES))
    assert len(capsys.readouterr().out.splitlines()) == len(OPENAI_NAMES)
    for name in OPENAI_NAMES:
        assert (standard / f"{name}.wav").stat().st_size > 10_000
    collection = open_collection(settings.speech)
    assert collection.reload().failed == {}
    assert set(collection.standard) == set(OPENAI_NAMES)
    assert collection.standard["nova"].notes.transcript == SPOKEN


def test_a_standard_voice_that_somebody_recorded_stays(folder):
    standard = folder / "voices" / "standard"
    standard.mkdir(parents=True)
    for name in OPENAI_NAMES:
        (standard / f"{name}.wav").write_bytes(b"mine")
    told = CliRunner().invoke(app, ["voices", "standard"])
    assert told.exit_code == 0, told.output
    assert "13 of 13 have a recording" in told.output
    assert {path.read_bytes() for path in standard.iterdir()} == {b"mine"}
