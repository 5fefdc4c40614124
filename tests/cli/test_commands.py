"""The commands as a person types them, with an engine that speaks in tones."""

import io
import wave
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from cli.main import app
from cli.say import say
from telemetry.build_info import build_version

pytestmark = pytest.mark.usefixtures("fakes_path")


@pytest.fixture(autouse=True)
def _tones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTS_BACKEND", "tone_backend:make")
    monkeypatch.setenv("COLUMNS", "500")  # no message is wrapped


def run(*words: str | Path, given: bytes = b"", **variables: str) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], input=given, env=variables)


def test_the_version_is_told_alone() -> None:
    assert run("--version").output == f"uttera-tts {build_version()}\n"


@pytest.mark.parametrize("words", [[], ["--help"], ["say", "--help"], ["serve", "--help"]], ids=" ".join)
def test_help_is_there_at_every_step(words: list[str]) -> None:
    assert "Usage:" in run(*words).stdout


def test_a_text_from_standard_input_becomes_the_file_that_was_named(tmp_path: Path) -> None:
    file = tmp_path / "a.WAV"
    spoken = run("say", "-", "--output", file, "--voice", " Nova ", given=b"one two three\n")
    assert (spoken.exit_code, spoken.output) == (0, f"{file}: 0.3 s of speech\n")
    with wave.open(io.BytesIO(file.read_bytes())) as sound:
        assert sound.getnframes() == pytest.approx(0.3 * sound.getframerate(), rel=0.01)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["hi", "-o", "a.ogg"], "mp3, opus, aac, flac, wav, pcm", id="no such format"),
        pytest.param(["hi", "-o", "mp3"], "mp3, opus, aac, flac, wav, pcm", id="no ending"),
        pytest.param([" \n", "-o", "a.mp3"], "There is nothing to say", id="no text"),
        pytest.param(["-", "-o", "a.mp3"], "There is nothing to say", id="no text given"),
        pytest.param(["hi"], "--output", id="no file"),
        pytest.param(["hi", "-o", "none/a.mp3"], "none/a.mp3 cannot be written", id="no such folder"),
        pytest.param(["h\udce9", "-o", "a.mp3"], "It should be in UTF-8", id="not UTF-8"),
        pytest.param(["hi", "-o", "a.mp3", "--speed", "9"], "--speed", id="too fast"),
        pytest.param(["hi", "-o", "a.mp3", "--speed", "nan"], "--speed", id="no speed"),
    ],
)
def test_what_cannot_be_asked_is_said_at_once_and_leaves_no_file(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run("say", *words)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert said in refused.stderr
    assert not list(tmp_path.iterdir())


def test_what_does_not_work_is_one_line_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed = run("say", "hi", "-o", "a.mp3", "--voice", "nobody")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr.startswith("No such voice. Available")
    assert failed.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["say", "hi", "-o", "a.mp3"]], ids=lambda words: words[0])
def test_settings_that_cannot_be_used_are_a_line_each(words: list[str]) -> None:
    ended = run(*words, PORT="0", STREAM_LEAD_S="-1")
    assert ended.exit_code == 2
    first, *lines = ended.stderr.splitlines()
    assert first == "These settings cannot be used:"
    assert [line.partition(":")[0] for line in lines] == ["PORT", "STREAM_LEAD_S"]


@pytest.mark.parametrize("words", [["serve"], ["say", "hi", "-o", "a.mp3"]], ids=lambda words: words[0])
def test_a_gpu_that_is_asked_for_and_not_there_is_a_line(words: list[str]) -> None:
    ended = run(*words, TTS_DEVICE="gpu", CUDA_VISIBLE_DEVICES="")
    assert ended.exit_code == 2
    _, line = ended.stderr.splitlines()
    assert line.startswith("TTS_DEVICE:")


def test_a_text_from_standard_input_that_is_not_utf_8_is_one_line() -> None:
    ended = run("say", "-", "-o", "a.mp3", given=b"Zo\xeb")
    assert isinstance(ended.exception, SystemExit)
    assert "UTF-8" in ended.stderr


def test_a_text_from_a_standard_input_that_is_closed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.say.sys.stdin", None)
    with pytest.raises(typer.BadParameter, match="nothing to say"):
        say("-", Path("a.mp3"))
