"""From a request to bytes over a real child process with a scripted backend."""

import asyncio
import io
import os
import signal
import threading
import time
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from core.errors import (
    CloningNotSupported,
    DeadlineExceeded,
    InvalidValue,
    Overloaded,
    SpeechError,
    UnknownVoice,
    UnsupportedLanguage,
)
from core.events import Events, Silence
from core.settings import load_settings
from core.speech import AudioFormat, Priors, SpeechRequest
from harness.recording import recording
from synthesis.compose import open_synthesizer
from synthesis.synthesizer import Synthesizer
from voices.notes import Notes

pytestmark = pytest.mark.usefixtures("fakes_path")

PCM = SpeechRequest("one two three four. " * 3, format=AudioFormat.PCM)


class Ends(Silence):
    """How answers ended."""

    def __init__(self) -> None:
        self.outcomes = []

    def job_ended(self, *, outcome: str, **fields: object) -> None:
        self.outcomes.append(outcome)


def play(scene, backend="make", events: Events | None = None, **overrides):
    """Run `scene(synthesizer)` against a fresh synthesizer."""

    async def main():
        settings = load_settings(tts_backend=f"tone_backend:{backend}", **overrides)
        async with open_synthesizer(settings, events or Silence()) as synthesizer:
            return await asyncio.wait_for(scene(synthesizer), 30)

    return asyncio.run(main())


async def read(synthesizer: Synthesizer, request: SpeechRequest) -> bytes:
    stream = await synthesizer.speak(request)
    try:
        return b"".join([data async for data in stream])
    finally:
        await stream.aclose()


async def until_free(synthesizer: Synthesizer) -> float:
    began = time.monotonic()
    while synthesizer.status().pool.busy:
        await asyncio.sleep(0.005)
    return time.monotonic() - began


def test_streamed_and_whole_answers_hold_the_same_sound():
    async def scene(synthesizer):
        pcm = await read(synthesizer, PCM)
        whole = await read(synthesizer, replace(PCM, format=AudioFormat.WAV, streamed=False))
        with wave.open(io.BytesIO(whole)) as file:
            assert file.readframes(file.getnframes()) == pcm
        assert synthesizer.status().outcomes == {"done": 2}

    play(scene)


@pytest.mark.parametrize("backend", ["make", "make_padded"])
@pytest.mark.parametrize("paced", [False, True])
def test_a_client_that_reads_gets_the_whole_of_a_text_far_longer_than_the_lead(backend, paced):
    """With silence that is cut off and pauses that are put in, for that is what the two sides count differently."""
    text = "\n\n".join(["One two three four five six seven, nine and ten and eleven words are in this line here."] * 16)

    async def scene(synthesizer):
        audio = await read(synthesizer, replace(PCM, text=text, paced=paced, speed=4.0))
        assert len(audio) / 2 / 24_000 > 5
        assert synthesizer.status().outcomes == {"done": 1}

    play(scene, backend=backend, stream_lead_s=6.0)


@pytest.mark.parametrize("speed", [0.25, 0.5, 2.0, 4.0])
def test_the_length_ratio_is_the_speed_that_was_asked_for(speed):
    async def scene(synthesizer):
        plain = len(await read(synthesizer, PCM))
        assert plain / len(await read(synthesizer, replace(PCM, speed=speed))) == pytest.approx(speed, rel=0.05)

    play(scene)


@pytest.mark.parametrize("text", ["😀", "***", "...", "—"])
def test_a_text_with_nothing_to_say_is_a_short_silence(text):
    async def scene(synthesizer):
        assert len(await read(synthesizer, replace(PCM, text=text))) == 0.3 * 24_000 * 2
        assert synthesizer.status().pool.busy == 0

    play(scene)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        pytest.param({"voice": "nobody"}, UnknownVoice, id="unknown voice"),
        pytest.param({"voice": "../../etc/passwd"}, UnknownVoice, id="a path is an unknown voice"),
        pytest.param({"language": "fr"}, UnsupportedLanguage, id="a language that the backend lacks"),
        pytest.param({"language": "!!"}, UnsupportedLanguage, id="no language at all"),
        pytest.param({"sample": b"RIFF"}, CloningNotSupported, id="a sample"),
        pytest.param({"sample_rate": 44_099}, InvalidValue, id="a rate that nothing carries"),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_work(change, error):
    async def scene(synthesizer):
        with pytest.raises(error) as caught:
            await synthesizer.speak(replace(PCM, **change))
        assert "passwd" not in str(caught.value)
        assert synthesizer.status().pool.jobs == 0

    play(scene)


