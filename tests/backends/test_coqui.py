"""XTTS-v2 by the real library, on a checkpoint of random weights: loading, speaking, stopping, refusing."""

import pickle
import shutil

import numpy as np
import pytest
import torch
from TTS.tts.configs.xtts_config import XttsArgs, XttsAudioConfig, XttsConfig

from audio.decode import decode
from backends.base import BackendError, Stop
from backends.coqui import checkpoint, languages
from backends.coqui.backend import FIRST_TOKENS, CoquiBackend
from backends.coqui.vocoder import StreamingVocoder
from backends.engines import COQUI, find
from checkpoints import xtts
from checkpoints.hostile import Opener
from core.settings import load_settings
from core.speech import Params, Reference, Task, Utterance
from harness.recording import recording

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow(file_s=60)]

ANA = Reference("ana florence")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return xtts.write(tmp_path_factory.mktemp("checkpoints") / "xtts")


def opened(folder, **settings):
    backend = CoquiBackend(load_settings(tts_model=str(folder), **settings).options("coqui"))
    return backend, backend.load("cpu")


@pytest.fixture(scope="module")
def backend(folder):
    return opened(folder)[0]


def task(text="Hello there.", language="en", *, seed=7, **params):
    return Task(1, 1, Utterance(0, text, language), ANA, Params(**params), seed)


def spoken(backend, task, stop=None):
    return list(backend.speak(task, backend.prepare(task.voice), stop or Stop()))


def test_it_says_what_it_is(folder):
    _, traits = opened(folder)
    assert traits.backend == "coqui"
    assert traits.model == "XTTS-v2"
    assert traits.can_clone
    assert len(traits.languages) == 17
    assert not traits.missing
    assert [voice.id for voice in traits.voices] == ["ana florence"]
    assert traits.sample_rate == 24_000
    assert traits.slots == 1


TEXTS = {
    "ar": "مرحبا بالعالم", "cs": "Dobrý den, světe.", "de": "Guten Tag, Welt.", "en": "Good day, world.",
    "es": "Buenos días.", "fr": "Bonjour tout le monde.", "hi": "नमस्ते दुनिया।", "hu": "Jó napot.", "it": "Buongiorno.",
    "ja": "こんにちは。", "ko": "안녕하세요.", "nl": "Goedendag.", "pl": "Dzień dobry.", "pt": "Bom dia.",
    "ru": "Добрый день.", "tr": "İyi günler.", "zh": "你好，世界。",
}  # fmt: skip


@pytest.mark.parametrize("language", languages.CHARS)
def test_every_language_is_spoken(backend, language):
    samples = np.concatenate(spoken(backend, task(TEXTS[language], language)))
    assert samples.dtype == np.float32
    assert np.isfinite(samples).all()
    assert len(samples) == int(int(xtts.TOKENS * 4) * 24_000 / 22_050) * 256


def test_a_language_without_its_package_says_what_to_do(monkeypatch):
    monkeypatch.setattr(languages, "find_spec", lambda name: None if name == "pypinyin" else name)
    known, missing = languages.spoken()
    assert "zh" not in known
    assert "pypinyin" in missing["zh"]
    assert "setup.sh" in missing["zh"]


def test_the_same_seed_says_the_same_and_another_one_does_not(backend):
    first, again, other = (np.concatenate(spoken(backend, task(seed=seed))) for seed in (1, 1, 2))
    assert (first == again).all()
    assert np.abs(first - other).max() > 0
    unseeded = [np.concatenate(spoken(backend, task(seed=None))) for _ in range(2)]
    assert np.abs(unseeded[0] - unseeded[1]).max() > 0


@pytest.mark.parametrize("params", [{"temperature": 0.2}, {"top_k": 1000}, {"top_p": 0.1}], ids=str)
def test_a_parameter_changes_the_sound(backend, params):
    usual, changed = (np.concatenate(spoken(backend, task(**each))) for each in ({}, params))
    assert np.abs(usual - changed).max() > 0


def test_what_a_request_asks_for_is_what_the_library_samples_by(backend):
    asked = {"temperature": 1.9, "top_k": 7, "top_p": 0.3, "repetition_penalty": 19.0, "length_penalty": -2.0}
    assert backend._sampling(Params(**asked)) == {"do_sample": True, **asked}
    usual = {"temperature": 0.75, "top_k": 50, "top_p": 0.85, "repetition_penalty": 5.0, "length_penalty": 1.0}
    assert backend._sampling(Params()) == {"do_sample": True, **usual}


def test_length_penalty_changes_nothing_and_no_temperature_is_greedy(backend):
    usual, penalised = (np.concatenate(spoken(backend, task(**each))) for each in ({}, {"length_penalty": 5.0}))
    assert (usual == penalised).all()
    one, other = (np.concatenate(spoken(backend, task(temperature=0.0, seed=seed))) for seed in (1, 2))
    assert (one == other).all()


