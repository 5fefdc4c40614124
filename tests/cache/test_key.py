"""A key is a name for facts, whatever they hold."""

from pathlib import Path

import pytest

from cache.key import key_of
from core.files import version_of


def test_a_key_is_a_plain_name_whatever_the_text_holds():
    assert key_of({"text": "../../etc/passwd\0\ud800"}).isalnum()
    with pytest.raises(ValueError, match="JSON"):
        key_of({"speed": float("nan")})


def test_a_rule_that_reads_otherwise_makes_another_version(tmp_path: Path):
    rule = tmp_path / "rule.py"
    rule.write_text("PAUSE_S = 0.3")
    before = version_of([tmp_path])
    assert version_of([tmp_path]) == before
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "rule.pyc").write_bytes(b"x")
    assert version_of([tmp_path]) == before
    rule.write_text("PAUSE_S = 0.4")
    assert version_of([tmp_path]) != before
