"""The examples run, and what they show is so."""

import difflib
import os
import re
import subprocess
import sys

import pytest


def run(root, name: str) -> str:
    found = subprocess.run(
        [sys.executable, str(root / "examples/python" / name)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=root / "examples",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert found.returncode == 0, found.stderr[-3000:]
    return found.stdout


def test_the_planned_script_differs_by_two_lines_and_trains_the_same(root):
    plain, planned = ((root / "examples/python" / name).read_text().splitlines() for name in ("train_gpt.py", "train_gpt_planned.py"))
    changed = [line for line in difflib.ndiff(plain[2:], planned[2:]) if line[0] in "+-"]  # after the docstrings
    assert changed == ["+ import tidemark", '+ tidemark.fit(train_step, model, optimizer, budget="24MiB")']
    losses = [re.findall(r"loss ([\d.]+)", run(root, name)) for name in ("train_gpt.py", "train_gpt_planned.py")]
    assert len(losses[0]) == 5 and losses[0] == losses[1]


@pytest.mark.parametrize("name", ["accumulate_gradients.py", "plan_hugging_face.py"])
def test_the_other_examples_run_as_planned(root, name):
    assert run(root, name).splitlines()[-1] == "as planned"
