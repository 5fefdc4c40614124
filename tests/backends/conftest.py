"""What tests of engines on torch share."""

import pytest


@pytest.fixture(scope="module")
def one_thread():
    """Two threads here and two in the test beside it would wait for each other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield
