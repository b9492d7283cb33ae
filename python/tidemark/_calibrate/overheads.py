"""What PyTorch spends around ops: calling them, recording them for backward, checkpointing them.

Each figure is a difference of two runs that differ in nothing else. In a step, little of this code is still in a core's own
caches when its turn comes, since the op before has gone through megabytes; so something of that size passes through them
between any two ops here, while the clock stands still.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import Any, Callable

import torch
from torch.utils.checkpoint import checkpoint

from .rerun import Rerun

_BETWEEN_BYTES = 4 << 20  # of usual ops; above a core's caches (up to 2 MiB on today's CPUs), below those that cores share
_ROUNDS = 25
_LENGTHS = (2, 18)  # ops of a region: the difference tells what their saves cost
_SAVES = 2  # of an op, as most have: an input and a weight, an input and an output
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
    pause = _Pause(device, now)

    def both_ways(forward: Callable[[], torch.Tensor]) -> int:
        first, y = pause.timed(forward)
        return first + pause.timed(y.sum().backward)[0]

    def chain(length: int) -> Callable[[torch.Tensor], torch.Tensor]:
        def inside(y: torch.Tensor) -> torch.Tensor:
            for _ in range(length):
                y = pause.before(y)
                y = y * y
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
                again = pause.timed(lambda: inside(x))[0]
                plain = both_ways(lambda: inside(x))
                more = both_ways(lambda: checkpoint(inside, x, use_reentrant=False, preserve_rng_state=False))
                if turn >= 2:
                    extra[length].append(more - plain - again)
            random.append(pause.timed(keep_random_state)[0])
    short, long = (row_of(extra[length]) for length in _LENGTHS)
    saves = [_SAVES * length for length in _LENGTHS]
    save = max(0, (long[0] - short[0]) // (saves[1] - saves[0]))
    return {
        "checkpoint region": (max(0, short[0] - saves[0] * save), short[1]),
        "checkpoint save": (save, long[1] // saves[1]),
        "checkpoint random state": row_of(random[2:]),
    }


def time_op_overheads(now: Clock, call: int) -> dict[str, Row]:
    """By kind of pass, what each op costs more in a program's own step than when it is run again: modules and Python around
    it, its node. On a CPU, where the host's work is the device's. `call`: what `call_ns` said."""
    from ..recording import capture

    before: Callable[[torch.Tensor], torch.Tensor] = lambda x: x

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.wide, self.narrow = torch.nn.LayerNorm(16), torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
            self.act = torch.nn.GELU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.norm(before(x))
            y = self.act(before(self.wide(before(y))))
            return x + before(self.narrow(before(y)))

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
    calls = {op.id: op.call for op in step.ops}
    rerun = Rerun(step, "cpu", now)
    pause = _Pause("cpu", now)
    before = pause.before
    last = None

    def before_op(op: int) -> None:
        """Where the program pauses, too: where one module's ops end and another's begin, forward and backward."""
        nonlocal last
        if calls[op] not in (None, last):
            last = calls[op]
            pause()

    more: dict[str, list[int]] = defaultdict(list)
    for turn in range(_ROUNDS + 2):
        with torch.enable_grad():
            optimizer.zero_grad()
            forward, loss = pause.timed(lambda: model(x).sum())
            backward, _ = pause.timed(loss.backward)
            update, _ = pause.timed(optimizer.step)
        with torch.no_grad():
            times = rerun.once(before_op)
        if turn < 2:
            continue
        for took, names in (forward, ("forward", "loss")), (backward, ("backward",)), (update, ("optimizer",)):
            alone = [max(0, ns - call) for op, ns in times.items() if kinds[op] in names]
            more[names[0]].append((took - sum(alone)) // max(1, len(alone)))
    rows = {name: row_of(found) for name, found in more.items()}
    return {f"op overhead {name}": (max(0, median), spread) for name, (median, spread) in rows.items()}


class _Pause:
    """Empties the caches, and a clock that does not count it."""

    def __init__(self, device: str, now: Clock) -> None:
        self._scratch = torch.zeros(_BETWEEN_BYTES, dtype=torch.uint8, device=device)
        self._now, self._wait = now, torch.cuda.synchronize if device != "cpu" else None
        self._paused_ns = 0

    def __call__(self, *_: Any) -> None:
        start = self._now()
        with torch.no_grad():
            self._scratch.add_(1)
        if self._wait:
            self._wait()
        self._paused_ns += self._now() - start

    def before(self, x: torch.Tensor) -> torch.Tensor:
        """Pauses here, and in backward before the ops that made x."""
        start = self._now()
        if x.requires_grad and not x.is_leaf:
            x.register_hook(self)
        self._paused_ns += self._now() - start
        self()
        return x

    def timed(self, run: Callable[[], Any]) -> tuple[int, Any]:
        self()
        self._paused_ns = 0
        start = self._now()
        result = run()
        return self._now() - start - self._paused_ns, result
