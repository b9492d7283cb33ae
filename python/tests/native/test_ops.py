"""Each op by itself, natively and in PyTorch: what it saves, what its backward runs, every event and every byte."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import tidemark

torch = pytest.importorskip("torch")
from .compare import first_difference  # noqa: E402
from .op_program_in_torch import captured  # noqa: E402
from .op_programs import PROGRAMS, REFUSED, STYLES, is_parameter  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
BUILD = Path(os.environ.get("TIDEMARK_BUILD", Path(__file__).parents[3] / "build"))


def native(program, style, folder):
    values, calls = program
    text = {
        "style": style,
        "values": [[name, dtype, sizes, is_parameter(name, dtype)] for name, (dtype, sizes) in values.items()],
        "calls": [[op, {k: "inf" if v == float("inf") else v for k, v in arguments.items()}, names] for op, arguments, names in calls],
    }
    (folder / "program.json").write_text(json.dumps(text), encoding="utf-8")
    run = [BUILD / "tests/ops/op_program", folder / "program.json", folder / "out.step.jsonl"]
    done = subprocess.run(run, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return tidemark.Step.load(folder / "out.step.jsonl")


# Steps on fake and on real tensors are the same; one style is compared with each.
MODES = {"bare": "fake", "inside": "real"}
# Fake tensors do not know that the kernel (col2im) keeps a storage of its input's size.
BY_KERNEL = {"im2col.default"}


def amounts(step):
    return [(op.name, op.flops, op.read_bytes, op.written_bytes) for op in step.ops]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_native_op_is_the_captured_op(name, style, tmp_path):
    mode = "real" if name in BY_KERNEL else MODES[style]
    ours, theirs = native(PROGRAMS[name], style, tmp_path), captured(PROGRAMS[name], style, mode)
    assert not (difference := first_difference(ours, theirs)), difference
    assert amounts(ours) == amounts(theirs)


@pytest.mark.parametrize("name", REFUSED)
def test_a_gradient_is_not_lost_in_place(name, tmp_path):
    with pytest.raises(AssertionError, match=f"aten.{name}.*no backward of this op, and its input needs a gradient"):
        native(REFUSED[name], "bare", tmp_path)
