"""What PyTorch's CPU allocator did in a real step: run as a program, one process per measurement.

    python allocator.py MODEL [PLAN.json]        prints JSON: {"start": bytes, "events": [signed bytes, ...]}

`start` is what is allocated when the last step begins; the events are its allocations and frees in the order of time.
A plan is {"units": {module: [[[op, occurrence], ...] for each of its calls]}, "early_stop": bool, "preserve_rng": bool}: those
modules run under PyTorch's own non-reentrant checkpoint, with the listed ops saved.
"""

from __future__ import annotations

import functools
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function


def measure(prepare, steps: int = 3) -> dict:
    """`prepare()` builds everything and returns the step; the profiler watches from before it, so that no block is
    unknown to it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step = prepare()
        for i in range(steps):
            if i < steps - 1:
                step()
                continue
            with record_function("the measured step"):
                step()
    events = profiler.profiler.kineto_results.events()
    window = next(e for e in events if e.name() == "the measured step")
    begin, end = window.start_ns(), window.start_ns() + window.duration_ns()
    memory = sorted((e.start_ns(), i, e.nbytes()) for i, e in enumerate(events) if e.name() == "[memory]")
    return {
        "start": sum(bytes for at, _, bytes in memory if at < begin),
        "events": [bytes for at, _, bytes in memory if begin <= at <= end],
    }


def _contexts(saved: list):
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    wanted = {(op, occurrence) for op, occurrence in saved}
    counts: dict = {}

    def policy(ctx, func, *args, **kwargs):
        name = str(func)
        occurrence = counts.get(name, 0)
        counts[name] = occurrence + 1
        return CheckpointPolicy.MUST_SAVE if (name, occurrence) in wanted else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def checkpoint_modules(model, plan: dict, zero) -> None:
    """Wraps the forward of the plan's modules; `zero` is a list whose members are called before every step."""
    from torch.utils.checkpoint import checkpoint

    for name, calls in plan["units"].items():
        module = model.get_submodule(name)
        module.forward = _checkpointed(checkpoint, module.forward, calls, plan, zero)


def _checkpointed(checkpoint, forward, calls: list, plan: dict, zero: list):
    count = [0]
    zero.append(lambda: count.__setitem__(0, 0))

    def run(*args, **kwargs):
        saved = calls[count[0]]
        count[0] += 1
        if saved is None:  # this call is not in the plan
            return forward(*args, **kwargs)
        more = {"context_fn": functools.partial(_contexts, saved)} if saved else {}
        return checkpoint(
            forward,
            *args,
            use_reentrant=False,
            preserve_rng_state=plan["preserve_rng"],
            early_stop=plan["early_stop"],
            **more,
            **kwargs,
        )

    return run


def main() -> None:
    import models

    name = sys.argv[1]
    plan = json.load(open(sys.argv[2])) if len(sys.argv) > 2 else None

    def prepare():
        model, batch, loss = models.build(name)
        zero: list = []
        if plan is not None:
            checkpoint_modules(model, plan, zero)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        step = models.training_step(model, batch, loss, optimizer)

        def whole():
            for reset in zero:
                reset()
            step()

        return whole

    print(json.dumps(measure(prepare)))


if __name__ == "__main__":
    main()
