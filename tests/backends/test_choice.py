"""Which engine `auto` means, and what is said of the others."""

import pytest

from backends.choice import Machine, choose

GB = 10**9
ALL = frozenset({"coqui", "voxcpm", "voxcpm-vllm"})


def machine(free=80 * GB, installed=ALL, whole=ALL, accepted=ALL):
    return Machine(free, frozenset(installed), frozenset(whole), frozenset(accepted))


@pytest.mark.parametrize(
    ("seen", "backend"),
    [
        pytest.param(machine(), "voxcpm-vllm", id="everything is there"),
        pytest.param(machine(free=20 * GB - 1), "voxcpm", id="a card that is too small to batch"),
        pytest.param(machine(installed=ALL - {"voxcpm-vllm"}), "voxcpm", id="no flash-attn"),
        pytest.param(machine(free=7 * GB), "voxcpm", id="just enough memory"),
        pytest.param(machine(free=7 * GB - 1), "coqui", id="memory for the smaller one"),
        pytest.param(machine(free=3 * GB - 1), "kokoro", id="memory for none"),
        pytest.param(machine(free=0), "kokoro", id="a GPU that is full"),
        pytest.param(machine(free=None), "kokoro", id="no GPU"),
        pytest.param(machine(installed={"coqui"}), "coqui", id="libraries of one"),
        pytest.param(machine(installed=()), "kokoro", id="libraries of none"),
        pytest.param(machine(whole={"coqui"}), "coqui", id="weights of one"),
        pytest.param(machine(whole=()), "kokoro", id="weights of none"),
        pytest.param(machine(whole={"coqui"}, accepted={"voxcpm"}), "kokoro", id="a licence that nobody accepted"),
        pytest.param(machine(accepted={"voxcpm-vllm"}), "voxcpm-vllm", id="a licence that asks for nothing"),
    ],
)
def test_auto_is_the_best_that_this_machine_can_run(seen, backend):
    assert choose(seen).backend == backend


@pytest.mark.parametrize(
    ("seen", "passed_over"),
    [
        pytest.param(machine(), (), id="nothing is better"),
        pytest.param(
            machine(whole={"coqui"}), ("voxcpm-vllm: no whole weights", "voxcpm: no whole weights"), id="one is better"
        ),
        pytest.param(
            machine(free=None),
            tuple(f"{name}: no GPU that it may use" for name in ("voxcpm-vllm", "voxcpm", "coqui")),
            id="no GPU",
        ),
        pytest.param(
            machine(free=2 * GB, installed={"coqui"}, accepted={"voxcpm", "voxcpm-vllm"}),
            (
                "voxcpm-vllm: 2.0 GB of the GPU are free, 20.0 are needed, its libraries are not installed for a GPU",
                "voxcpm: 2.0 GB of the GPU are free, 7.0 are needed, its libraries are not installed for a GPU",
                "coqui: 2.0 GB of the GPU are free, 3.0 are needed, its licence was not accepted",
            ),
            id="more than one reason",
        ),
    ],
)
def test_what_is_better_has_a_reason_why_it_was_not_taken(seen, passed_over):
    assert choose(seen).passed_over == passed_over