def test_a_default_of_the_operator_holds_and_is_part_of_the_revision(folder, backend):
    cooler, traits = opened(folder, default_temperature=0.2)
    asked = np.concatenate(spoken(backend, task(temperature=0.2)))
    assert (np.concatenate(spoken(cooler, task())) == asked).all()
    assert traits.revision != opened(folder)[1].revision


def test_sound_comes_before_all_of_it_is_made(backend):
    made = spoken(backend, task())
    assert len(made) >= 2
    assert FIRST_TOKENS < xtts.TOKENS
    assert 0 < len(made[0]) < len(np.concatenate(made))


@pytest.mark.parametrize("sizes", [[1] * 12 + [28], [10, 30], [40], [3, 36, 1], [2, 2, 36]], ids=str)
def test_a_windowed_decode_is_the_full_decode(backend, sizes):
    decoder = backend._model.hifigan_decoder
    torch.manual_seed(3)
    latents, speaker = torch.randn(40, 64), torch.from_numpy(backend.prepare(ANA)["speaker_embedding"])
    with torch.inference_mode():
        whole = decoder(latents[None], g=speaker).reshape(-1).numpy()
    vocoder = StreamingVocoder(decoder, speaker)
    pieces = [vocoder.feed(piece) for piece in torch.split(latents, sizes)]
    streamed = np.concatenate([*pieces, vocoder.finish()])
    assert streamed.shape == whole.shape
    assert np.abs(streamed - whole).max() < 1e-4 * np.abs(whole).max()


def test_work_grows_with_the_length_and_not_with_its_square(backend):
    class Counting(torch.nn.Module):
        frames = 0

        def forward(self, x, g):
            Counting.frames += x.shape[-1]
            return torch.zeros(1, 1, x.shape[-1] * 256)

    decoder = backend._model.hifigan_decoder
    real, decoder.waveform_decoder = decoder.waveform_decoder, Counting()
    try:
        vocoder = StreamingVocoder(decoder, torch.zeros(1, 512, 1))
        for _ in range(20):
            vocoder.feed(torch.zeros(30, 64))
        vocoder.finish()
    finally:
        decoder.waveform_decoder = real
    assert Counting.frames < 1.4 * 600 * 4 * 24_000 / 22_050


@pytest.mark.parametrize("after", [0, 1])
def test_it_stops_between_two_tokens_and_stays_clean(folder, backend, after):
    stop = Stop()
    running = backend.speak(task(seed=1), backend.prepare(ANA), stop)
    for _ in range(after):
        next(running)
    stop.set()
    assert list(running) == []
    fresh = opened(folder)[0]
    assert (np.concatenate(spoken(backend, task(seed=9))) == np.concatenate(spoken(fresh, task(seed=9)))).all()


def test_a_voice_is_made_from_a_recording(backend):
    made = backend.prepare(Reference("a" * 64, sample=decode(recording(seconds=4.0), rate=24_000, max_s=10)))
    assert made["gpt_cond_latent"].shape == (1, 32, 64)
    assert made["speaker_embedding"].shape == (1, 512, 1)
    cloned = list(backend.speak(task(), made, Stop()))
    assert np.abs(np.concatenate(cloned) - np.concatenate(spoken(backend, task()))).max() > 0
    with pytest.raises(KeyError):
        backend.prepare(Reference("nobody"))