@pytest.mark.parametrize("moment", ["before sound", "in mid-stream"])
def test_closing_or_cancelling_frees_the_slot(moment):
    async def scene(synthesizer):
        request = replace(PCM, text="slow " * 60)
        speaking = asyncio.create_task(synthesizer.speak(request))
        if moment == "before sound":
            while not synthesizer.status().pool.busy:
                await asyncio.sleep(0.005)
            speaking.cancel()
        else:
            await (await speaking).aclose()
        assert await until_free(synthesizer) < 0.3
        await asyncio.gather(speaking, return_exceptions=True)
        assert synthesizer.status().outcomes == {"cancelled": 1}

    play(scene)


def test_a_worker_killed_in_mid_stream_gives_all_of_the_audio_or_an_error():
    async def scene(synthesizer):
        full = len(await read(synthesizer, PCM))
        for delay in (0.0, 0.02, 0.1):
            reading = asyncio.create_task(read(synthesizer, PCM))
            await asyncio.sleep(delay)
            for pid in synthesizer.status().pids.values():
                os.kill(pid, signal.SIGKILL)
            (result,) = await asyncio.gather(reading, return_exceptions=True)
            assert isinstance(result, SpeechError) or len(result) == full

    play(scene)


@pytest.mark.parametrize("delay_s", [0.3, 0.8, 1.3])
def test_a_worker_killed_under_an_answer_that_leaves_whole_costs_it_nothing_but_time(delay_s):
    request = replace(PCM, text="slow " * 40, streamed=False)

    async def scene(synthesizer):
        full = len(await read(synthesizer, replace(PCM, text="one " * 40)))
        reading = asyncio.create_task(read(synthesizer, request))
        await asyncio.sleep(delay_s)
        for pid in synthesizer.status().pids.values():
            os.kill(pid, signal.SIGKILL)
        assert len(await reading) == full

    play(scene)


@pytest.mark.parametrize("minutes", [0, 10])
def test_the_memory_of_a_whole_answer_is_counted_until_its_client_has_it(tmp_path, minutes):
    whole = replace(PCM, text="one two three four. " * 20, format=AudioFormat.WAV, streamed=False)

    async def scene(synthesizer):
        first = await synthesizer.speak(whole)  # made to its end; nobody has taken anything of it
        await asyncio.sleep(0.1)
        with pytest.raises(Overloaded):
            await synthesizer.speak(replace(whole, seed=1))
        with pytest.raises(Overloaded):
            await synthesizer.speak(replace(whole, seed=1, cached=False))
        await first.aclose()
        assert await read(synthesizer, replace(whole, seed=2))

    play(scene, max_spool_bytes=2**20, cache_ttl_minutes=minutes, audio_cache_dir=tmp_path / "cache")


def test_who_waits_for_the_engine_to_load_is_counted_and_bounded():
    async def scene(synthesizer):
        waiting = asyncio.create_task(read(synthesizer, PCM))
        await asyncio.sleep(0)
        status = synthesizer.status()
        assert (status.state, status.in_flight, status.waiting) == ("loading", 1, 1)
        assert not status.accepts_requests
        with pytest.raises(Overloaded):
            await synthesizer.speak(PCM)
        assert await waiting
        assert synthesizer.status().outcomes == {"rejected": 1, "done": 1}

    play(scene, "make_slow_to_load", max_queue_length=1)


def test_the_deadline_runs_while_the_engine_loads():
    events = Ends()

    async def scene(synthesizer):
        began = time.monotonic()
        with pytest.raises(DeadlineExceeded, match=r"after 0\.2 s"):
            await synthesizer.speak(PCM)
        assert time.monotonic() - began < 1
        assert synthesizer.status().outcomes == {"failed": 1}
        assert events.outcomes == ["failed"]

    play(scene, "make_slow_to_load", events, deadline_seconds=0.2)


def test_who_will_not_wait_for_the_engine_to_load_is_told_so_at_once_and_when_it_will_have(tmp_path):
    events = Ends()

    async def scene(synthesizer):
        began = time.monotonic()
        with pytest.raises(Overloaded) as refused:
            await synthesizer.speak(replace(PCM, max_wait_s=0.2))
        assert time.monotonic() - began < 0.1
        assert refused.value.retry_after_s == pytest.approx(Priors().start_s - 0.2, abs=0.5)
        assert synthesizer.status().outcomes == {"rejected": 1}
        assert events.outcomes == ["rejected"]

    play(scene, "make_slow_to_load", events, state_dir=tmp_path)


def test_who_was_let_in_while_the_engine_loaded_is_not_refused_once_it_has(tmp_path):
    async def scene(synthesizer):
        request = replace(PCM, text="slow " * 100)
        speaking = [asyncio.create_task(read(synthesizer, request)) for _ in range(12)]
        while synthesizer.status().state == "loading":
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        with pytest.raises(Overloaded):
            await synthesizer.speak(request)
        assert not any(each.done() for each in speaking)
        for each in speaking:
            each.cancel()
        await asyncio.wait(speaking)

    # More than a start is thought to take that nobody has seen yet, and less than so many texts take.
    play(scene, "make_slow_to_load", max_queue_seconds=Priors().start_s + 1, state_dir=tmp_path)


