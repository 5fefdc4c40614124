"""What an answer's bytes hold, by a decoder: samples, and their pitch."""

import io

import av
import numpy as np


def decode(data: bytes, format: str | None = None) -> tuple[np.ndarray, int]:
    """All samples, float32 mono in [-1, 1], and their rate in Hz.

    format: "pcm" is 16 bit at 24 kHz without a header; the others tell themselves.
    """
    if format == "pcm":
        return np.frombuffer(data, "<i2").astype(np.float32) / 32768, 24_000
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.audio[0]
        assert stream.channels == 1
        frames = [frame.to_ndarray() for frame in container.decode(stream)]
        samples = np.concatenate(frames, axis=1)[0]
        rate = stream.rate
    scale = 32768 if samples.dtype == np.int16 else 1
    return samples.astype(np.float32) / scale, rate


def resample(samples: np.ndarray, rate: int, target: int) -> np.ndarray:
    """The same sound at another rate."""
    frame = av.AudioFrame.from_ndarray(
        np.ascontiguousarray(samples, np.float32)[np.newaxis], format="flt", layout="mono"
    )
    frame.sample_rate = rate
    resampler = av.AudioResampler(format="flt", layout="mono", rate=target)
    return np.concatenate([made.to_ndarray()[0] for made in [*resampler.resample(frame), *resampler.resample(None)]])


def pitch_hz(samples: np.ndarray, rate: int) -> float:
    """Median pitch of the voiced parts, between 60 and 400 Hz, by autocorrelation."""
    size = rate // 25
    found = []
    for start in range(0, len(samples) - size, size):
        frame = samples[start : start + size] - samples[start : start + size].mean()
        if np.sqrt(np.mean(frame**2)) < 0.02:
            continue
        correlation = np.correlate(frame, frame, "full")[size - 1 :]
        low, high = rate // 400, rate // 60
        lag = low + int(correlation[low:high].argmax())
        if correlation[lag] > 0.5 * correlation[0]:
            found.append(rate / lag)
    return float(np.median(found))
