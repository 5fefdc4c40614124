"""Drives the scheduler: carries its commands out on worker processes and tells it what they say.

    synthesis ── submit, leave, consumed, released ──▶ Pool ──▶ Scheduler.handle ──▶ commands
        ▲                                               │                              │
        └── Sink: audio, done, restart, fail ◀── frames ┴─── Link ══ socket ══ child ◀─┘

Owners: child handles and sinks, the pool; jobs, tasks and slots, the scheduler; the model, the child. Everything here
runs on the event loop and never blocks: frames are small, and what a child says is always read.
"""

import asyncio
import errno
import json
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol, assert_never

from core.clock import Clock
from core.errors import SpeechError, Unavailable, place_of
from core.events import Events
from core.speech import Samples, Traits
from pool.forks import Template
from pool.link import Link
from pool.process import CLOSE_TIMEOUT_S, Child, ChildProcess, WorkerSpec
from pool.protocol import Frame, Kind, ProtocolError, unpack_audio, unpack_traits
from scheduler.job import JobSpec
from scheduler.messages import (
    Cancel,
    Command,
    Consumed,
    Died,
    Event,
    Fail,
    Finished,
    FirstAudio,
    Joined,
    Kill,
    Left,
    Memory,
    Phase,
    Progress,
    Ready,
    Rerun,
    Retire,
    Spawn,
    Start,
    Stopped,
    Submitted,
    Tick,
    View,
)
from scheduler.scheduler import Scheduler

MEMORY_INTERVAL_S = 0.5
"""Between two readings of memory, while they may decide something."""

IDLE_MEMORY_INTERVAL_S = 10.0
"""Between two that are only looked at."""

LATE_S = 1.0
"""A wake-up that comes so much later than it was asked for tells that this process stood still."""


class Probe(Protocol):
    """Reads the memory of the devices that workers may be started on."""

    def read(self, pids: Mapping[int, int]) -> Memory:
        """One reading; may block, and raise. pids: process id of each worker."""


class Sink(Protocol):
    """Where a job's audio goes. Called on the event loop; must not block."""

    def audio(self, index: int, samples: Samples) -> None:
        """Samples of utterance `index`, in order within it; utterances come in any order."""

    def done(self, index: int) -> float | None:
        """Utterance `index` is whole. Returns its seconds of audio, None where it is not acceptable."""

    def rerun(self, index: int) -> None:
        """Forget what came for utterance `index`: it will be spoken again."""

    def routed(self, route: str) -> None:
        """An utterance was given to a worker; route: what the client is told of it (X-Route)."""

    def fail(self, error: SpeechError) -> None:
        """The job is over."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A submitted job in the hands of whoever submitted it."""

    job: int
    _pool: "Pool"

    def leave(self) -> None:
        """Nothing more of this job is wanted. May be called at any time, and more than once."""
        self._pool.leave(self.job)

    def join(self, client: str) -> None:
        """One more client hears it."""
        self._pool.tell(Joined(self.job, client))

    def consumed(self, made_s: float, played_s: float) -> None:
        """The client took more; see `scheduler.messages.Consumed`."""
        self._pool.tell(Consumed(self.job, made_s, played_s))

    def released(self, index: int) -> None:
        """Audio of utterance `index` is about to leave: it must not be spoken again."""
        self._pool.tell(FirstAudio(self.job, index))


