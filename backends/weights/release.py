"""All files of a release in one folder: listed once, fetched, proved by weights.lock ever after, repaired."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from backends.base import BackendError
from backends.engines import Engine
from backends.weights.download import PART, Listener, Persistence, fetch, persist
from backends.weights.hub import Hub
from backends.weights.lock import FILE_NAME, Lock, read_lock

SPARE_BYTES = 64 * 2**20
"""Of the disk, that a download leaves."""

_LOCK_FILE = ".fetching"
_GB = 10**9


def bring(
    engine: Engine,
    folder: Path,
    hub: Hub,
    listener: Listener,
    *,
    again: bool = False,
    persistence: Persistence | None = None,
) -> None:
    """See to it that a folder holds the weights of an engine, as weights.lock has them. Safe in several processes.

    Whoever calls has somebody's yes to the licence, where it asks for one; it is written down. again: take what the
    hub has now, whatever was there before.
    Raises BackendError where they cannot be had; what came stays, and the next run goes on from it.
    """
    persistence = persistence or Persistence()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder, listener):
            known = _known(engine, folder)
            lock = known if known and not again else _listed(engine, folder, hub, listener, persistence)
            if engine.release.must_be_accepted:
                lock = lock.model_copy(update={"licence_accepted": engine.release.licence})
            listener.say(f"Looking at what is in {folder} ...")
            lock, missing = _compared(lock, folder, listener, is_ours=known is not None or again)
            lock.write(folder)
            _look_for_room(folder, lock, missing)
            for name in missing:
                source = partial(hub.open, lock.repository, lock.commit, name)
                content = fetch(source, folder / name, lock.files[name], persistence, listener)
                lock = lock.with_file(name, content)
                lock.write(folder)
    except OSError as error:
        raise BackendError(f"The folder of the weights, {folder}, cannot be used: {error.strerror}.") from None


def is_accepted(engine: Engine, folder: Path) -> bool:
    """Whether somebody said yes to the licence of what was fetched into a folder, or it asks for none."""
    lock = read_lock(folder)
    return not engine.release.must_be_accepted or (lock is not None and lock.licence_accepted == engine.release.licence)


@contextmanager
def _alone(folder: Path, listener: Listener) -> Iterator[None]:
    with (folder / _LOCK_FILE).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            listener.say("Somebody else is fetching into this folder; waiting for the end of that ...")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _known(engine: Engine, folder: Path) -> Lock | None:
    """What is remembered of a folder, if that is the whole of this release."""
    lock, release = read_lock(folder), engine.release
    if lock is None or lock.repository != release.repository:
        return None
    return lock if all(any(name in lock.files for name in choice) for choice in release.files) else None


def _listed(engine: Engine, folder: Path, hub: Hub, listener: Listener, persistence: Persistence) -> Lock:
    """What the hub has now. Pieces of another time are removed."""
    release = engine.release
    commit, found = persist(partial(hub.listing, release.repository), persistence, listener)
    names = [next((name for name in choice if name in found), choice[0]) for choice in release.files]
    if missing := [name for name in names if name not in found]:
        raise BackendError(f"{release.repository} on the hub lacks {', '.join(missing)}.")
    names += [name for name in release.extras if name in found]
    for name in names:
        (folder / f"{name}{PART}").unlink(missing_ok=True)
    return Lock(repository=release.repository, commit=commit, files={name: found[name] for name in names})


def _compared(lock: Lock, folder: Path, listener: Listener, *, is_ours: bool) -> tuple[Lock, list[str]]:
    """The lock with what is there already, and the names of what is to be fetched. is_ours: it may be replaced.

    Raises BackendError where something else is there that is not ours.
    """
    missing = []
    for name, wanted in lock.files.items():
        if content := wanted.read(folder / name):
            lock = lock.with_file(name, content)
            continue
        missing.append(name)
        if not (folder / name).exists():
            continue
        if not is_ours:
            raise BackendError(
                f"{folder / name} is not the one of {lock.repository}, and {FILE_NAME} knows nothing of it: it stays. "
                "Move it away, or let --again replace it."
            )
        listener.say(f"{name} is damaged, or another one; it will be fetched again.")
    return lock, missing


def _look_for_room(folder: Path, lock: Lock, names: list[str]) -> None:
    """Raises BackendError where the disk has no room for all of them."""
    parts = [folder / f"{name}{PART}" for name in names]
    needed = sum(lock.files[name].size for name in names) - sum(part.stat().st_size for part in parts if part.exists())
    free = shutil.disk_usage(folder).free
    if needed > 0 and free < needed + SPARE_BYTES:
        raise BackendError(f"{needed / _GB:.1f} GB are to come, and the disk of {folder} has {free / _GB:.1f} GB free.")
