"""Which engine `auto` means on this machine. Pure: what the machine has is looked at elsewhere."""

from dataclasses import dataclass

from backends.engines import COQUI, ENGINES, VOXCPM, VOXCPM_VLLM

EMBEDDED = "kokoro"
"""Runs everywhere."""

PREFERENCE = (VOXCPM_VLLM.name, VOXCPM.name, COQUI.name)
"""Best first, before the embedded one. On a CPU both take longer to speak than it takes to listen."""

_GB = 10**9


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is, by names of backends.

    gpu_free_bytes: of the GPU with most of it free; None where there is none, or none is to be used.
    installed: whose libraries are there, and can use a GPU. whole: whose weights are. accepted: whose licence somebody
    said yes to.
    """

    gpu_free_bytes: int | None
    installed: frozenset[str]
    whole: frozenset[str]
    accepted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Choice:
    """The backend that it is. passed_over: why the better ones were not taken, a line each."""

    backend: str
    passed_over: tuple[str, ...] = ()


def choose(machine: Machine) -> Choice:
    """The best backend that this machine can run."""
    passed_over: list[str] = []
    for name in PREFERENCE:
        if not (lack := _lack(name, machine)):
            return Choice(name, tuple(passed_over))
        passed_over.append(f"{name}: {lack}")
    return Choice(EMBEDDED, tuple(passed_over))


def _lack(name: str, machine: Machine) -> str:
    """What keeps a backend from being taken; empty where nothing does."""
    needed, free = ENGINES[name].memory_bytes, machine.gpu_free_bytes
    if free is None:
        return "no GPU that it may use"
    lacks = {
        f"{free / _GB:.1f} GB of the GPU are free, {needed / _GB:.1f} are needed": free < needed,
        "its libraries are not installed for a GPU": name not in machine.installed,
        "no whole weights": name not in machine.whole,
        "its licence was not accepted": name not in machine.accepted,
    }
    return ", ".join(lack for lack, holds in lacks.items() if holds)
