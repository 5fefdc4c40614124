"""What was spoken in lately stays in memory, and is never another voice's."""

from pathlib import Path

import pytest

from core.speech import Voice
from harness.audit import watched
from harness.recording import recording
from voices.notes import Notes
from voices.reading import Custom
from voices.recordings import Recordings

BYTES = len(recording()) * 2
"""Of its samples, which are float32."""


def custom(folder: Path, name: str, transcript: str = "", hz: float = 200.0) -> Custom:
    path = folder / f"{name}.wav"
    path.write_bytes(recording(hz))
    return Custom(Voice(name, name), path, Notes(transcript=transcript))


def files_opened(recordings: Recordings, *customs: Custom) -> list[str]:
    opened: list[str] = []
    with watched(lambda event, args: opened.append(Path(str(args[0])).name) if event == "open" else None):
        for each in customs:
            recordings.get(each)
    return opened[::2]  # Python tells of each twice: of its own call, and of the system's


def test_two_voices_of_one_recording_do_not_push_each_other_out(tmp_path):
    one, other = custom(tmp_path, "a", "One."), custom(tmp_path, "a", "Two.")
    recordings = Recordings()
    assert recordings.get(one) != recordings.get(other)
    assert files_opened(recordings, one, other, one) == []


def test_the_least_recently_used_goes_when_there_are_too_many(tmp_path):
    first, second, third = (custom(tmp_path, name, hz=hz) for name, hz in (("a", 200.0), ("b", 300.0), ("c", 400.0)))
    recordings = Recordings(max_bytes=2 * BYTES + 1000)
    assert files_opened(recordings, first, second, first, third) == ["a.wav", "b.wav", "c.wav"]
    assert files_opened(recordings, first, third, second) == ["b.wav"]


@pytest.mark.parametrize("times", [3])
def test_one_that_changes_again_and_again_takes_its_own_room_alone(tmp_path, times):
    recordings = Recordings(max_bytes=2 * BYTES + 1000)
    kept = custom(tmp_path, "kept")
    recordings.get(kept)
    for number in range(times):
        recordings.get(custom(tmp_path, "changing", hz=300.0 + number))
    assert files_opened(recordings, kept) == []
