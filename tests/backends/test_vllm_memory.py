"""What the batching engine needs of a GPU, and what an operator is told where that is not there."""

import re

import pytest

from backends.voxcpm_vllm.memory import Limits, advice, shape_of

GB = 10**9
CONFIG = {
    "lm_config": {
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_attention_heads": 16,
        "num_hidden_layers": 28,
        "num_key_value_heads": 2,
        "kv_channels": 128,
    },
    "patch_size": 4,
    "residual_lm_num_layers": 8,
    "encoder_config": {"hidden_dim": 1024, "ffn_dim": 4096},
}
FULL = shape_of(CONFIG, 4_960_000_000)
USUAL = Limits(0.85, 32, 16384, 4096)
NAMES = {
    "VLLM_GPU_MEM_UTIL": "utilisation",
    "VLLM_MAX_NUM_SEQS": "sequences",
    "VLLM_MAX_NUM_BATCHED_TOKENS": "batched_tokens",
    "VLLM_MAX_MODEL_LEN": "length",
}


def told(free, total, limits=USUAL):
    said = advice(FULL, limits, free_bytes=int(free * GB), total_bytes=int(total * GB))
    return said, {name: float(value) for name, value in re.findall(r"(VLLM_\w+) to ([\d.]+\d)", said)}


def test_a_token_of_the_full_size_takes_36_kib_of_the_cache():
    assert FULL.cache_bytes == 36 * 1024


@pytest.mark.parametrize(("free", "total"), [(25.2, 25.4), (23.5, 24.1), (140.0, 150.0)])
def test_cards_of_24_gb_and_more_need_nothing(free, total):
    assert told(free, total) == ("", {})


@pytest.mark.parametrize(
    ("free", "total", "lowered"),
    [
        pytest.param(18.0, 24.0, {"VLLM_GPU_MEM_UTIL"}, id="somebody else has a part of it"),
        pytest.param(70.0, 150.0, {"VLLM_GPU_MEM_UTIL"}, id="somebody else has half of a large one"),
        pytest.param(10.9, 11.0, {"VLLM_GPU_MEM_UTIL", "VLLM_MAX_NUM_BATCHED_TOKENS"}, id="a small card"),
        pytest.param(
            8.4,
            8.5,
            {"VLLM_GPU_MEM_UTIL", "VLLM_MAX_NUM_BATCHED_TOKENS", "VLLM_MAX_NUM_SEQS"},
            id="a card that is smaller still",
        ),
    ],
)
def test_the_settings_to_lower_are_named_with_values_that_fit(free, total, lowered):
    said, values = told(free, total)
    assert set(values) == lowered, said
    fields = {NAMES[name]: type(getattr(USUAL, NAMES[name]))(value) for name, value in values.items()}
    changed = Limits(**{**{name: getattr(USUAL, name) for name in NAMES.values()}, **fields})
    assert told(free, total, changed) == ("", {})


def test_a_card_that_can_hold_none_of_it_is_told_so():
    said, values = told(5.5, 6.0)
    assert values == {}
    assert "TTS_BACKEND=voxcpm" in said
