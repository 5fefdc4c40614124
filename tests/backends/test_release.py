"""A folder of weights: fetched once, proved ever after, repaired with the same bytes or not at all."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from backends.base import BackendError
from backends.engines import COQUI, VOXCPM, find, place
from backends.weights.download import Persistence
from backends.weights.hub import Hub
from backends.weights.lock import FILE_NAME, read_lock
from backends.weights.release import bring, is_accepted
from hub import COMMIT, cut, serving, status
from hub import Hub as FakeHub

XTTS = {
    "config.json": b'{"model": "xtts"}',
    "model.pth": bytes(range(256)) * 300,
    "vocab.json": b"{}",
    "speakers_xtts.pth": b"speakers" * 100,
}
LOCK = {"repository": "coqui/XTTS-v2", "commit": COMMIT}
OPTIONS = {"tts_model": "tts_models/multilingual/multi-dataset/xtts_v2"}


class Listener:
    def __init__(self):
        self.said = []

    def say(self, line):
        self.said.append(line)

    def progress(self, name, done, total):
        pass


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def hub():
    with serving(FakeHub(COQUI.release.repository, XTTS)) as serving_hub:
        yield serving_hub


@pytest.fixture
def options(tmp_path):
    return {**OPTIONS, "tts_home": tmp_path / "models"}


@pytest.fixture
def folder(options):
    return place(COQUI, options)


@pytest.fixture
def fetched(hub, folder):
    """Call it to fetch; what was said."""

    def fetched(engine=COQUI, **asked):
        listener = Listener()
        how = Persistence(tries=2, sleep=lambda _: None)
        bring(engine, folder, Hub(hub.url, stall_s=5), listener, persistence=how, **asked)
        return "\n".join(listener.said)

    return fetched


def held(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name in XTTS}


def test_what_was_fetched_is_found_and_remembered(fetched, folder, options):
    fetched()
    assert held(folder) == XTTS
    assert find(COQUI, options) == folder
    lock = json.loads((folder / FILE_NAME).read_text())
    assert (lock["repository"], lock["commit"]) == ("coqui/XTTS-v2", COMMIT)
    assert {name: (entry["size"], len(entry["sha256"])) for name, entry in lock["files"].items()} == {
        name: (len(content), 64) for name, content in XTTS.items()
    }
    assert {path.stat().st_mode & 0o777 for path in folder.glob("[!.]*")} == {0o644}


def test_a_second_run_asks_the_hub_for_nothing(fetched, hub):
    fetched()
    asked = len(hub.asked)
    fetched()
    assert len(hub.asked) == asked


@pytest.mark.parametrize(
    "content", [pytest.param(b"x" * len(XTTS["model.pth"]), id="other bytes"), pytest.param(b"", id="no bytes"), None]
)
def test_a_damaged_file_is_fetched_again_at_the_same_commit(fetched, hub, folder, content):
    fetched()
    hub.commit = "d" * 40
    hub.asked.clear()
    if content is None:
        (folder / "model.pth").unlink()
    else:
        (folder / "model.pth").write_bytes(content)
    assert ("model.pth is damaged" in fetched()) is (content is not None)
    assert held(folder) == XTTS
    assert [path for path, _ in hub.asked] == [f"/coqui/XTTS-v2/resolve/{COMMIT}/model.pth"]


def test_a_hub_that_has_other_bytes_now_replaces_nothing(fetched, hub, folder):
    fetched()
    hub.files["config.json"] = b'{"model": "evil"}'
    (folder / "config.json").write_bytes(b"damaged")
    with pytest.raises(BackendError, match=r"other bytes for config\.json .* nothing was replaced"):
        fetched()
    assert (folder / "config.json").read_bytes() == b"damaged"


def test_again_takes_what_the_hub_has_now(fetched, hub, folder):
    fetched()
    hub.commit, hub.files["vocab.json"] = "d" * 40, b"[1]"
    hub.listed["vocab.json"] = b"[1]"
    hub.asked.clear()
    fetched(again=True)
    assert held(folder) == {**XTTS, "vocab.json": b"[1]"}
    assert read_lock(folder).commit == "d" * 40
    assert len(hub.asked) == 2  # the listing, and what is new


def test_an_interrupted_fetch_goes_on_at_the_commit_of_its_start(fetched, hub, folder):
    hub.faults["model.pth"] = [cut(1000), status(404)]
    with pytest.raises(BackendError):
        fetched()
    hub.commit = "d" * 40
    hub.asked.clear()
    fetched()
    assert held(folder) == XTTS
    assert hub.ranges("model.pth") == ["bytes=1000-"]
    assert read_lock(folder).commit == COMMIT


def test_files_that_are_there_already_are_taken_as_they_are(fetched, hub, folder):
    folder.mkdir(parents=True)
    for name in ("model.pth", "config.json"):
        (folder / name).write_bytes(XTTS[name])
    fetched()
    assert hub.ranges("model.pth") == hub.ranges("config.json") == []
    assert held(folder) == XTTS


def test_somebody_s_own_checkpoint_stays_unless_again_is_said(fetched, folder):
    folder.mkdir(parents=True)
    (folder / "model.pth").write_bytes(b"fine-tuned")
    with pytest.raises(BackendError, match=r"is not the one of coqui/XTTS-v2.*it stays"):
        fetched()
    assert [path.name for path in folder.glob("[!.]*")] == ["model.pth"]
    fetched(again=True)
    assert held(folder) == XTTS


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "[" * 100_000, json.dumps({**LOCK, "files": {"../../x": {"size": 1}}})]
    + [json.dumps({**LOCK, "files": {"model.pth": {"size": size}}}) for size in (-1, "many", 10**400)],
)
def test_a_lock_that_cannot_be_read_is_made_anew(fetched, folder, text):
    fetched()
    (folder / FILE_NAME).write_text(text)
    assert read_lock(folder) is None
    fetched()
    assert read_lock(folder).commit == COMMIT


def test_a_lock_that_lacks_files_is_made_anew(fetched, folder):
    fetched()
    (folder / FILE_NAME).write_text(json.dumps({**LOCK, "files": {}}))
    (folder / "model.pth").unlink()
    fetched()
    assert held(folder) == XTTS


def test_a_lock_that_is_a_pipe_is_not_waited_for(folder):
    folder.mkdir(parents=True)
    os.mkfifo(folder / FILE_NAME)
    assert read_lock(folder) is None


@pytest.mark.parametrize("name", [FILE_NAME, ".fetching"])
def test_a_link_in_the_folder_leads_to_no_change_of_another_file(fetched, folder, tmp_path, name):
    (tmp_path / "other").write_bytes(b"precious")
    folder.mkdir(parents=True)
    (folder / name).symlink_to(tmp_path / "other")
    fetched()
    assert held(folder) == XTTS
    assert (tmp_path / "other").read_bytes() == b"precious"


def test_a_disk_that_knows_no_modes_is_good_enough(fetched, folder, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.chmod", refuse)
    monkeypatch.setattr("os.fchmod", refuse)
    fetched()
    assert held(folder) == XTTS


def test_names_of_the_hub_are_never_paths(fetched, hub, folder, tmp_path):
    hub.listed |= {"../../evil": b"x", "/evil": b"x", "a/../../evil": b"x", "config.json/../evil": b"x"}
    hub.files["evil"] = b"x"
    fetched()
    assert not list(tmp_path.rglob("evil"))
    assert hub.ranges("evil") == []


def test_a_hub_that_lacks_a_file_is_told_by_it(fetched, hub, folder):
    del hub.listed["vocab.json"]
    with pytest.raises(BackendError, match=r"lacks vocab\.json"):
        fetched()
    assert not held(folder)


def test_a_file_that_may_be_missing_may_be_missing(fetched, hub, folder):
    del hub.listed["speakers_xtts.pth"]
    fetched()
    assert "speakers_xtts.pth" not in read_lock(folder).files


@pytest.mark.parametrize(
    "vocoder", [["audiovae.pth"], ["audiovae.safetensors"], ["audiovae.safetensors", "audiovae.pth"]]
)
def test_one_file_of_a_choice_is_enough(hub, tmp_path, vocoder):
    names = ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", *vocoder]
    options = {"voxcpm_model": "openbmb/VoxCPM2", "tts_home": tmp_path}
    hub.repository, hub.files = "openbmb/VoxCPM2", {name: name.encode() for name in names}
    hub.listed = hub.files
    bring(VOXCPM, place(VOXCPM, options), Hub(hub.url), Listener())
    found = find(VOXCPM, options)
    assert found == tmp_path / "openbmb--VoxCPM2"
    assert sorted(path.name for path in found.glob("audiovae*")) == [vocoder[-1]]


def test_a_disk_without_room_is_told_before_anything_comes(fetched, hub, folder, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 50, 50))
    with pytest.raises(BackendError, match=r"GB are to come, and the disk of .* has 0\.0 GB free"):
        fetched()
    assert hub.ranges("model.pth") == []


def test_a_folder_that_cannot_be_made_is_a_sentence(fetched, tmp_path):
    (tmp_path / "models").write_bytes(b"")
    with pytest.raises(BackendError, match="cannot be used: Not a directory"):
        fetched()


def test_two_runs_at_once_fetch_each_file_once(fetched, hub, folder):
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(fetched) for _ in range(2)]
        for run in runs:
            run.result()
    assert held(folder) == XTTS
    assert [len(hub.ranges(name)) for name in XTTS] == [1, 1, 1, 1]


def test_the_licence_is_remembered_where_it_asks_for_a_yes(fetched, folder):
    assert not is_accepted(COQUI, folder)
    assert is_accepted(VOXCPM, folder)
    fetched()
    assert is_accepted(COQUI, folder)
    assert read_lock(folder).licence_accepted == "Coqui Public Model License 1.0.0"
    assert not is_accepted(replace(COQUI, release=replace(COQUI.release, licence="another")), folder)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda path: path.write_bytes(b"short"), id="another size"),
        pytest.param(lambda path: path.unlink(), id="gone"),
    ],
)
def test_what_is_not_as_it_was_fetched_is_refused_with_its_remedy(fetched, folder, options, spoil):
    fetched()
    spoil(folder / "speakers_xtts.pth")
    with pytest.raises(BackendError, match=r"speakers_xtts\.pth .* --model xtts repairs it; .* remove weights\.lock"):
        find(COQUI, options)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        pytest.param((), r"neither .*xtts_v2 nor .*\./setup_assets\.sh --model xtts downloads one", id="no folder"),
        pytest.param(("config.json", "vocab.json"), r"model\.pth is missing.*\.sh --model xtts", id="half"),
    ],
)
def test_a_checkpoint_that_is_not_there_says_how_to_get_it(folder, options, made, says):
    for name in made:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    with pytest.raises(BackendError, match=says):
        find(COQUI, options)


def test_a_checkpoint_that_may_not_be_looked_at_is_not_there(options):
    with pytest.raises(BackendError, match="There is no XTTS-v2 checkpoint"):
        find(COQUI, {**options, "tts_model": "a" * 300})


@pytest.mark.parametrize("place_of_it", ["tts/{}", "{}"])
def test_a_checkpoint_is_found_by_name_where_it_may_lie(options, place_of_it):
    folder = options["tts_home"] / place_of_it.format("tts_models--multilingual--multi-dataset--xtts_v2")
    folder.mkdir(parents=True)
    assert place(COQUI, options) == folder


def test_a_checkpoint_is_found_by_path(options, tmp_path):
    assert place(COQUI, {**options, "tts_model": str(tmp_path / "own")}) == tmp_path / "own"
