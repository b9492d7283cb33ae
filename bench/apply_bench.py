"""What a plan costs beyond the ops that it runs again, against PyTorch's own checkpoints with the same decisions.

    python bench/apply_bench.py [--pairs N] [MODEL ...]

Ratios of interleaved steps in one process, on one thread, in the process's own time:

  policy      PyTorch's selective policy of every block of a GPT of tiny tensors, where ops cost next to nothing, applied as a plan
              and by torch.utils.checkpoint with create_selective_checkpoint_contexts: time beyond that of the plain step (asked: at
              most 1.15). And the same without anything saved

  selective   a plan against torch.utils.checkpoint with create_selective_checkpoint_contexts on the same modules, which saves the same
              ops by (op, occurrence): time beyond that of the plain step (asked: at most 1.15)
  full        a plan with the memory of full checkpointing against full checkpointing of every block (asked: not slower than
              the 95th percentile of A/A pairs)
"""

from __future__ import annotations

import argparse
import copy
import functools
import statistics
import sys
import time
from pathlib import Path

import torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import tidemark

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python/tests/apply"))

import cases  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("models", nargs="*", default=["gpt", "cnn", "moe", "llama", "bert", "vit"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    measure_policy(5 * options.pairs)
    for name in options.models:
        measure(name, options.pairs)


def measure_policy(pairs: int) -> None:
    def train(prepare=None):
        torch.manual_seed(0)
        model = cases.models.GPT(vocabulary=64, width=16, depth=4, heads=2, length=8).train()
        if prepare is not None:
            prepare(model)
        ids = torch.arange(16).view(2, 8) % 64
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batch = ((ids,), ids)
        run = cases.training_step("tiny", model, batch, cases.models._logits_loss, optimizer)
        for _ in range(5):
            run()
        return run, model, optimizer

    run, model, optimizer = train()
    step = tidemark.capture(run, model, optimizer, workspace=False)
    for policy in ("selective", "full"):
        plan = tidemark.Plan.policy(step, policy, preserve_rng=True)
        theirs = functools.partial(with_torch, step=step, plan=plan)
        kept = [train(), train(plan.apply), train(theirs), train(theirs)]
        columns = interleave([run for run, _, _ in kept], pairs)
        over = [statistics.median(a - b for a, b in zip(column, columns[0])) for column in columns[1:]]
        print(
            f"policy {policy}: plain step {1e3 * statistics.median(columns[0]):.2f} ms; ours +{1e3 * over[0]:.2f} ms, "
            f"PyTorch's +{1e3 * over[1]:.2f} ms: ratio {over[0] / over[1]:.3f} (A/A {over[2] / over[1]:.3f})",
            flush=True,
        )
        tidemark.remove(kept[1][1])


def measure(name: str, pairs: int) -> None:
    step = capture(name)
    loose = tidemark.plan(step, 1 << 50)
    full = tidemark.Plan.policy(step, "full", preserve_rng=True)
    smallest = tidemark.plan(step, 1).smallest_peak_bytes
    middle = tidemark.plan(step, (smallest + loose.unplanned_peak_bytes) // 2)
    plain = trainer(name, None)
    ours = trainer(name, lambda model: middle.plan.apply(model))
    theirs = trainer(name, functools.partial(with_torch, step=step, plan=middle.plan))
    columns = interleave([plain, ours, theirs, theirs], pairs)
    base = statistics.median(columns[0])
    over = [statistics.median(a - b for a, b in zip(column, columns[0])) for column in columns[1:]]
    print(f"{name}: plain step {1e3 * base:.2f} ms; plan of {len(middle.plan)} units, {sum(len(s) for _, s in middle.plan.units)} saved ops")
    print(f"  selective: ours +{1e3 * over[0]:.2f} ms, PyTorch's +{1e3 * over[1]:.2f} ms: ratio {over[0] / over[1]:.3f} (A/A {over[2] / over[1]:.3f})")

    equal = tidemark.plan(step, full.peak_bytes, reserve=0)
    ours = trainer(name, lambda model: equal.plan.apply(model))
    theirs = trainer(name, functools.partial(with_torch, step=step, plan=full))
    columns = interleave([theirs, ours, theirs], pairs)
    aa = sorted(a / b for a, b in zip(columns[0], columns[2]))
    highest = aa[int(0.95 * (len(aa) - 1))]
    ratio = statistics.median(a / b for a, b in zip(columns[1], columns[0]))
    print(
        f"  full: at its memory, plan / full checkpointing {ratio:.3f}, 95th percentile of A/A {highest:.3f}"
        f"{'' if ratio <= highest else ': SLOWER'}; predicted {equal.recompute_ms:.2f} against {full.recompute_ms:.2f} ms",
        flush=True,
    )


def capture(name: str):
    model, batch, loss = cases.build(name)
    optimizer = cases.optimizer_of(name, model)
    return tidemark.capture(cases.training_step(name, model, batch, loss, optimizer), model, optimizer)


def trainer(name: str, prepare):
    model, batch, loss = cases.build(name)
    model = copy.deepcopy(model)
    if prepare is not None:
        prepare(model)
    optimizer = cases.optimizer_of(name, model)
    run = cases.training_step(name, model, batch, loss, optimizer)
    run()
    run()
    return run


def interleave(runs: list, rounds: int) -> list[list[float]]:
    columns: list = [[] for _ in runs]
    for _ in range(rounds):
        for column, run in zip(columns, runs):
            began = time.process_time()
            run()
            column.append(time.process_time() - began)
    return columns


def with_torch(model, step, plan) -> None:
    """The plan's decisions by PyTorch's own functions, as a user would write them by hand."""
    for call, saved in plan.units:
        module = model.get_submodule(step.modules[step.calls[call].module].fqn)
        module.forward = _wrapped(module.forward, _occurrences(step, call, saved))


def _occurrences(step, call: int, saved: list[int]) -> frozenset:
    parents = {c.id: c.parent for c in step.calls}
    counts: dict = {}
    wanted = set()
    for op in step.ops:
        at = op.call
        while at is not None and at != call:
            at = parents[at]
        if at is None or step.passes[op.pass_].kind not in ("forward", "loss"):
            continue
        counts[op.name] = counts.get(op.name, -1) + 1
        if op.id in set(saved):
            namespace, name, overload = op.name.split(".")
            wanted.add((getattr(getattr(getattr(torch.ops, namespace), name), overload), counts[op.name]))
    return frozenset(wanted)


def _wrapped(forward, wanted: frozenset):
    def contexts():
        counts: dict = {}

        def policy(ctx, func, *args, **kwargs):
            counts[func] = occurrence = counts.get(func, -1) + 1
            return CheckpointPolicy.MUST_SAVE if (func, occurrence) in wanted else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(policy)

    more = {"context_fn": contexts} if wanted else {}
    return lambda *args, **kwargs: checkpoint(forward, *args, use_reentrant=False, **more, **kwargs)


if __name__ == "__main__":
    main()
