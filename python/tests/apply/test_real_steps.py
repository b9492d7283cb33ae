"""Plans on real steps, one process each: the same bits as without a plan, the ops that the plan says, and a peak that is
the predicted one, within the budget.

A few models in every run; all of them with TIDEMARK_CAMPAIGN=1 and `-s`, which prints a line for each budget.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import cases
import tidemark

CAMPAIGN = os.environ.get("TIDEMARK_CAMPAIGN") == "1"
WORKER = Path(__file__).resolve().parent / "worker.py"
# Where between the smallest reachable peak and that of plain training, from trivially fitting to the smallest.
BUDGETS = (1.0, 0.8, 0.55, 0.35, 0.15, 0.0)

errors: list[float] = []


class Workers:
    """Runs worker.py, whose children do the measurements."""

    def __init__(self) -> None:
        imported = ["tidemark", "transformers"] if CAMPAIGN else ["tidemark"]
        command = [sys.executable, str(WORKER), "--serve", *imported]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # kernels' workspace depends on it
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def __call__(self, name: str, *plan: str) -> dict:
        self._process.stdin.write(" ".join([name, *plan]) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):  # the profiler talks, too
                found = json.loads(line)
                assert "failed" not in found, found["failed"]
                return found
        raise AssertionError("the worker ended")

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=60)


@pytest.fixture(scope="module")
def run():
    workers = Workers()
    yield workers
    workers.close()


def captured(name: str):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _captured(name)
    finally:
        torch.set_num_threads(before)


def _captured(name: str):
    model, batch, loss = cases.build(name)
    optimizer = cases.optimizer_of(name, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tidemark.capture(cases.training_step(name, model, batch, loss, optimizer), model, optimizer)


def check(run: Workers, name: str, shares: tuple, tmp_path: Path) -> None:
    step = captured(name)
    plain = run(name)
    loose = tidemark.plan(step, 1 << 50)
    smallest, most = loose.smallest_peak_bytes, loose.unplanned_peak_bytes
    problems = []
    for share in shares:
        budget = smallest + int((most - smallest) * share) + loose.reserve_bytes
        result = tidemark.plan(step, budget)
        assert result.plan is not None, (name, share, result.termination)
        path = tmp_path / f"{name}-{share}.json"
        result.plan.save(path)
        measured = run(name, str(path))
        growth = measured["peak"] - measured["start"]
        error = abs(measured["peak"] - result.peak_bytes) / growth
        errors.append(error)
        line = (
            f"{name:16} {share:4.2f} {result.termination:9} units {measured['units']:3}  run again {measured['recomputed']:4}  "
            f"peak {measured['peak']:>11,} predicted {result.peak_bytes:>11,} budget {budget:>11,}  off {100 * error:.4f} %"
        )
        same = measured["digest"] == plain["digest"]
        wrong = []
        if not same:
            wrong.append("other bits")
        if not measured["agrees"]:
            wrong.append("other ops: " + "; ".join(measured["differing"][:2]))
        if measured["peak"] > budget:
            wrong.append(f"over the budget by {measured['peak'] - budget}")
        if error > 0.01:
            wrong.append("more than a hundredth off")
        if share < 0.6 and smallest < most and measured["recomputed"] == 0:  # some models no plan helps
            wrong.append("nothing is run again")
        print(line + ("   " + ", ".join(wrong) if wrong else ""), flush=True)
        problems += [f"{name} at {share}: {problem}" for problem in wrong]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", cases.ALL if CAMPAIGN else cases.SAMPLE)
def test_real_steps_under_a_plan(run, name, tmp_path):
    check(run, name, BUDGETS if CAMPAIGN else (0.3,), tmp_path)


@pytest.mark.skipif(not CAMPAIGN, reason="set TIDEMARK_CAMPAIGN=1: the median of all models and budgets")
def test_the_median_of_all_errors_is_small():
    print(f"{len(errors)} runs, median {100 * statistics.median(errors):.5f} %, largest {100 * max(errors):.4f} %")
    assert statistics.median(errors) <= 0.0005
