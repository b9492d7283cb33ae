"""The list of tolerated differences: what may stand there, and that it is read."""

import pytest

import tidemark

from .compare import Tolerated, first_difference, tolerated_differences

pytestmark = pytest.mark.fast
EXACT = {"gpt2", "llama", "bert", "vit", "resnet", "resnet18", "resnet50", "toy"}


def test_none_for_the_families_that_agree_exactly():
    assert not [row for row in tolerated_differences() if row.family in EXACT]


def test_few_and_none_about_saves_or_bytes():
    rows = tolerated_differences()
    assert len(rows) <= 5
    for row in rows:
        assert not any(word in row.captured + row.native for word in ("pack", "release", " B,", "alloc", "free")), row


def test_a_line_without_a_reason_is_refused(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("# a comment\n\nt5 | one | two | why\nt5 | one | two\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"list.txt:4: expected family"):
        tolerated_differences(path)


def test_what_is_listed_is_let_pass_in_its_family_alone(example):
    other = tidemark.Step.parse(example.text().replace("aten.relu.default", "aten.silu.default"))
    row = Tolerated("t5", "aten.relu.default", "aten.silu.default", "only for this test")
    assert first_difference(other, example, "t5 gated", [])
    assert not first_difference(other, example, "t5 gated", [row])
    assert first_difference(other, example, "unet", [row])
