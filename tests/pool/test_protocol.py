"""Frames survive any cut of the stream; what is no frame is refused."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.speech import Params, Reference, Task, Traits, Utterance, Voice
from pool.protocol import (
    MAX_PAYLOAD_BYTES,
    Frame,
    FrameReader,
    Kind,
    ProtocolError,
    pack_audio,
    pack_json,
    pack_task,
    unpack_audio,
    unpack_task,
    unpack_traits,
)

FRAMES = [
    Frame(Kind.CANCEL, 7),
    Frame(Kind.AUDIO, 2**32 - 1, b"\0" * 32768),
    Frame(Kind.PHASE, 0, b'"weights"'),
]


@given(cuts=st.lists(st.integers(1, 20_000), max_size=30))
def test_frames_arrive_whole_however_the_stream_is_cut(cuts):
    data, reader, seen = b"".join(frame.pack() for frame in FRAMES), FrameReader(), []
    for cut in [*cuts, len(data)]:
        seen += reader.feed(data[:cut])
        data = data[cut:]
    assert seen == FRAMES


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x63" + bytes(8), id="a kind that does not exist"),
        pytest.param(b"\x13" + bytes(4) + (MAX_PAYLOAD_BYTES + 1).to_bytes(4, "big"), id="longer than allowed"),
        pytest.param(b"GET / HTTP/1.1\r\n", id="another protocol"),
    ],
)
def test_what_is_no_frame_is_refused(data):
    with pytest.raises(ProtocolError):
        list(FrameReader().feed(data))


@pytest.mark.parametrize("text", ['"""; import os', "-o /etc/passwd", "你好\u0000 \ud83d", "\\n\n{}"])
def test_a_task_arrives_as_it_was_sent_whatever_its_text(text):
    task = Task(3, 9, Utterance(1, text, "en", 0.3), Reference("alloy"), Params(speed=1.5, top_k=3), seed=5)
    (frame,) = FrameReader().feed(pack_task(task))
    assert unpack_task(frame.payload) == task


def test_audio_of_any_length_travels_in_small_frames_and_bit_for_bit():
    samples = np.linspace(-1, 1, 50_001, dtype=np.float32)
    frames = list(FrameReader().feed(b"".join(pack_audio(4, samples))))
    assert max(len(frame.payload) for frame in frames) <= 32768
    assert np.array_equal(np.concatenate([unpack_audio(frame.payload) for frame in frames]), samples)


def test_traits_arrive_as_they_were_sent():
    traits = Traits("x", "r1", 24000, 2, {"en": 200}, {"fr": "install it"}, (Voice("alloy", "Alloy"),), 20, (0.5, 2.0))
    (frame,) = FrameReader().feed(pack_json(Kind.READY, asdict(traits)))
    assert unpack_traits(frame.payload) == traits
