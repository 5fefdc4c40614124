"""From variables and `.env` to frozen values; a bad one is a line that names it."""

import json
import shutil
import sys
from dataclasses import FrozenInstanceError, fields
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import ValidationError

from core import settings
from core.environment import PROJECT, SettingsError
from core.settings import env_example, load_settings

NAMES = [line[1:].partition("=")[0] for line in env_example().splitlines() if line[:1] == "#" and line[1:2] != " "]


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine's decides a test."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The same module in a checkout of its own, in `tmp_path`, which may hold a `.env`."""
    shutil.copytree(PROJECT / "core", tmp_path / "core")
    for name in [name for name in sys.modules if name.split(".")[0] == "core"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    return import_module("core.settings")


def values(module: ModuleType) -> dict[str, object]:
    """All settings in one table."""
    loaded = module.load_settings()
    groups = [getattr(loaded, field.name) for field in fields(loaded)]
    return {name: value for group in groups for name, value in group.model_dump().items()}


def problems(**variables: str) -> list[str]:
    """The lines of a start with these variables, which must fail."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        with pytest.raises(SettingsError) as caught:
            load_settings()
    return str(caught.value).splitlines()


# --- where values come from


def test_without_any_variable_every_setting_has_the_default_that_is_promised(elsewhere: ModuleType) -> None:
    found = values(elsewhere)
    assert (
        found.items()
        >= {
            "host": "127.0.0.1",
            "port": 9004,
            "debug": False,
            "cors_allow_origins": "",
            "max_input_chars": 32_768,
            "default_voice": "alloy",
            "default_language": "en",
            "served_model_name": "",
            "tts_backend": "auto",
            "kokoro_slots": 0,
            "kokoro_model_dir": Path("assets/models"),
        }.items()
    )
    assert sorted(found) == sorted(name.lower() for name in NAMES)


def test_the_example_file_holds_the_defaults(elsewhere: ModuleType, tmp_path: Path) -> None:
    defaults = values(elsewhere)
    lines = [line.removeprefix("#") for line in env_example().splitlines() if line[1:2] != " "]
    (tmp_path / ".env").write_text("\n".join(lines), encoding="utf-8")
    assert len([line for line in lines if line]) == len(defaults)
    assert values(elsewhere) == defaults


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(
    elsewhere: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("PORT=1111\nHOST=file\nDEFAULT_VOICE=\nOTHER=x\n", encoding="utf-8")
    monkeypatch.setenv("PORT", "2222")
    monkeypatch.setenv("HOST", "")
    server = elsewhere.load_settings().server
    assert (server.port, server.host) == (2222, "file")
    assert elsewhere.load_settings().speech.default_voice == "alloy"
    assert elsewhere.load_settings(port=3333).server.port == 3333


@pytest.mark.parametrize(
    "text",
    [
        "PORT=1111",
        'PORT="1111"',
        "PORT='1111' # why",
        "export PORT=1111",
        "port = 1111",
        "# PORT=1\nPORT=2\nPORT=1111\n\n",
        "PORT=1111\r\nDEBUG=\r\n",
        "nonsense\nPORT=1111",
        "DEFAULT_VOICE=Zoë 你好\nPORT=1111",
    ],
    ids=ascii,
)
def test_the_file_may_be_written_in_every_usual_way(elsewhere: ModuleType, tmp_path: Path, text: str) -> None:
    (tmp_path / ".env").write_text(text, encoding="utf-8", newline="")
    assert elsewhere.load_settings().server.port == 1111


def test_the_folder_in_which_the_server_is_started_changes_nothing(
    elsewhere: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".env").write_text("PORT=1111", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "other")
    assert elsewhere.load_settings().server.port == 9004
    assert (tmp_path, Path(__file__).resolve().parents[2]) == (elsewhere.PROJECT, PROJECT)


@pytest.mark.parametrize(
    ("name", "spelled", "value"),
    [
        ("debug", "1", True),
        ("debug", "Yes", True),
        ("debug", "off", False),
        ("port", " 80 ", 80),
        ("send_timeout_s", "0.5", 0.5),
        ("kokoro_slots", "256", 256),
        ("kokoro_model_dir", "/a b/c", Path("/a b/c")),
        ("tts_backend", "tone_backend:make", "tone_backend:make"),
        ("cors_allow_origins", "https://a.example, https://b.example", "https://a.example, https://b.example"),
    ],
)
def test_a_variable_is_read_as_its_type(
    name: str, spelled: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name.upper(), spelled)
    assert values(settings)[name] == value


# --- bad values


@pytest.mark.parametrize(
    ("name", "bad", "edge"),
    [
        ("PORT", ["0", "65536", "-1", "9004.5", "http", "0x1"], ["1", "65535"]),
        ("DEBUG", ["2", "maybe"], ["0", "true"]),
        ("MAX_INPUT_CHARS", ["0", "-1", "1e3", "9" * 5000], ["1"]),
        ("MAX_BODY_BYTES", ["1023", "26M"], ["1024"]),
        ("MAX_SPOOL_BYTES", [str(2**20 - 1)], [str(2**20)]),
        ("SEND_TIMEOUT_S", ["0", "-1", "nan", "soon"], ["0.001"]),
        ("DRAIN_SECONDS", ["-1", "0.5"], ["0"]),
        ("DEFAULT_LANGUAGE", ["e", "klingonish", "en us", "en-"], ["de", "zh-CN", "pt_BR"]),
        ("STREAM_LEAD_S", ["0", "nan", "-inf"], ["0.1"]),
        ("KOKORO_SLOTS", ["-1", "257", "all"], ["0", "256"]),
    ],
)
def test_a_value_out_of_range_is_one_line_that_names_its_variable(
    name: str, bad: list[str], edge: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in bad:
        (line,) = problems(**{name: value})
        assert line.startswith(f"{name}: ")
    for value in edge:
        monkeypatch.setenv(name, value)
        load_settings()


def test_every_bad_value_of_every_group_has_its_line_and_none_is_repeated() -> None:
    bad = {"PORT": "s3cret", "DEFAULT_LANGUAGE": "x", "STREAM_LEAD_S": "s3cret", "KOKORO_SLOTS": "s3cret"}
    lines = problems(**bad, HOST="0.0.0.0")
    assert [line.partition(":")[0] for line in lines] == list(bad)
    assert "s3cret" not in "".join(lines)


@pytest.mark.parametrize("key", ["geheimü", " abc ", "abc\n", "   ", "a\tb"])
def test_a_key_that_no_client_could_send_ends_the_start(key: str) -> None:
    (line,) = problems(ADMIN_API_KEY=key)
    assert line.startswith("ADMIN_API_KEY: It should have printable ASCII")


def test_a_bad_value_in_the_file_is_named_too(elsewhere: ModuleType, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PORT=s3cret", encoding="utf-8")
    with pytest.raises(elsewhere.SettingsError, match=r"^PORT: (?!.*s3cret)"):
        elsewhere.load_settings()


def test_a_file_that_is_not_utf_8_is_a_readable_line(elsewhere: ModuleType, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes("DEFAULT_VOICE=Zoë".encode("latin-1"))
    with pytest.raises(elsewhere.SettingsError, match=r"\.env"):
        elsewhere.load_settings()


def test_an_override_is_checked_like_a_variable_and_its_name_too() -> None:
    with pytest.raises(SettingsError, match=r"^PORT: "):
        load_settings(port=70_000)
    with pytest.raises(TypeError, match="no such settings: colour, prot"):
        load_settings(prot=1, colour=2, port=3)


# --- what is passed down


def test_settings_cannot_be_changed() -> None:
    loaded = load_settings()
    with pytest.raises(ValidationError):
        loaded.server.port = 1  # type: ignore[misc, unused-ignore]
    with pytest.raises(FrozenInstanceError):
        loaded.server = loaded.server  # type: ignore[misc]


def test_what_else_is_in_the_environment_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-s3cret")
    monkeypatch.setenv("HF_TOKEN", "hf-s3cret")
    assert "s3cret" not in repr(load_settings())


@pytest.mark.parametrize("backend", ["nobody", "tone_backend:make", "", "options", "__class__"])
def test_a_backend_without_a_group_has_no_options(backend: str) -> None:
    assert load_settings().options(backend) == {}


def test_a_backend_s_options_are_its_group_as_json() -> None:
    options = load_settings(kokoro_slots=2).options("kokoro")
    assert options == {"kokoro_slots": 2, "kokoro_model_dir": "assets/models"}
    assert json.loads(json.dumps(options)) == options


def test_who_sits_behind_a_proxy_is_told_to_set_a_key() -> None:
    described = settings.ServerSettings.model_fields["admin_api_key"].description or ""
    assert "Behind a proxy or tunnel, set it" in described
    assert "Behind a proxy or tunnel, set" in (PROJECT / "README.md").read_text(encoding="utf-8")
