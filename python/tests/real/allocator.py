"""What PyTorch's CPU allocator did in a real step: run as a program, one process per measurement.

    python allocator.py MODEL [STEPS]        prints JSON: {"start": bytes, "events": [signed bytes, ...]}

`start` is what is allocated when the last step begins; the events are its allocations and frees in the order of time.
"""

from __future__ import annotations

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


def main() -> None:
    import models

    name = sys.argv[1]

    def prepare():
        model, batch, loss = models.build(name)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        return models.training_step(model, batch, loss, optimizer)

    print(json.dumps(measure(prepare)))


if __name__ == "__main__":
    main()
