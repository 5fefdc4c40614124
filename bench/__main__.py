"""Prints one line a figure: what was measured, the server's median, what it is held against, and the limit."""

import argparse
import asyncio
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import httpx
import psutil

from bench.bare import Bare, side_by_side
from bench.crew import cold_starts_s, round_trip_ms, spawn_to_sound_s
from bench.ear import dry_s, first_sound_s, read
from bench.hits import answer_time, hit_times, request_bytes
from tests.harness.server import Server, cached_server, running_server, until

HUNDRED_CHARS = (
    "The garden behind the old house is open to everyone who likes to sit and read there on warm summer days.",
    "I checked your calendar for tomorrow, and the first meeting starts at nine in the large room upstairs.",
    "The washing machine has finished its program, so you can take the clothes out whenever you are ready.",
    "There is a light rain expected this evening, but it should be clear again before you leave for work.",
    "Your package was delivered to the neighbour on the second floor because nobody answered the door bell.",
    "The living room lights have been turned off and the heating is set to nineteen degrees for the night.",
)
"""Sentences that an assistant says: where the first cut falls differs, so one of them would tell little."""

OPENING = "Good morning to you all."
BUSY = "The garden behind the old house is open to everyone who likes to read there."
PARAGRAPH = (
    "Our train leaves from platform seven at noon. The weather will be cold, with some rain in the evening. "
    "She bought three apples, a loaf of bread and some cheese. Turn left at the second corner and walk to the bridge. "
)
LONG_TEXT = (PARAGRAPH * 100)[:20_000]
READ_S = 30.0
"""How long the long text is read while memory is watched."""

Measure = Callable[[], float]

missed: list[str] = []
"""Figures beyond their limits."""


