"""The batching engine over the scripted library: who comes, goes and fails, and what it costs the others."""

import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

from backends.base import Audio, BackendError, Done, Failed, Stopped
from backends.latents import Latents
from backends.on_voxcpm import sample_of
from backends.voices import Voices
from backends.voxcpm_vllm.direct import Direct
from backends.voxcpm_vllm.engine import BatchEngine
from backends.voxcpm_vllm.pooled import Pooled
from core.speech import REFERENCE_RATE, Params, Reference, Task, Utterance
from scripted_vllm import CHANNELS, PATCH, AcceleratorError, ScriptedPool, ScriptedServer, tokens

ENDS = Done | Failed | Stopped


def recording(hz=200.0, seconds=2.0):
    return np.sin(2 * np.pi * hz * np.arange(int(seconds * REFERENCE_RATE)) / REFERENCE_RATE).astype(np.float32) / 3


@dataclass
class Stage:
    """An engine, what it is made of, and what came of each task."""

    engine: BatchEngine
    server: ScriptedServer
    voices: Voices

    def __post_init__(self):
        self.heard = {}

    def add(self, number, text="one two three", *, key="a" * 64, transcript="", seed=None, **params):
        voice = Reference(key, transcript, is_kept=True)
        self.engine.add(Task(number, 1, Utterance(0, text, "en"), voice, Params(**params), seed))

    def step(self, times=1):
        for _ in range(times):
            for outcome in self.engine.step(0.05):
                self.heard.setdefault(outcome.task, []).append(outcome)

    def run(self, *numbers, timeout_s=20.0):
        began = time.monotonic()
        while not all(self.end(number) for number in numbers):
            assert time.monotonic() - began < timeout_s, self.heard
            self.step()
        return [self.end(number) for number in numbers]

    def end(self, number):
        ends = [each for each in self.heard.get(number, []) if isinstance(each, ENDS)]
        assert len(ends) < 2, "a task ends once"
        assert not ends or self.heard[number][-1] is ends[0], "nothing comes behind the end"
        return ends[0] if ends else None

    def patches(self, number):
        return [each.samples for each in self.heard.get(number, []) if isinstance(each, Audio)]


def stage(way="direct", *, room=400, latents=None):
    server = ScriptedServer()
    batch = Direct(server, tokens) if way == "direct" else Pooled(lambda: ScriptedPool(server), tokens)

    def prepare(reference):
        return {"latents": np.frombuffer(batch.encode(sample_of(reference)), np.float32).reshape(-1, CHANNELS)}

    voices = Voices(prepare, latents)
    engine = BatchEngine(batch, voices, room=room)
    engine.hold("a" * 64, recording())
    return Stage(engine, server, voices)


@pytest.fixture(params=["direct", "pool"])
def either(request):
    return stage(request.param)


def test_every_word_is_a_patch_and_the_last_one_is_followed_by_done(either):
    either.add(1)
    assert either.run(1) == [Done(1)]
    assert [len(each) for each in either.patches(1)] == [PATCH] * 3


def test_sixty_four_run_at_once_and_none_is_mixed_up(either):
    for number in range(64):
        either.engine.hold(f"{number:064}", recording(100.0 + 10 * number, 0.5))
        either.add(number, f"{'late' if number % 5 == 0 else 'word'} two three four", key=f"{number:064}")
    assert all(isinstance(end, Done) for end in either.run(*range(64)))
    for number in range(64):
        spectrum = np.abs(np.fft.rfft(np.concatenate(either.patches(number))))
        assert spectrum.argmax() / (4 * PATCH / 48_000) == pytest.approx(100.0 + 10 * number, abs=4)


def test_they_share_steps(either):
    for number in range(8):
        either.add(number, "word " * 10)
    either.run(*range(8))
    assert either.server.log.count("step") < 20


@pytest.mark.parametrize("after", range(6))
def test_one_that_is_cancelled_stops_once_at_any_moment_and_nobody_else_does(either, after):
    either.add(1, "one two three")
    either.add(2, "one two three four five six seven eight")
    either.step(after)
    either.engine.cancel(1)
    ends = either.run(1, 2)
    assert isinstance(ends[0], Stopped | Done)
    assert ends[1] == Done(2)
    assert len(either.patches(2)) == 8
    either.step(2)
    either.end(1)


def test_one_that_is_cancelled_before_a_step_never_reaches_the_library():
    scene = stage()
    scene.add(1)
    scene.engine.cancel(1)
    scene.engine.cancel(99)
    assert scene.run(1) == [Stopped(1)]
    assert scene.server.log == []


