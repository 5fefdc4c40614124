"""Two servers for the whole run: one with the real model, one whose engine speaks in tones at once."""

import pytest

from harness.server import running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The server as it is installed, with the embedded model."""
    with running_server(tmp_path_factory.mktemp("server"), TTS_BACKEND="kokoro") as running:
        yield running


@pytest.fixture(scope="session")
def tones(tmp_path_factory):
    """The same server over `tests/fakes/tone_backend.py`: every word is 0.1 s of a tone."""
    with running_server(tmp_path_factory.mktemp("tones"), TTS_BACKEND="tone_backend:make") as running:
        yield running