@contextmanager
def library_in_use(synthesizer: Synthesizer) -> Iterator[None]:
    """As long as another change of it takes; the first reading comes behind that."""
    with synthesizer.speakers._collection._lock:
        synthesizer.speakers.open()
        yield


def test_the_deadline_runs_while_the_voices_are_read_and_who_waits_for_them_is_counted(tmp_path):
    async def scene(synthesizer):
        while not synthesizer.status().is_ready:
            await asyncio.sleep(0.005)
        with library_in_use(synthesizer):
            waiting = asyncio.create_task(synthesizer.speak(PCM))
            await asyncio.sleep(0)
            assert (synthesizer.status().in_flight, synthesizer.status().waiting) == (1, 1)
            with pytest.raises(DeadlineExceeded, match=r"voices were still loading after 0\.2 s"):
                await waiting
        assert await read(synthesizer, PCM)

    play(scene, "make_cloning", deadline_seconds=0.2, voice_asset_dir=tmp_path)


def test_an_engine_that_cannot_clone_waits_for_no_voices(tmp_path):
    async def scene(synthesizer):
        await read(synthesizer, PCM)
        with library_in_use(synthesizer):
            assert await read(synthesizer, PCM)

    play(scene, "make", voice_asset_dir=tmp_path)


@pytest.mark.parametrize("tag", ["en-US", "EN", "en_GB"])
def test_a_voice_s_language_may_be_any_tag_of_one_that_the_engine_speaks(tmp_path, tag):
    async def scene(synthesizer):
        await read(synthesizer, PCM)
        await synthesizer.speakers.add("anna", recording(), Notes(language=tag))
        assert await read(synthesizer, replace(PCM, voice="anna"))

    play(scene, "make_cloning", voice_asset_dir=tmp_path)


def test_two_voices_of_one_recording_and_two_transcripts_share_no_answer(tmp_path):
    async def scene(synthesizer):
        await read(synthesizer, PCM)
        for name, transcript in (("anna", "One."), ("bell", "Two.")):
            await synthesizer.speakers.add(name, recording(), Notes(transcript=transcript))
        for name in ("anna", "bell"):
            answer = await synthesizer.speak(replace(PCM, voice=name))
            assert answer.cache == "MISS"
            await answer.aclose()

    play(
        scene, "make_cloning", voice_asset_dir=tmp_path / "voices", cache_ttl_minutes=10, audio_cache_dir=tmp_path / "c"
    )


def test_nothing_is_made_far_ahead_of_a_client_that_does_not_read():
    async def scene(synthesizer):
        stream = await synthesizer.speak(replace(PCM, text="word word word word. " * 400))
        await asyncio.sleep(0.5)
        await until_free(synthesizer)
        assert stream.audio_s < 1
        assert synthesizer.status().pool.queued > 5
        await stream.aclose()

    play(scene, stream_lead_s=5.0)


def test_speech_does_not_wait_behind_recordings():
    is_held = threading.Event()

    async def scene(synthesizer):
        holding = asyncio.get_running_loop().run_in_executor(synthesizer.uploads._thread, is_held.wait, 20)
        upload = synthesizer.uploads.begin()
        upload.fill(recording())
        guest = asyncio.create_task(synthesizer.speak(replace(PCM, sample=upload)))
        assert await asyncio.wait_for(read(synthesizer, PCM), 10)
        assert not guest.done()
        is_held.set()
        await holding
        await (await guest).aclose()
        upload.close()

    play(scene, "make_cloning")


def test_a_server_without_a_cache_removes_what_was_kept_before(tmp_path):
    async def scene(synthesizer):
        assert await read(synthesizer, PCM)

    folder = {"audio_cache_dir": tmp_path / "cache"}
    play(scene, cache_ttl_minutes=10, **folder)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    (tmp_path / "cache" / "notes.txt").write_text("mine")
    play(scene, **folder)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["notes.txt"]


def test_what_a_voice_says_while_it_is_deleted_is_not_kept(tmp_path):
    async def scene(synthesizer):
        assert await read(synthesizer, replace(PCM, cached=False))
        await synthesizer.speakers.add("anna", recording(), Notes())
        answer = await synthesizer.speak(replace(PCM, text="slow two three four", voice="anna"))
        await synthesizer.remove_voice("anna")
        assert b"".join([data async for data in answer])
        await answer.aclose()

    settings = {"cache_ttl_minutes": 10, "audio_cache_dir": tmp_path / "cache", "voice_asset_dir": tmp_path / "voices"}
    play(scene, "make_cloning", **settings)
    assert list((tmp_path / "cache").iterdir()) == []
