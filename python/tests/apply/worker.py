"""One process that trains a model for three steps, with a plan or without:

    python worker.py MODEL [PLAN.json]      or, with such lines on its input, one process forked for each:
    python worker.py --serve [MODULE TO IMPORT ...]

prints JSON: what the allocator did in the third step, a digest of losses, gradients, buffers, parameters and optimizer
state afterwards, and how many ops each unit of the plan ran again in one more step.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import traceback
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cases  # noqa: E402
from allocator import measure  # noqa: E402


def digest_of(model, optimizer, losses: list) -> str:
    found = hashlib.sha256(json.dumps(losses).encode())

    def add(name, value):
        found.update(name.encode())
        if isinstance(value, torch.Tensor):
            found.update(str((value.dtype, tuple(value.shape))).encode())
            found.update(value.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        else:
            found.update(repr(value).encode())

    for name, parameter in model.named_parameters():
        add(name, parameter)
        add(name + ".grad", parameter.grad)
        for key, value in sorted(optimizer.state.get(parameter, {}).items()):
            add(f"{name}.{key}", value)
    for name, buffer in model.named_buffers():
        add(name, buffer)
    add("random", torch.get_rng_state())
    return found.hexdigest()


def report_on(name: str, plan: str | None) -> dict:
    kept: dict = {}
    losses: list = []

    def prepare():
        import tidemark

        model, batch, loss = cases.build(name)
        if plan is not None:
            tidemark.Plan.load(plan).apply(model)
        optimizer = cases.optimizer_of(name, model)
        kept.update(model=model, batch=batch, loss=loss, optimizer=optimizer)
        torch.manual_seed(1)
        return cases.training_step(name, model, batch, loss, optimizer)

    report = measure(prepare)
    model, optimizer = kept["model"], kept["optimizer"]
    # The measured steps keep no loss, as the captured one did not.
    cases.training_step(name, model, kept["batch"], kept["loss"], optimizer, losses)()
    report["digest"] = digest_of(model, optimizer, losses)
    if plan is not None:
        from tidemark._apply.apply import find
        from tidemark._apply.audit import _row
        from tidemark._apply.tally import Tallies

        state = find(model)
        state.audit = Tallies(state.words.units)
        cases.training_step(name, model, kept["batch"], kept["loss"], optimizer)()
        rows = [_row(tally) for tally in state.audit.by_unit.values()]
        report["units"] = len(rows)
        report["agrees"] = all(row.agrees for row in rows)
        report["recomputed"] = sum(row.recomputed_ops for row in rows)
        report["differing"] = [str(row) for row in rows if not row.agrees]
    running = highest = report["start"]
    for change in report.pop("events"):
        running += change
        highest = max(highest, running)
    report["peak"] = highest
    return report


def serve() -> None:
    """Imports once. Nothing has run in this process, so that a child's measurement is its own."""
    for module in sys.argv[2:]:
        importlib.import_module(module)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            name, *plan = line.split()
            try:
                print(json.dumps(report_on(name, *(plan or [None]))), flush=True)
            except BaseException:  # noqa: BLE001
                print(json.dumps({"failed": traceback.format_exc()}), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve()
    else:
        print(json.dumps(report_on(sys.argv[1], *(sys.argv[2:] or [None]))))