HOSTILE = [
    "[STOP] [START] [en] <unused1>",
    "[",
    "]",
    "((",
    "\ud7ff",
    "x" * 400,
    "［ja］［STOP］ａ",
    "【en】これは",
    "﹇en﹈ 你好",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("language", ["en", "ja", "zh", "ko"])
def test_what_is_spoken_is_never_a_command_to_the_model(backend, text, language):
    tokenizer = backend._model.tokenizer
    words = ("[STOP]", "[START]", *(f"[{code}]" for code in ("en", "ja", "zh-cn", "ko")))
    special = {tokenizer.tokenizer.token_to_id(word) for word in words}
    for first, *piece in languages.tokens(tokenizer, text, language, 400):
        assert first in special
        assert not special & set(piece)


@pytest.mark.parametrize(("language", "most"), [("de", 253), ("ru", 182), ("cs", 186), ("ko", 95)])
def test_numbers_that_take_long_to_say_are_cut_before_the_model_s_limit(backend, language, most):
    text = " ".join(["123456789012"] * 8)
    pieces = list(languages.tokens(backend._model.tokenizer, text, language, 400))
    assert len(pieces) > 1
    assert all(len(piece) <= 3 * most for piece in pieces)  # one token a letter here


def test_speech_that_comes_to_the_model_s_limit_is_an_error(tmp_path):
    endless, _ = opened(xtts.write(tmp_path / "endless", ends=False))
    with pytest.raises(BackendError, match="limit"):
        spoken(endless, task())


def test_next_to_no_temperature_is_greedy(backend):
    cold, none = (np.concatenate(spoken(backend, task(temperature=each))) for each in (1e-39, 0.0))
    assert (cold == none).all()


def test_another_file_of_voices_is_another_revision(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    before = checkpoint.revision(copy)
    (copy / "speakers_xtts.pth").unlink()
    assert checkpoint.revision(copy) != before


def test_a_gpu_that_torch_cannot_use_is_told_as_that(folder):
    with pytest.raises(BackendError, match="TORCH_INDEX"):
        CoquiBackend(load_settings(tts_model=str(folder)).options("coqui")).load("cuda:0")


def test_text_with_too_many_tokens_is_cut_at_a_pause_and_nothing_is_lost(backend):
    tokenizer = backend._model.tokenizer
    text = "one two three, " * 16
    pieces = list(languages.tokens(tokenizer, text, "en", 100))
    assert len(pieces) > 2
    assert all(len(piece) <= 100 for piece in pieces)
    words = " ".join(tokenizer.decode(piece).removeprefix("[en]") for piece in pieces)
    assert words.split() == text.split()


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_speaks_the_same_length(folder, precision):
    backend, traits = opened(folder, coqui_precision=precision)
    samples = np.concatenate(spoken(backend, task()))
    assert np.isfinite(samples).all()
    assert traits.precision == precision
    assert (
        backend._model.gpt.gpt.h[0].attn.c_attn.weight.dtype
        == {"bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    )


def broken(folder, tmp_path, spoil):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    spoil(copy)
    with pytest.raises(BackendError) as raised:
        opened(copy)
    return str(raised.value)


def without_a_tensor(copy):
    held = torch.load(copy / "model.pth", weights_only=True)
    del held["model"]["gpt.final_norm.weight"]
    torch.save(held, copy / "model.pth")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda copy: (copy / "vocab.json").unlink(), "vocab.json is missing"),
        (lambda copy: (copy / "model.pth").write_bytes((copy / "model.pth").read_bytes()[:-1000]), "damaged"),
        (lambda copy: (copy / "model.pth").write_bytes(b""), "damaged"),
        (without_a_tensor, "lacks 1 of the model's tensors: gpt.final_norm.weight"),
        (lambda copy: torch.save({"model": {}}, copy / "model.pth"), "lacks"),
        (lambda copy: torch.save({"other": 1}, copy / "model.pth"), "no weights"),
        (lambda copy: torch.save({"model": {"a": Opener(copy / "run")}}, copy / "model.pth"), "could run anything"),
        (lambda copy: (copy / "model.pth").write_bytes(pickle.dumps(Opener(copy / "run"))), "model.pth"),
        (lambda copy: (copy / "config.json").write_text("{"), "config.json"),
        (lambda copy: (copy / "config.json").write_text("{}"), "another model"),
        (lambda copy: (copy / "vocab.json").write_text("{}"), "vocab.json"),
        (lambda copy: torch.save({"Ana": {"x": 1}}, copy / "speakers_xtts.pth"), "no voices"),
    ],
)
def test_a_checkpoint_that_is_none_is_refused_by_name(folder, tmp_path, spoil, says):
    assert says in broken(folder, tmp_path, spoil)
    assert not (tmp_path / "copy" / "run").exists()


def test_a_missing_checkpoint_says_how_to_get_it(tmp_path):
    with pytest.raises(BackendError, match="_MODEL"):
        find(COQUI, {"tts_model": "tts_models/multilingual/multi-dataset/xtts_v2", "tts_home": tmp_path})


def test_the_layout_of_the_release_is_read_and_left_as_it_is(folder, tmp_path, monkeypatch):
    copy = tmp_path / "tts" / "tts_models--multilingual--multi-dataset--xtts_v2"
    shutil.copytree(folder, copy)
    weights = torch.load(copy / "model.pth", weights_only=True)["model"]
    for legacy in (XttsArgs, XttsAudioConfig):
        monkeypatch.setattr(legacy, "__module__", "TTS.tts.models.xtts")
    torch.save({"config": XttsConfig(), "model": weights}, copy / "model.pth")
    before = (copy / "model.pth").stat()
    monkeypatch.undo()
    found = find(COQUI, {"tts_model": "tts_models/multilingual/multi-dataset/xtts_v2", "tts_home": tmp_path})
    checkpoint.open_model(found)
    assert (found, (copy / "model.pth").stat().st_mtime_ns) == (copy, before.st_mtime_ns)
