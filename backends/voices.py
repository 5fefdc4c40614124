"""Voices as an engine hears them: what it made of each, and the recordings to make it from."""

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from backends.base import Prepared
from backends.latents import Latents
from core.speech import Reference, Samples, Task


class Voices:
    """Of one worker. Recordings come and go on its control thread; voices are made where it speaks, one at a time."""

    def __init__(self, prepare: Callable[[Reference], Prepared], latents: Latents | None = None) -> None:
        """prepare: the backend's. latents: on disk, shared with other workers; None: only here."""
        self._prepare = prepare
        self._latents = latents
        self._recordings: dict[str, list[Samples]] = {}
        self._made: dict[Reference, Prepared] = {}
        self._making = threading.Lock()

    def hold(self, key: str, samples: Samples) -> None:
        """Some more of a recording; it is kept until it is to be forgotten."""
        self._recordings.setdefault(key, []).append(samples)

    def forget(self, key: str) -> None:
        """Drop a recording, and what was made of it. Waits for nobody: this is the control thread."""
        self._recordings.pop(key, None)
        for voice in [voice for voice in list(self._made) if voice.key == key]:
            self._made.pop(voice, None)

    def with_recording(self, task: Task) -> Task:
        """A task that just came, with all of its voice's recording, where there is one."""
        if task.voice.key not in self._recordings:
            return task
        sample = np.concatenate(self._recordings[task.voice.key])
        return replace(task, voice=replace(task.voice, sample=sample))

    def find(self, voice: Reference) -> Prepared | None:
        """A voice that is made already, here or by another worker; takes no longer than reading a small file."""
        found = self._made.get(voice)
        if found is None and self._latents and voice.is_kept and (found := self._latents.read(voice)) is not None:
            self._keep(voice, found)
        return found

    def of(self, voice: Reference) -> Prepared:
        """A voice, made now where it is not there yet. Raises as `prepare` does."""
        with self._making:
            prepared = self.find(voice)
            if prepared is None:
                prepared = self._prepare(voice)
                if self._latents and voice.is_kept:
                    self._latents.write(voice, prepared)
                self._keep(voice, prepared)
            return prepared

    def _keep(self, voice: Reference, prepared: Prepared) -> None:
        self._made[voice] = prepared
        if voice.sample is not None and voice.key not in self._recordings:  # it was forgotten meanwhile
            self._made.pop(voice, None)