def main() -> None:
    """Measure what is asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the server on this machine.")
    parser.add_argument("--runs", type=int, default=12, help="alternating runs of each side (default 12)")
    parser.add_argument("--only", choices=FIGURES, nargs="+", default=list(FIGURES), help="figures to measure")
    options = parser.parse_args()
    bare = Bare()
    with tempfile.TemporaryDirectory() as folder, cached_server(Path(folder), TTS_BACKEND="kokoro") as server:
        print(f"{psutil.cpu_count()} cores, {bare.traits.slots} slots, medians of {options.runs} alternating runs")
        for name in options.only:
            FIGURES[name](server, bare, options.runs)
    raise SystemExit(1 if missed else 0)


def first_sound_alone(server: Server, bare: Bare, runs: int) -> None:
    """First sound of a short text on an idle machine."""
    utterance = bare.utterances(OPENING)[0]
    ours, theirs = alternate(runs, lambda: server_first_sound(server, OPENING), lambda: bare.speak(utterance))
    print_extra("first sound, idle", ours, theirs, limit_ms=15)


def first_sound_busy(server: Server, bare: Bare, runs: int) -> None:
    """The same while every other slot is busy."""
    utterance, busy = bare.utterances(OPENING)[0], bare.utterances(BUSY)
    others = bare.traits.slots - 1

    def ours() -> float:
        with repeated(lambda: read(server.http, BUSY), others):
            return server_first_sound(server, OPENING, is_idle=False)

    def theirs() -> float:
        with repeated(lambda: [bare.speak(each) for each in busy], others):
            return bare.speak(utterance)

    print_extra("first sound, all slots busy", *alternate(runs, ours, theirs), limit_ms=60)


def long_text(server: Server, bare: Bare, runs: int) -> None:
    """First sound of 20 000 characters against their first sentence alone; then what memory they need."""
    short = LONG_TEXT.split(".", 1)[0] + "."
    ours, theirs = alternate(
        runs, lambda: server_first_sound(server, LONG_TEXT), lambda: server_first_sound(server, short)
    )
    ratio = statistics.median(ours) / statistics.median(theirs)
    print_line("first sound of 20 000 characters / of their first sentence", f"{ratio:.2f}", "1.10", ratio <= 1.10)
    read(server.http, LONG_TEXT, READ_S)
    for name, process, limit in (
        ("server", psutil.Process(server.process.pid), 150),
        ("worker", server.workers[0], 900),
    ):
        peak = peak_mb(process)
        print_line(f"peak memory of the {name}", f"{peak:.0f} MB", f"{limit} MB", peak <= limit)


def sentence(server: Server, bare: Bare, runs: int) -> None:
    """First sound of sentences of 100 characters on an idle machine, and whether sound runs dry behind it."""
    medians = [statistics.median(server_first_sound(server, text) for _ in range(runs)) for text in HUNDRED_CHARS]
    middle = statistics.median(medians)
    name = f"first sound of 100 characters, {len(medians)} sentences (slowest {max(medians):.2f} s)"
    print_line(name, f"{middle:.2f} s", "0.80 s", middle <= 0.8)
    dry = statistics.median(dry_s(server.http, text) for text in HUNDRED_CHARS if server.wait_until_idle())
    print_line("gap behind the first sound", f"{dry:.2f} s", "0.05 s", dry <= 0.05)


def throughput(server: Server, bare: Bare, runs: int) -> None:
    """Two users against two threads that make the same calls of the session."""
    texts = [PARAGRAPH * 2] * 2
    calls = [bare.calls(text) for text in texts]

    def ours() -> float:
        with httpx.Client(base_url=server.url, timeout=600) as http:
            return side_by_side([[lambda text=text: read(http, text)] for text in texts])  # type: ignore[misc]

    taken, ideal = alternate(runs, ours, lambda: side_by_side(calls))
    share = statistics.median(theirs / mine for mine, theirs in zip(taken, ideal, strict=True))
    print_line("audio of two users / of two threads on the bare session", f"{share:.1%}", "92 %", share >= 0.92)


def round_trip(server: Server, bare: Bare, runs: int) -> None:
    """What scheduler, socket and worker add to an utterance."""
    extra_ms = round_trip_ms(runs * 25)
    print_line("way to a worker and back, an utterance", f"{extra_ms:.2f} ms", "3 ms", extra_ms < 3)


def start(server: Server, bare: Bare, runs: int) -> None:
    """A worker from its spawn to its first sound."""
    seconds = statistics.median(spawn_to_sound_s(runs))
    print_line("spawn of a worker to its first sound", f"{seconds:.2f} s", "5 s", seconds < 5)


def template(server: Server, bare: Bare, runs: int) -> None:
    """A cold worker on torch, forked from a process that has imported everything, against one started by exec."""
    from tests.checkpoints import xtts  # torch is not there unless an engine on it was installed

    with tempfile.TemporaryDirectory() as folder:
        seconds = cold_starts_s(runs, xtts.write(Path(folder)))
    forked, by_exec = (statistics.median(seconds[way]) for way in ("fork", "exec"))
    share = forked / by_exec
    print_line(f"spawn of an XTTS worker, forked ({forked:.2f} s) / by exec", f"{share:.0%}", "50 %", share < 0.5)


def second_worker(server: Server, bare: Bare, runs: int) -> None:
    """Answers of a hot and a cold worker against the hot one alone, a slot each."""
    settings = {
        "TTS_BACKEND": "kokoro",
        "KOKORO_SLOTS": "1",
        "HOT_QUEUE_SAFETY_FACTOR": "0",
        "COLD_WORKER_IDLE_TIMEOUT": "3600",
    }
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        alone, both = (
            stack.enter_context(running_server(Path(folder), **settings, COLD_POOL_SIZE=size)) for size in "01"
        )

        def answers(server: Server) -> float:
            def ask() -> None:
                server.http.post("/v1/audio/speech", json={"input": PARAGRAPH, "response_format": "wav"})

            return side_by_side([[ask]] * 6)

        ours, theirs = alternate(runs, lambda: answers(both), lambda: answers(alone))
    gain = statistics.median(slow / fast for fast, slow in zip(ours, theirs, strict=True))
    print_line("answers of a hot and a cold worker / of the hot one alone", f"{gain:.2f}", "1.5", gain >= 1.5)


def cache(server: Server, bare: Bare, runs: int) -> None:
    """Hits over connections that stay open, and what looking and keeping cost an answer that is made anew."""
    with tempfile.TemporaryDirectory() as folder, fast_server(Path(folder)) as fast:
        fields = {"input": PARAGRAPH, "voice": "nova"}
        fast.speak(PARAGRAPH, voice="nova")
        until(lambda: fast.speak(PARAGRAPH, voice="nova").headers["x-cache"] == "HIT")
        times, rate = asyncio.run(hit_times(fast.port, request_bytes(fields), connections=8, each=runs * 50))
        median_ms = statistics.median(times) * 1000
        print_line(
            f"an answer from the cache, 8 connections ({rate:.0f} a second)",
            f"{median_ms:.2f} ms",
            "3 ms",
            median_ms <= 3,
        )
        seeds = count()

        def made(*, cached: bool) -> float:
            fields = {"input": BUSY, "seed": next(seeds), "cache": cached}
            return asyncio.run(answer_time(fast.port, request_bytes({**fields, "response_format": "wav"})))

        ours, theirs = alternate(runs * 10, lambda: made(cached=True), lambda: made(cached=False))
        extra_ms = (statistics.median(ours) - statistics.median(theirs)) * 1000
        print_line("what the cache adds to an answer that is made", f"{extra_ms:.2f} ms", "2 ms", extra_ms <= 2)


@contextmanager
def fast_server(folder: Path) -> Iterator[Server]:
    """With a cache, and an engine that takes no time: what is measured is everything else."""
    with cached_server(folder, TTS_BACKEND="tone_backend:make") as server:
        yield server


FIGURES = {
    "first-sound": first_sound_alone,
    "busy": first_sound_busy,
    "long-text": long_text,
    "sentence": sentence,
    "throughput": throughput,
    "round-trip": round_trip,
    "start": start,
    "template": template,
    "second-worker": second_worker,
    "cache": cache,
}


def server_first_sound(server: Server, text: str, *, is_idle: bool = True) -> float:
    """First sound, once the server has nothing else to do."""
    if is_idle:
        server.wait_until_idle()
    return first_sound_s(server.http, text)


def alternate(runs: int, ours: Measure, theirs: Measure) -> tuple[list[float], list[float]]:
    """Both in turn, after one of each that is not counted, so that the machine's own drift strikes both alike."""
    ours()
    theirs()
    pairs = [(ours(), theirs()) for _ in range(runs)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


@contextmanager
def repeated(work: Callable[[], object], threads: int) -> Iterator[None]:
    """Do `work` again and again in that many threads meanwhile."""
    is_over = threading.Event()

    def loop() -> None:
        while not is_over.is_set():
            work()

    running = [threading.Thread(target=loop) for _ in range(threads)]
    for thread in running:
        thread.start()
    is_over.wait(0.3)  # every slot is taken by then
    try:
        yield
    finally:
        is_over.set()
        for thread in running:
            thread.join()


def peak_mb(process: psutil.Process) -> float:
    """The most memory that a process has held."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:", 1)[1].split()[0]) / 1024


def print_extra(name: str, ours: list[float], theirs: list[float], *, limit_ms: float) -> None:
    """What the server adds to the backend's own time."""
    extra = statistics.median(mine - bare for mine, bare in zip(ours, theirs, strict=True)) * 1000
    both = f"{statistics.median(ours):.3f} s against {statistics.median(theirs):.3f} s of the bare backend"
    print_line(f"{name}: {both}, more by", f"{extra:.0f} ms", f"{limit_ms:.0f} ms", extra <= limit_ms)


def print_line(name: str, found: str, limit: str, is_met: bool) -> None:
    """One figure; the process ends with 1 where any was missed."""
    if not is_met:
        missed.append(name)
    print(f"{'ok    ' if is_met else 'MISSED'} {name}: {found} (limit {limit})", flush=True)


if __name__ == "__main__":
    main()
