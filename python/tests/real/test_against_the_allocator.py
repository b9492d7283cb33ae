"""Captured steps and replayed plans against PyTorch's own CPU allocator.

`./test` runs every model without a plan, on fake tensors, and a tenth of the plans. The whole:

    TIDEMARK_CAMPAIGN=1 .venv/bin/python -m pytest -s python/tests/real
"""

import concurrent.futures
import itertools
import os
import random
import statistics
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
sys.path.insert(0, os.path.dirname(__file__))
import compare  # noqa: E402
import models  # noqa: E402

import tidemark  # noqa: E402

WHOLE = os.environ.get("TIDEMARK_CAMPAIGN") == "1"
MODELS = (*models.OWN, *models.HUGGING)
PLANNED = ("gpt2", "llama", "bert", "vit", "t5", "cnn")
RANDOM_PLANS = 25 if WHOLE else 1

# What the issue asks: relative to the bytes above those at the start of the step.
MEDIAN, WORST, TIMELINE = 0.0005, 0.01, 0.99

_steps: dict = {}
# Measurements are processes of their own; two at a time.
measuring = concurrent.futures.ThreadPoolExecutor(2)


def step_of(name: str, mode: str = "fake"):
    if (name, mode) not in _steps:
        model, batch, loss = models.build(name)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        _steps[name, mode] = tidemark.capture(
            models.training_step(model, batch, loss, optimizer), model, optimizer, mode=mode
        )
    return _steps[name, mode]


@pytest.fixture(scope="module")
def errors():
    found: list = []
    yield found
    if found:
        print(f"\n{len(found)} comparisons: median error {statistics.median(found):.6%}, worst {max(found):.6%}")
        assert statistics.median(found) <= MEDIAN


def check(result, name, errors):
    print("\n" + result.line(name), end="")
    for line in result.unequal:
        print("\n   ", line, end="")
    errors.append(abs(result.error))
    assert abs(result.error) <= WORST
    assert result.share >= TIMELINE


@pytest.mark.parametrize("mode", ["fake", "real"] if WHOLE else ["fake"])
@pytest.mark.parametrize("name", MODELS)
def test_a_plain_step(name, mode, errors):
    truth = measuring.submit(compare.measure, name)
    step = step_of(name, mode)
    assert step.meta["mode"] == mode
    result = compare.compare(step, truth.result())
    check(result, f"{name}, {mode}", errors)
    assert result.same_start
    timeline = tidemark.simulate(step)
    assert timeline.by_category["activation"] >= 0.5 * timeline.peak_bytes  # not a model whose peak is its weights


@pytest.mark.parametrize("name", models.TRACKED)
def test_the_reference_tracker_is_within_ten_percent(name):
    """The peak that PyTorch's tracker would tell against the real one, as its own tests compare them on a GPU."""
    truth = compare.measure(name)
    totals = list(itertools.accumulate(truth["events"], initial=truth["start"]))
    step = step_of(name)
    peak = tidemark.ReferenceTracker(step).get_tracker_snapshot("peak")["cpu"]["Total"]
    print(f"\n{name}: tracker {peak:,}, allocator {max(totals):,}", end="")
    assert abs(peak / max(totals) - 1) <= 0.1
    result = compare.compare(step, truth)
    assert (result.error, result.share) == (0, 1)


def plans_of(step, name):
    blocks = tidemark.Plan.policy(step, "full")
    assert blocks.units
    generator = random.Random(name)
    switches = [(True, True), (False, True), (True, False)] if WHOLE else [(True, True)]
    for early_stop, preserve_rng in switches:
        yield "full", blocks, early_stop, preserve_rng
    yield "selective", tidemark.Plan.policy(step, "selective"), True, True
    for i in range(RANDOM_PLANS):
        plan = compare.random_plan(step, generator, blocks)
        yield f"random {i}", plan, generator.random() < 0.5, generator.random() < 0.5


@pytest.mark.parametrize("name", PLANNED)
def test_a_checkpointed_step(name, errors):
    step = step_of(name)
    plans = list(plans_of(step, name))
    truths = [measuring.submit(compare.measure, name, compare.runnable(step, *plan[1:])) for plan in plans]
    for (label, plan, early_stop, preserve_rng), truth in zip(plans, truths):
        result = compare.compare(step, truth.result(), plan, early_stop, preserve_rng)
        words = f"{name}, {label}{'' if early_stop else ', no early stop'}{'' if preserve_rng else ', no rng'}"
        check(result, words, errors)


def test_the_record_does_not_depend_on_threads_hash_seed_or_cpu():
    """Other processes, with other settings, write the same bytes."""
    import subprocess

    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import torch, models, tidemark\n"
        "torch.set_num_threads(int(sys.argv[2]))\n"
        "model, batch, loss = models.build('gpt2')\n"
        "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)\n"
        "step = tidemark.capture(models.training_step(model, batch, loss, optimizer), model, optimizer, mode='fake', workspace=False)\n"
        "sys.stdout.write('RECORD' + step.text())"
    )
    texts = []
    for threads, more in (("1", {"PYTHONHASHSEED": "1"}), ("2", {"PYTHONHASHSEED": "2", "ATEN_CPU_CAPABILITY": "default"})):
        done = subprocess.run(
            [sys.executable, "-c", program, os.path.dirname(os.path.abspath(__file__)), threads],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **more},
        )
        texts.append(done.stdout.partition("RECORD")[2])
    assert texts[0] and texts[0] == texts[1]