class Pool:
    """The worker processes, and the one way to speak through them."""

    def __init__(
        self,
        spec: WorkerSpec,
        scheduler: Scheduler,
        *,
        clock: Clock,
        events: Events,
        memory: Probe | None = None,
        template: Template | None = None,
    ) -> None:
        """Starts nothing; `open` does. memory: None where it cannot be read; then no cold worker comes.

        template: forks workers, from the first one's being ready on; None where all are to be started by exec.
        """
        self._spec = spec
        self._scheduler = scheduler
        self._clock = clock
        self._events = events
        self._memory = memory
        self._template = template
        self._links: dict[int, Link] = {}
        self._sinks: dict[int, Sink] = {}
        self._job_ids = count(1)
        self._traits: Traits | None = None
        self._loaded = 0
        self._read_memory_at = clock.now()
        self._changed = asyncio.Event()
        self._wake: asyncio.TimerHandle | None = None
        self._wakes_at = 0.0
        self._closing = asyncio.Event()
        self._burials: set[asyncio.Task[None]] = set()
        self._context = copy_context()  # no worker's log line shall name the request that happened to wake it

    def open(self) -> None:
        """Start the hot worker; it loads in the background."""
        self._carry_out(self._scheduler.start(self._clock.now()))
        if self._memory:
            self._in_background(self._watch_memory(self._memory))

    async def close(self) -> None:
        """End all workers; what still runs is told that the server stops."""
        self._closing.set()
        if self._wake:
            self._wake.cancel()
        for sink in list(self._sinks.values()):
            sink.fail(Unavailable("The server is stopping."))
        self._sinks.clear()
        self._signal()
        for link in list(self._links.values()):
            link.hang_up()
        if self._burials:
            await asyncio.wait(self._burials)  # not gather: who stops waiting for them does not stop them
        if self._template:
            await asyncio.to_thread(self._template.close)

    async def _watch_memory(self, memory: Probe) -> None:
        """Tell the scheduler what is free, more often where that may decide something."""
        while not self._closing.is_set():
            if self._scheduler.wants_memory or self._clock.now() >= self._read_memory_at:
                self._read_memory_at = self._clock.now() + IDLE_MEMORY_INTERVAL_S
                loaded = self._loaded
                try:
                    reading = await asyncio.to_thread(memory.read, self.pids)
                    if loaded == self._loaded:  # else it may be of before a worker had loaded
                        self.tell(reading)
                except Exception as error:  # a driver that fails must not end the server; no worker comes meanwhile
                    self._events.memory_unknown(reason=place_of(error))
            with suppress(TimeoutError):
                async with asyncio.timeout(MEMORY_INTERVAL_S):
                    await self._closing.wait()

    async def traits(self) -> Traits:
        """What the backend can do; waits while the first worker loads. Raises Unavailable where none will come."""
        while self._traits is None:
            view = self._scheduler.view(self._clock.now())
            if self._closing.is_set() or view.is_hopeless:
                raise Unavailable(f"The speech engine does not start: {view.reason or 'the server is stopping'}")
            await self._changed.wait()
        return self._traits

    @property
    def known_traits(self) -> Traits | None:
        """What the backend can do, None as long as it is not known."""
        return self._traits

    def submit(self, sink: Sink, spec: JobSpec) -> Ticket:
        """Queue a job, or refuse it; its audio, or its error, goes to `sink`. spec: its id is given here.

        Raises Unavailable while the server stops.
        """
        if self._closing.is_set():
            raise Unavailable("The server is stopping.")
        job = next(self._job_ids)
        self._sinks[job] = sink
        self.tell(Submitted(replace(spec, id=job)))
        return Ticket(job, self)

    def leave(self, job: int) -> None:
        """See `Ticket.leave`."""
        self._sinks.pop(job, None)
        self.tell(Left(job))

    def view(self) -> View:
        """The scheduler's state at this moment."""
        return self._scheduler.view(self._clock.now())

    @property
    def pids(self) -> dict[int, int]:
        """Process id of each worker."""
        return {worker: link.child.pid for worker, link in self._links.items()}

    def tell(self, event: Event) -> None:
        """Pass an event to the scheduler and carry out what it says; nothing more, once the pool closes."""
        if self._closing.is_set():
            return
        now = self._clock.now()
        commands = self._scheduler.handle(event, now)
        self._carry_out(commands)
        if isinstance(event, Progress) and not commands:
            return  # it can only have put off what there is to wake for
        if self._wake and self._wakes_at <= now:
            return  # it is about to run, and alone knows how late it is
        if self._wake:
            self._wake.cancel()
            self._wake = None
        wake = self._scheduler.next_wake(now)
        if wake is not None:
            self._wakes_at = wake
            self._wake = asyncio.get_running_loop().call_later(wake - now, self._tick, context=self._context)

    def _tick(self) -> None:
        self._wake = None
        late_s = self._clock.now() - self._wakes_at
        self.tell(Tick(late_s if late_s > LATE_S else 0.0))

    # --- commands

    def _carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case Start(worker, task, route):
                    self._sinks[task.job].routed(route)
                    self._links[worker].start(task)
                case Cancel(worker, task_id):
                    self._links[worker].send(Frame(Kind.CANCEL, task_id).pack())
                case Rerun(job, index):
                    self._sinks[job].rerun(index)
                case Fail(job, error):
                    self._sinks.pop(job).fail(error)
                case Spawn(worker, device):
                    self._spawn(worker, device)
                case Retire() | Kill():
                    self._dismiss(command)
                case _:
                    assert_never(command)

    def _dismiss(self, command: Retire | Kill) -> None:
        link = self._links.get(command.worker)
        if link is None:  # it has just ended by itself
            return
        if isinstance(command, Kill):
            link.kill(command.reason)
        else:
            link.hang_up()

    def _spawn(self, worker: int, device: str) -> None:
        try:
            forked = self._template.fork(self._spec, device) if self._template else None
            child: Child = forked or ChildProcess(self._spec, device)
        except OSError as error:
            reason = f"a worker process cannot be started: {error.strerror}"
            self._in_background(self._bury(Died(worker, reason, error.errno == errno.ENOMEM), None))
            return
        link = self._links[worker] = Link(self.hear, worker, child, started=self._clock.now())
        self._context.copy().run(self._events.worker_spawned, worker, pid=link.child.pid)
        self._in_background(self._attend(link))

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, context=self._context)
        self._burials.add(task)
        task.add_done_callback(self._burials.discard)

    async def _attend(self, link: Link) -> None:
        """Connect a child, wait for its end, and bury it."""
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: link, sock=link.child.socket)
        await link.lost.wait()
        del self._links[link.worker]
        await self._bury(Died(link.worker, link.reason, link.is_out_of_memory, link.is_device_fault), link.child)

    async def _bury(self, died: Died, child: Child | None) -> None:
        """A worker is gone, or never came to be. The scheduler hears of it before it is reaped: work goes on now."""
        self.tell(died)
        self._signal()
        restart_s = self._scheduler.backoff_s(self._clock.now())
        ending = await asyncio.to_thread(child.join, CLOSE_TIMEOUT_S) if child else ""
        if not self._closing.is_set():
            self._events.worker_died(died.worker, reason=died.reason or ending, restart_s=restart_s)

    # --- what children say

    def hear(self, link: Link, frame: Frame) -> None:
        """One frame of a child."""
        match frame.kind:
            case Kind.AUDIO | Kind.DONE | Kind.FAILED:
                self._hear_of_task(link, frame)
            case Kind.STOPPED:
                self.tell(Stopped(link.worker, frame.task))
            case Kind.READY:
                self._traits = unpack_traits(frame.payload)
                self._hear_ready(link, self._traits)
            case Kind.BROKEN:
                told = json.loads(frame.payload)
                link.reason, link.is_out_of_memory = told["reason"], told["is_out_of_memory"]
                link.is_device_fault = told["is_device_fault"]
            case Kind.PHASE:
                self.tell(Phase(link.worker, json.loads(frame.payload)))
            case Kind.ALIVE:
                self.tell(Progress(link.worker))
            case _:
                raise ProtocolError(f"a child does not say {frame.kind.name}")

    def _hear_ready(self, link: Link, traits: Traits) -> None:
        self.tell(Ready(link.worker, traits.slots, traits.priors, traits.gains_from_processes, traits.batches))
        self._loaded += 1
        now = self._read_memory_at = self._clock.now()  # it holds more now than when it was last looked at
        seconds = now - link.started
        self._events.worker_ready(link.worker, seconds=seconds, slots=traits.slots)
        if self._template:
            self._template.open()  # not earlier: it would take the cores from the one that everybody waits for
        self._signal()

    def _hear_of_task(self, link: Link, frame: Frame) -> None:
        task = self._scheduler.task(link.worker, frame.task)
        sink = self._sinks.get(task.job) if task else None
        if task is None or sink is None:  # cancelled while the frame was on its way
            if frame.kind is not Kind.AUDIO:
                self.tell(Stopped(link.worker, frame.task))
        elif frame.kind is Kind.AUDIO:
            sink.audio(task.utterance.index, unpack_audio(frame.payload))
            self.tell(Progress(link.worker, frame.task))
        elif frame.kind is Kind.DONE:
            self.tell(Finished(link.worker, frame.task, sink.done(task.utterance.index)))
        else:
            self._events.task_failed(link.worker, reason=json.loads(frame.payload))
            self.tell(Finished(link.worker, frame.task, None))

    def _signal(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
