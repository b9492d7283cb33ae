"""What PyTorch spends around ops: calling them, recording them for backward, checkpointing them.

Each figure is a difference of two runs that differ in nothing else. In a step, little of this code is still in the caches
when its turn comes, since the ops between have gone through megabytes; so the caches are emptied before each part is timed.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import Any, Callable

import torch
from torch.utils.checkpoint import checkpoint

from .rerun import Rerun

_EVICTED_BYTES = 32 << 20
_ROUNDS = 25
_LENGTHS = (2, 18)  # ops of a region, one save each: the difference tells what a save costs
_CALLS = 200

Clock = Callable[[], int]
Row = tuple[int, int]  # nanoseconds: a median, and half the distance between the quartiles


def row_of(times: list[int]) -> Row:
    times = sorted(times)
    n = len(times)
    return times[n // 2], (times[(3 * n) // 4] - times[n // 4]) // 2


def call_ns(now: Clock) -> int:
    """What reading the clock and calling an op from Python add to each time that is taken here: small ops called one by
    one, less the same ones called by PyTorch itself in one go. (On a CPU, its lists of tensors are such loops.)"""
    tensors = [torch.ones(4) for _ in range(_CALLS)]
    func = torch.ops.aten.add_.Scalar
    singles, loops = [], []
    for _ in range(_ROUNDS):
        for tensor in tensors:
            start = now()
            func(tensor, 1.0)
            singles.append(now() - start)
        start = now()
        torch._foreach_add_(tensors, 1.0)
        loops.append(now() - start)
    return max(0, int(statistics.median(singles) - statistics.median(loops) / _CALLS))


def time_regions(device: str, now: Clock) -> dict[str, Row]:
    """What a checkpointed region costs beside the ops that it runs again: once, for each save in it, and for keeping the
    random state, which is timed by itself, since it drowns in the difference."""
    x = torch.ones(4, 4, device=device, requires_grad=True)
    evict = _evictor(device)

    def timed(run: Callable[[], Any]) -> tuple[int, Any]:
        evict()
        start = now()
        result = run()
        return now() - start, result

    def both_ways(forward: Callable[[], torch.Tensor]) -> int:
        first, y = timed(forward)
        return first + timed(y.sum().backward)[0]

    def chain(length: int) -> Callable[[torch.Tensor], torch.Tensor]:
        def inside(y: torch.Tensor) -> torch.Tensor:
            for _ in range(length):
                y = torch.tanh(y)
            return y

        return inside

    def keep_random_state() -> None:
        devices = [] if device == "cpu" else [torch.cuda.current_device()]
        states = [torch.cuda.get_rng_state(d) for d in devices]
        state = torch.get_rng_state()
        with torch.random.fork_rng(devices):
            torch.set_rng_state(state)
            for d, own in zip(devices, states):
                torch.cuda.set_rng_state(own, d)

    extra: dict[int, list[int]] = {length: [] for length in _LENGTHS}
    random: list[int] = []
    with torch.enable_grad():
        for turn in range(_ROUNDS + 2):
            for length in _LENGTHS:
                inside = chain(length)
                again = timed(lambda: inside(x))[0]
                plain = both_ways(lambda: inside(x))
                more = both_ways(lambda: checkpoint(inside, x, use_reentrant=False, preserve_rng_state=False))
                if turn >= 2:
                    extra[length].append(more - plain - again)
            evict()
            inside(x)  # a region's own code has run by then
            start = now()
            keep_random_state()
            random.append(now() - start)
    short, long = (row_of(extra[length]) for length in _LENGTHS)
    save = max(0, (long[0] - short[0]) // (_LENGTHS[1] - _LENGTHS[0]))
    return {
        "checkpoint region": (max(0, short[0] - _LENGTHS[0] * save), short[1]),
        "checkpoint save": (save, long[1] // _LENGTHS[1]),
        "checkpoint random state": row_of(random[2:]),
    }


def time_op_overheads(now: Clock, call: int) -> dict[str, Row]:
    """By kind of pass, what each op costs more in a program's own step than when it is run again: modules and Python around
    it, its node. On a CPU, where the host's work is the device's. `call`: what `call_ns` said."""
    from ..recording import capture

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.wide, self.narrow = torch.nn.LayerNorm(16), torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norm(x))))

    model = torch.nn.Sequential(*[Block() for _ in range(8)])
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.ones(4, 8, 16)

    def run() -> None:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    with torch.enable_grad():
        step = capture(run, model, optimizer, workspace=False)
    kinds = {op.id: str(step.passes[op.pass_].kind) for op in step.ops}
    rerun = Rerun(step, "cpu", now)
    evict = _evictor("cpu")
    more: dict[str, list[int]] = defaultdict(list)
    for turn in range(_ROUNDS + 2):
        evict()
        with torch.enable_grad():
            marks = [now()]
            optimizer.zero_grad()
            loss = model(x).sum()
            marks.append(now())
            loss.backward()
            marks.append(now())
            optimizer.step()
            marks.append(now())
        evict()
        with torch.no_grad():
            times = rerun.once()
        if turn < 2:
            continue
        for i, names in enumerate((("forward", "loss"), ("backward",), ("optimizer",))):
            alone = [max(0, ns - call) for op, ns in times.items() if kinds[op] in names]
            more[names[0]].append((marks[i + 1] - marks[i] - sum(alone)) // max(1, len(alone)))
    rows = {name: row_of(found) for name, found in more.items()}
    return {f"op overhead {name}": (max(0, median), spread) for name, (median, spread) in rows.items()}


def _evictor(device: str) -> Callable[[], None]:
    scratch = torch.zeros(_EVICTED_BYTES, dtype=torch.uint8, device=device)

    def evict() -> None:
        scratch.add_(1)
        if device != "cpu":
            torch.cuda.synchronize()

    return evict
