"""What one life of the server writes down for the next."""

import pytest

from core.events import Silence
from core.speech import Priors
from harness.scheduling import PATIENCE, ready, spec, submit, tasks
from pool.notebook import Notebook
from scheduler.messages import Finished, Ready
from scheduler.scheduler import Scheduler

PRIORS = Priors(rates=(1.0, 1.8), start_s=9.0)


class Told(Silence):
    """Counts what could not be kept."""

    times = 0

    def notes_lost(self, *, reason: str) -> None:
        self.times += 1


def experienced() -> Scheduler:
    """Its engine is four times as fast as promised, and took 3 s to start."""
    scheduler = Scheduler(lead_s=60.0, patience=PATIENCE)
    scheduler.start()
    scheduler.handle(Ready(1, 2, PRIORS), 3.0)
    (task,) = tasks(submit(scheduler, spec(1), now=3.0))
    scheduler.handle(Finished(1, task, 4.0), 4.0)
    return scheduler


def test_the_next_life_forecasts_like_the_one_before(tmp_path):
    before = experienced()
    Notebook(tmp_path / "new" / "kokoro.json", Silence()).write(before.learned)
    after = Scheduler(lead_s=60.0, learned=Notebook(tmp_path / "new" / "kokoro.json", Silence()).read())
    assert after.learned == before.learned
    after.start()
    assert after.view(0.0).start_s == 3.0
    after.handle(Ready(1, 2, PRIORS), 3.0)
    assert after.forecast_s(spec(2), 4.0) == before.forecast_s(spec(2), 4.0)
    assert after.view(4.0).word_s == before.view(4.0).word_s > 0


def test_another_backend_begins_anew():
    after = Scheduler(lead_s=60.0, learned=experienced().learned)
    after.start()
    after.handle(Ready(1, 2, Priors(rates=(0.2,))), 3.0)
    fresh = ready(slots=2, priors=Priors(rates=(0.2,)))
    assert after.forecast_s(spec(2), 4.0) == fresh.forecast_s(spec(2), 4.0)


@pytest.mark.parametrize("change", [(b"3.0", b"-3.0"), (b"3.0", b"1e999"), (b"{", b"["), (b"starts", b"begins")])
def test_what_cannot_be_believed_counts_as_never_learned(tmp_path, change):
    path = tmp_path / "kokoro.json"
    Notebook(path, Silence()).write(experienced().learned)
    assert Notebook(path, Silence()).read()
    path.write_bytes(path.read_bytes().replace(*change))
    assert Notebook(path, Silence()).read() is None


def test_a_folder_that_cannot_be_written_is_told_once_and_harms_nobody(tmp_path):
    (tmp_path / "file").touch()
    told = Told()
    notebook = Notebook(tmp_path / "file" / "kokoro.json", told)
    notebook.write(experienced().learned)
    notebook.write(experienced().learned)
    assert told.times == 1
    assert notebook.read() is None


def test_nothing_half_written_is_left(tmp_path, monkeypatch):
    def fail(*paths):
        raise OSError

    monkeypatch.setattr("os.replace", fail)
    told = Told()
    Notebook(tmp_path / "kokoro.json", told).write(experienced().learned)
    assert told.times == 1
    assert not list(tmp_path.iterdir())
