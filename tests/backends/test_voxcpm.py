"""VoxCPM by the real library, on checkpoints of random weights: loading, speaking, stopping, refusing."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from audio.decode import decode
from backends.base import BackendError, Stop
from backends.engines import VOXCPM, find
from backends.on_voxcpm import CHARS
from backends.voxcpm.backend import VoxcpmBackend
from checkpoints import voxcpm
from checkpoints.hostile import Opener
from core.settings import load_settings
from core.speech import Params, Reference, Task, Utterance
from harness.recording import recording

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow(file_s=20)]

SAMPLE = decode(recording(seconds=3.0), rate=24_000, max_s=10)
PLAIN = Reference("a" * 64, sample=SAMPLE)
WITH_WORDS = Reference("a" * 64, "what is said in it", SAMPLE)
SECONDS = voxcpm.PATCHES * 0.16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return voxcpm.write(tmp_path_factory.mktemp("checkpoints") / "voxcpm2")


@pytest.fixture(scope="module")
def first_folder(tmp_path_factory):
    return voxcpm.write(tmp_path_factory.mktemp("checkpoints") / "voxcpm", second=False)


def opened(folder, **settings):
    backend = VoxcpmBackend(load_settings(voxcpm_model=str(folder), **settings).options("voxcpm"))
    return backend, backend.load("cpu")


@pytest.fixture(scope="module")
def backend(folder):
    return opened(folder)[0]


@pytest.fixture(scope="module")
def first(first_folder):
    return opened(first_folder)[0]


def task(text="Hello there.", voice=PLAIN, *, seed=7, language="en", **params):
    return Task(1, 1, Utterance(0, text, language), voice, Params(**params), seed)


def pieces(backend, task, stop=None):
    return list(backend.speak(task, backend.prepare(task.voice), stop or Stop()))


def spoken(backend, task):
    return np.concatenate(pieces(backend, task))


def test_both_say_what_they_are(folder, first_folder):
    _, second = opened(folder)
    assert (second.model, second.sample_rate, second.needs_transcript) == ("VoxCPM2", 48_000, False)
    assert len(second.languages) == 30
    _, first = opened(first_folder)
    assert (first.model, first.sample_rate, first.needs_transcript) == ("VoxCPM", 44_100, True)
    assert set(first.languages) == {"en", "zh"}
    assert first.can_clone
    assert second.can_clone


@pytest.mark.parametrize("language", CHARS)
def test_every_language_is_spoken(backend, language):
    text = {"zh": "你好，世界。", "ja": "こんにちは。", "ar": "مرحبا", "th": "สวัสดี", "ko": "안녕하세요"}.get(
        language, "Olá, ça va?"
    )
    samples = spoken(backend, task(text, language=language))
    assert samples.dtype == np.float32
    assert len(samples) / 48_000 == pytest.approx(SECONDS)


def test_it_comes_patch_by_patch(backend, first):
    assert [len(piece) for piece in pieces(backend, task())] == [7680] * voxcpm.PATCHES
    assert [len(piece) for piece in pieces(first, task(voice=WITH_WORDS))] == [7056] * voxcpm.PATCHES


def test_the_same_seed_says_the_same_and_another_one_does_not(backend):
    first, again, other = (spoken(backend, task(seed=seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert np.abs(first - other).max() > 0
    assert np.abs(spoken(backend, task(seed=None)) - spoken(backend, task(seed=None))).max() > 0


def test_voice_transcript_and_guidance_change_the_sound(backend):
    usual = spoken(backend, task())
    other_voice = Reference("b" * 64, sample=decode(recording(90.0, 3.0), rate=24_000, max_s=10))
    for other in (task(voice=WITH_WORDS), task(voice=other_voice), task(cfg_value=4.0)):
        assert np.abs(spoken(backend, other) - usual).max() > 0


def test_steps_of_the_operator_hold_and_are_part_of_the_revision(folder, backend):
    finer, traits = opened(folder, voxcpm_inference_timesteps=4)
    assert np.abs(spoken(finer, task()) - spoken(backend, task())).max() > 0
    assert traits.revision != opened(folder)[1].revision


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # librosa imports what Python will drop
@pytest.mark.parametrize("name", ["ref_audio_feat", "audio_feat"])
def test_features_are_the_ones_that_the_library_makes_of_a_file(backend, tmp_path, name):
    (tmp_path / "voice.wav").write_bytes(recording(seconds=3.03, rate=16_000))
    path = str(tmp_path / "voice.wav")
    theirs = backend._model.build_prompt_cache("words", path, path)[name].numpy()
    sample = decode((tmp_path / "voice.wav").read_bytes(), rate=24_000, max_s=9)
    ours = backend.prepare(Reference("c" * 64, "words", sample))[name]
    assert ours.shape == theirs.shape
    # Resampling differs at the ends; padding on the wrong side would move all of it.
    assert np.median(np.abs(ours - theirs)[2:-2]) < 0.02 * np.abs(theirs).max()


@pytest.mark.parametrize("after", [0, 1, 3])
def test_it_stops_between_two_patches_and_stays_clean(folder, backend, after):
    stop = Stop()
    running = backend.speak(task(seed=1), backend.prepare(PLAIN), stop)
    for _ in range(after):
        next(running)
    stop.set()
    assert list(running) == []
    assert (spoken(backend, task(seed=9)) == spoken(opened(folder)[0], task(seed=9))).all()


def test_one_that_is_dropped_in_the_middle_leaves_the_model_clean(folder, backend):
    running = backend.speak(task(seed=1), backend.prepare(PLAIN), Stop())
    next(running)
    running.close()
    assert (spoken(backend, task(seed=9)) == spoken(opened(folder)[0], task(seed=9))).all()


def test_no_voice_is_built_in_and_the_first_models_need_words(backend, first):
    with pytest.raises(KeyError):
        backend.prepare(Reference("alloy"))
    with pytest.raises(BackendError, match="what is said"):
        first.prepare(PLAIN)


@pytest.mark.parametrize("text", ["(a deep voice) Hello", "（低い声）こんにちは", "((((", "[x](y)"])
def test_no_text_is_taken_for_a_description_of_the_voice(backend, text, monkeypatch):
    asked = []
    real = backend._model.generate_with_prompt_cache_streaming
    monkeypatch.setattr(
        backend._model,
        "generate_with_prompt_cache_streaming",
        lambda **told: asked.append(told["target_text"]) or real(**told),
    )
    pieces(backend, task(text))
    assert all(told[0] not in "(（[" for told in asked)
    assert bool(asked) == any(char.isalnum() for char in text)


def test_a_voice_that_leaves_no_room_to_speak_is_an_error_and_no_stump(backend):
    with pytest.raises(BackendError, match="no room"):
        pieces(backend, task(voice=Reference("d" * 64, "word " * 200, SAMPLE)))


def test_speech_that_comes_to_the_limit_is_an_error(backend, monkeypatch):
    monkeypatch.setattr(backend, "_limit", lambda *told: 2)
    with pytest.raises(BackendError, match="limit"):
        pieces(backend, task())


def test_words_of_a_recording_that_is_not_heard_to_its_end_are_left_out(backend, first):
    long = Reference("e" * 64, "what is said in it", np.tile(SAMPLE, 11))
    assert set(backend.prepare(long)) == {"ref_audio_feat"}
    with pytest.raises(BackendError, match="30 s"):
        first.prepare(long)


@pytest.mark.parametrize("text", ["a</s>b<s>", "<|im_end|>", "＜s＞"])
def test_what_is_spoken_is_never_a_command_to_the_model(backend, text, monkeypatch):
    asked = []
    real = backend._model.generate_with_prompt_cache_streaming
    spy = lambda **told: asked.append(told) or real(**told)  # noqa: E731
    monkeypatch.setattr(backend._model, "generate_with_prompt_cache_streaming", spy)
    pieces(backend, task("Say " + text, voice=Reference("a" * 64, text + " was said", SAMPLE)))
    for said in (asked[0]["target_text"], asked[0]["prompt_cache"]["prompt_text"]):
        assert not {1, 2} & set(backend._model.text_tokenizer(said))


def without_a_tensor(copy):
    held = load_file(copy / "model.safetensors")
    held.pop("stop_proj.bias")
    save_file(held, str(copy / "model.safetensors"))


def without_a_tensor_of_the_vocoder(copy):
    held = torch.load(copy / "audiovae.pth", weights_only=True)
    held["state_dict"].pop(next(iter(held["state_dict"])))
    torch.save(held, copy / "audiovae.pth")


def of_another_shape(copy):
    held = load_file(copy / "model.safetensors")
    held["stop_proj.bias"] = torch.zeros(3)
    save_file(held, str(copy / "model.safetensors"))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda copy: (copy / "model.safetensors").unlink(), "model.safetensors or pytorch_model.bin is missing"),
        (lambda copy: (copy / "audiovae.pth").unlink(), "audiovae.pth is missing"),
        (lambda copy: (copy / "tokenizer.json").unlink(), "tokenizer.json is missing"),
        (lambda copy: (copy / "tokenizer.json").write_text("{}"), "damaged"),
        (lambda copy: (copy / "model.safetensors").write_bytes(b"\0" * 50), "damaged"),
        (lambda copy: (copy / "audiovae.pth").write_bytes(b"\0" * 50), "damaged|more than weights"),
        (without_a_tensor, "lacks 1 of the model's tensors: stop_proj.bias"),
        (of_another_shape, "damaged"),
        (without_a_tensor_of_the_vocoder, "audiovae.pth lacks 1 of the model's tensors"),
        (lambda copy: torch.save({"a": Opener(copy / "run")}, copy / "audiovae.pth"), "could run anything"),
        (lambda copy: (copy / "config.json").write_text("{"), "config.json"),
        (lambda copy: (copy / "config.json").write_text(json.dumps({"architecture": "gpt"})), "another model"),
    ],
)
def test_a_checkpoint_that_is_none_is_refused_by_name(folder, tmp_path, spoil, says):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    spoil(copy)
    with pytest.raises(BackendError, match=says):
        opened(copy)
    assert not (copy / "run").exists()


def test_a_missing_checkpoint_says_how_to_get_it(tmp_path):
    with pytest.raises(BackendError, match="_MODEL"):
        find(VOXCPM, {"voxcpm_model": "openbmb/VoxCPM2", "tts_home": tmp_path})
    voxcpm.write(tmp_path / "openbmb--VoxCPM2")
    assert find(VOXCPM, {"voxcpm_model": "openbmb/VoxCPM2", "tts_home": tmp_path}) == tmp_path / "openbmb--VoxCPM2"
