"""Who is found, added and removed, and when: before the engine is known, while the folder is read, and after."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.errors import CloningNotSupported, InvalidValue, NotFound, Unavailable, VoiceNotRecorded
from core.events import Silence
from core.speech import Reference, SpeechRequest, Traits, Voice
from harness.recording import recording
from synthesis.speakers import Speakers
from voices.collection import Change, Collection
from voices.library import Library, openai_voices
from voices.notes import Notes
from voices.sample import reference

OWN = (Voice("af_heart", "Heart"), *openai_voices())
CLONING = Traits("tone", "1", 24_000, 2, {"en": 100}, voices=OWN, can_clone=True)
PLAIN = Traits("tone", "1", 24_000, 2, {"en": 100})


class Sent:
    """A recording that came with a request."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read(self, transcript: str = "") -> Reference:
        return reference(self._data, transcript=transcript)

    def close(self) -> None:
        self._data = b""


class Stage:
    """Speakers over a folder, with an engine that can be changed."""

    def __init__(self, root: Path, traits: Traits | None) -> None:
        (root / "elite").mkdir(exist_ok=True)
        self.traits = traits
        self.events = Silence()
        self.lost: list[str] = []
        self.collection = Collection(root, root / "voices.json", standard=frozenset({"alloy"}))

    def play(self, scene: Callable[[Speakers], Awaitable[None]]) -> None:
        async def main() -> None:
            with ThreadPoolExecutor(2) as threads, ThreadPoolExecutor(1) as desk:
                speakers = Speakers(
                    Library("alloy"),
                    self.collection,
                    traits=lambda: self.traits,
                    events=self.events,
                    threads=threads,
                    desk=desk,
                )
                speakers.open()
                await asyncio.wait_for(scene(speakers), 20)
                await speakers.close()

        asyncio.run(main())


def write(root: Path, name: str, content: bytes | None = None) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(recording() if content is None else content)


@pytest.mark.parametrize("traits", [None, PLAIN, CLONING], ids=["still loading", "cannot clone", "can clone"])
def test_a_voice_on_disk_is_found_and_removed_whatever_the_engine_can(tmp_path, traits):
    write(tmp_path, "elite/Anna Bell.wav")

    async def scene(speakers):
        voice, _ = await speakers.find("anna-bell")  # at once, while the folder is still being read
        assert voice.id == "anna-bell"
        await speakers.remove("Anna Bell")
        with pytest.raises(NotFound):
            await speakers.find("anna-bell")
        with pytest.raises(NotFound):
            await speakers.remove("anna-bell")
        assert list((tmp_path / "elite").iterdir()) == []

    Stage(tmp_path, traits).play(scene)


@pytest.mark.parametrize(("traits", "error"), [(None, Unavailable), (PLAIN, CloningNotSupported)])
def test_no_voice_is_added_for_an_engine_that_may_not_use_it(tmp_path, traits, error):
    async def scene(speakers):
        with pytest.raises(error):
            await speakers.add("anna", recording(), Notes())
        assert list((tmp_path / "elite").iterdir()) == []

    Stage(tmp_path, traits).play(scene)


def test_what_voices_json_names_is_not_replaced_while_the_folder_is_still_being_read(tmp_path):
    write(tmp_path, "elite/anna.wav", recording(500.0))
    write(tmp_path, "voices.json", b'{"anna": "elite/anna.wav"}')

    async def scene(speakers):
        with pytest.raises(InvalidValue, match=r"voices\.json"):
            await speakers.add("anna", recording(), Notes())

    Stage(tmp_path, CLONING).play(scene)


def test_the_engine_s_own_names_are_taken(tmp_path):
    write(tmp_path, "elite/af_heart.wav")

    async def scene(speakers):
        with pytest.raises(InvalidValue, match="another voice"):
            await speakers.add("AF_heart", recording(), Notes())
        assert (await speakers.reload()).failed == {"af_heart": "The name is that of another voice."}

    Stage(tmp_path, CLONING).play(scene)


def test_a_voice_speaks_by_the_name_that_it_is_listed_with(tmp_path):
    write(tmp_path, "elite/Anna Bell.wav")

    async def scene(speakers):
        await speakers.wait()
        (name,) = (voice.name for voice in speakers.all if voice.id == "anna-bell")
        voice, reference = await speakers.resolve(SpeechRequest("One.", voice=name), CLONING)
        assert (voice.id, reference.sample is None) == ("anna-bell", False)

    Stage(tmp_path, CLONING).play(scene)


def test_a_first_reading_that_fails_silences_nobody(tmp_path):
    stage = Stage(tmp_path, CLONING)

    class Broken(Collection):
        def reload(self, *, taken: frozenset[str] = frozenset()) -> Change:
            raise RuntimeError("a fault of our own")

    class Told(Silence):
        def voices_lost(self, *, reason: str) -> None:
            stage.lost.append(reason)

    stage.events = Told()
    stage.collection = Broken(tmp_path, tmp_path / "voices.json", standard=frozenset())

    async def scene(speakers):
        await speakers.wait()
        voice, _ = await speakers.resolve(SpeechRequest("One."), CLONING)
        assert (voice.id, (await speakers.find("nova"))[0].id) == ("alloy", "nova")

    stage.play(scene)
    assert [reason.partition(" ")[0] for reason in stage.lost] == ["RuntimeError"]


def test_names_are_put_together_once_a_reading(tmp_path):
    async def scene(speakers):
        await speakers.wait()
        before, _ = speakers._at_hand(CLONING)
        assert speakers._at_hand(CLONING)[0] is before
        await speakers.add("anna", recording(), Notes())
        assert "anna" in {voice.id for voice in speakers.all}
        await speakers.remove("anna")
        assert "anna" not in {voice.id for voice in speakers.all}

    Stage(tmp_path, CLONING).play(scene)


BARE = Traits("tone", "1", 24_000, 2, {"en": 100}, can_clone=True)
LISTENING = Traits("tone", "1", 24_000, 2, {"en": 100}, can_clone=True, needs_transcript=True, model="Tone")


@pytest.mark.parametrize(
    ("traits", "fields", "param"),
    [
        pytest.param(BARE, {"voice": "nova"}, "voice", id="a name that nobody has recorded"),
        pytest.param(LISTENING, {"voice": "anna"}, "voice", id="a voice without its words"),
        pytest.param(LISTENING, {"sample": Sent(recording())}, "transcript", id="an upload without its words"),
    ],
)
def test_what_a_voice_lacks_is_said_before_anything_is_spoken(tmp_path, traits, fields, param):
    write(tmp_path, "elite/anna.wav")

    async def scene(speakers):
        await speakers.wait()
        with pytest.raises(VoiceNotRecorded) as raised:
            await speakers.resolve(SpeechRequest("One.", **fields), traits)
        assert raised.value.param == param

    Stage(tmp_path, traits).play(scene)


def test_only_a_registered_voice_may_be_kept_as_an_engine_hears_it(tmp_path):
    write(tmp_path, "elite/anna.wav")

    async def scene(speakers):
        await speakers.wait()
        _, anna = await speakers.resolve(SpeechRequest("One.", voice="anna"), BARE)
        _, guest = await speakers.resolve(
            SpeechRequest("One.", sample=Sent(recording()), transcript="La la"), LISTENING
        )
        assert (anna.is_kept, guest.is_kept, guest.transcript) == (True, False, "La la")

    Stage(tmp_path, BARE).play(scene)