def test_what_is_asked_for_reaches_the_library():
    scene = stage()
    scene.server.loras = ["brisk"]
    scene.add(1, "as asked", seed=7, cfg_value=3.5, temperature=0.5, lora="brisk")
    scene.add(2, "as it is", transcript="what is said")
    scene.run(1, 2)
    asked, usual = scene.server.asked["as asked"], scene.server.asked["as it is"]
    names = ("seed", "cfg_value", "temperature", "lora_name")
    assert [asked[name] for name in names] == [7, 3.5, 0.5, "brisk"]
    assert (asked["prompt_text"], asked["prompt_latents"], asked["max_generate_length"]) == ("", None, 22)
    assert [usual[name] for name in names] == [None, 2.0, 1.0, None]
    assert usual["prompt_latents"] == usual["ref_audio_latents"] == asked["ref_audio_latents"]
    assert usual["prompt_text"] == "what is said"


@pytest.mark.parametrize("text", ["(a deep voice) Hello", "<s> Hello </s>"])
def test_no_text_is_a_command(text):
    scene = stage()
    scene.add(1, text)
    scene.run(1)
    assert not set("()<>") & set(*scene.server.asked)


@pytest.mark.parametrize(
    ("text", "fields", "says"),
    [
        pytest.param("one two", {"transcript": "word " * 400}, "no room to speak", id="a transcript without end"),
        pytest.param("word " * 140, {}, "no room to speak", id="a text that the memory cannot hold"),
        pytest.param("one two", {"lora": "nobody's"}, "Error at ", id="an adapter that is not there"),
        pytest.param("endless", {}, "came to its limit", id="speech that does not end"),
    ],
)
def test_what_cannot_be_spoken_fails_alone(either, text, fields, says):
    either.add(1, "one two three four five six")
    either.add(2, text, **fields)
    ends = either.run(1, 2)
    assert ends[0] == Done(1)
    assert says in ends[1].reason
    assert "nobody" not in ends[1].reason


def test_a_voice_without_a_recording_fails_alone(either):
    either.add(1, "one two three")
    either.add(2, key="alloy")
    ends = either.run(1, 2)
    assert ends[0] == Done(1)
    assert "KeyError" in ends[1].reason


def test_nothing_to_say_is_done_and_leaves_its_voice_prepared(either):
    either.add(1, "")
    assert either.run(1) == [Done(1)]
    assert either.server.log == ["encode_latents"]
    either.add(2)
    either.run(2)
    assert either.server.log.count("encode_latents") == 1


def test_running_speech_waits_for_one_voice_at_a_time():
    scene = stage()
    scene.add(0, "word " * 30)
    scene.step(2)
    for number in range(1, 6):
        scene.engine.hold(f"{number:064}", recording(100.0 * number))
        scene.add(number, key=f"{number:064}")
    scene.run(*range(6))
    calls = "".join(call[0] for call in scene.server.log if call != "add_request")
    assert calls.count("e") == 6
    assert "ee" not in calls


def test_a_voice_from_the_disk_costs_no_step(tmp_path):
    first = stage(latents=Latents(tmp_path, "1"))
    first.add(1)
    first.run(1)
    second = stage(latents=Latents(tmp_path, "1"))
    second.add(1)
    second.run(1)
    assert [each.server.log.count("encode_latents") for each in (first, second)] == [1, 0]


@pytest.mark.parametrize("moment", ["add", "first", "mid", "last"])
def test_a_gpu_that_has_failed_is_the_end_of_all(moment):
    scene = stage()
    scene.add(1, "word " * 20)
    scene.add(2, f"fault {moment} x x x x")
    with pytest.raises(AcceleratorError):
        scene.run(1, 2)


@pytest.mark.parametrize(("way", "error"), [("direct", IndexError), ("pool", BackendError)])
def test_an_engine_that_fails_in_a_step_is_the_end_of_all(way, error):
    scene = stage(way)
    scene.add(1, "bug mid x x x x x")
    with pytest.raises(error):
        scene.run(1)


def test_it_waits_for_work_and_does_not_spin(either):
    began, used = time.monotonic(), time.thread_time()
    assert either.engine.step(0.3) == []
    assert time.monotonic() - began >= 0.29
    assert time.thread_time() - used < 0.05


def test_work_that_comes_while_it_waits_is_begun_at_once(either):
    threading.Timer(0.05, either.add, [1]).start()
    began = time.monotonic()
    either.step()
    either.run(1)
    assert time.monotonic() - began < 1.0


def test_words_may_come_from_another_thread_while_it_steps(either):
    def talk():
        for number in range(40):
            either.add(number, "word " * 6)
            if number % 3 == 0:
                either.engine.cancel(number)

    thread = threading.Thread(target=talk)
    thread.start()
    ends = either.run(*range(40))
    thread.join()
    assert all(isinstance(end, Stopped | Done) for end in ends)
