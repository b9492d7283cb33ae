"""What kernels allocate out of everybody's sight, measured: each kind of op is run once, alone, for real.

A row says what happens inside the op: [0, k] its k-th fresh output is allocated, [1, bytes] the kernel allocates
scratch, [2, i] it frees the i-th scratch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .. import _core

# Above this many bytes of arguments, or FLOPs, an op is not run.
MOST_BYTES = 256 << 20
MOST_FLOPS = 500_000_000_000
_BATCH = 32
_DTYPES = {value: name for name, value in vars(torch).items() if isinstance(value, torch.dtype)}


class Specimen:
    """A tensor argument without its values."""

    __slots__ = ("dtype", "size", "stride", "extent", "ones")

    def __init__(self, t) -> None:
        self.dtype = t.dtype
        self.size = t.size()
        self.stride = t.stride()
        extent = 1
        for size, stride in zip(self.size, self.stride):
            if size == 0:
                extent = 0
                break
            extent += (size - 1) * stride
        self.extent = extent
        self.ones = 0
        if self.dtype is torch.bool:  # how much an op allocates for a mask depends on how much it selects
            values = getattr(t, "_tidemark_shadow", None) if isinstance(t, FakeTensor) else t
            if values is not None:
                guard = torch._C._DisableTorchDispatch()
                self.ones = int(values.sum())
                del guard

    def resized(self, size: list) -> Specimen:
        """The same with other sizes, dense in the order of its strides; what was expanded stays so."""
        other = object.__new__(Specimen)
        other.dtype, other.ones, other.size = self.dtype, 0, size
        other.stride = [0] * len(size)
        other.extent = 1
        for i in sorted(range(len(size)), key=lambda i: self.stride[i]):
            if self.stride[i] != 0:
                other.stride[i] = other.extent
                other.extent *= size[i]
        return other

    @property
    def bytes(self) -> int:
        return self.extent * self.dtype.itemsize

    def coded(self) -> dict:
        return {"tensor": [str(self.dtype).removeprefix("torch."), list(self.size), list(self.stride), self.extent, self.ones]}


class NumberSpecimen:
    """A number that autograd saved as a tensor."""

    __slots__ = ("value",)
    bytes = 8

    def __init__(self, value) -> None:
        self.value = value

    def coded(self) -> dict:
        return {"number": self.value}


def specimen(value):
    if isinstance(value, torch.Tensor):
        return Specimen(value)
    if type(value) in (list, tuple):
        return [specimen(item) for item in value]
    return value


def _coded(value):
    if isinstance(value, (Specimen, NumberSpecimen)):
        return value.coded()
    if isinstance(value, list):
        return [_coded(item) for item in value]
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.Generator):
        return None  # whose numbers they are makes no difference
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"an op has an argument of type {type(value).__name__}")


def argument_bytes(value) -> int:
    if isinstance(value, (Specimen, NumberSpecimen)):
        return value.bytes
    if isinstance(value, list):
        return sum(argument_bytes(item) for item in value)
    return 0


def _is_view(func) -> bool:
    """Whether an op returns nothing but views of its inputs: it allocates nothing."""
    returns = func._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def _is_too_large(args, kwargs, flops) -> bool:
    return argument_bytes(args) + argument_bytes(list(kwargs.values())) > MOST_BYTES or (flops or 0) > MOST_FLOPS


def measure(samples: dict, flops: dict) -> tuple[dict, list]:
    """{kind: (row, row under a dispatch mode)}, and the kinds that were not run: they are too large, or fail."""
    rows = {kind: ([], []) for kind, sample in samples.items() if _is_view(sample[0])}
    kinds = [
        kind
        for kind, (func, args, kwargs, _) in samples.items()
        if kind not in rows and func.namespace == "aten" and not _is_too_large(args, kwargs, flops.get(kind))
    ]
    found = run_ops([samples[kind][:3] for kind in kinds])
    rows |= {kinds[number]: row for number, row in found.items() if row}
    return rows, [kind for kind in samples if kind not in rows]


def run_ops(listed: list) -> dict:
    """{position: (row, row under a dispatch mode)} for (overload, arguments, keyword arguments) that could be run."""
    numbers, ops = [], []
    for number, (func, args, kwargs) in enumerate(listed):
        try:
            ops.append({"op": str(func), "args": _coded(args), "kwargs": {k: _coded(v) for k, v in kwargs.items()}})
            numbers.append(number)
        except TypeError:  # an argument that no other process can be told
            continue
    rows: dict = {}
    first, batch, alone = 0, _BATCH, 0
    while first < len(ops):
        last = len(ops) if alone == 0 else min(len(ops), first + _BATCH)
        found, reached = _run(ops[first:last], batch if alone == 0 else 1)
        for number, row in found.items():
            rows[numbers[first + number]] = row
        if len(found) == last - first:
            first, alone = last, 0
        elif alone == 0:  # something in this batch ends the process: one by one
            first, alone = first + reached, 1
        else:
            rows[numbers[first + reached]] = False
            first += reached + 1
    return {number: pair for number, pair in rows.items() if pair is not False}


def table(step, samples: dict, flops: dict, target):
    """The workspace table of a step on a device, and the names of the ops that it has no row for."""
    from . import estimates

    listed: list = []

    def add(kind, plain, watched, estimated: bool) -> None:
        key = _core.workspace_key(step, samples[kind][3])
        # Also of ops without scratch: they are known to have none.
        listed.append((key, [tuple(s) for s in plain], estimated))
        if watched != plain:
            listed.append((key + " watched", [tuple(s) for s in watched], estimated))

    if target.is_imitated:
        for kind, row in estimates.on_cuda(samples).items():
            add(kind, row, row, True)
        return _core.WorkspaceTable(listed, device=target.name), []
    rows, skipped = measure(samples, flops)
    for kind, pair in rows.items():
        add(kind, *pair, False)
    large = {kind: samples[kind] for kind in skipped if _is_too_large(*samples[kind][1:3], flops.get(kind))}
    guessed = estimates.extrapolated(large)
    for kind, pair in guessed.items():
        add(kind, *pair, True)
    return _core.WorkspaceTable(listed, device="cpu"), [kind[0][0] for kind in skipped if kind not in guessed]


def unmeasured_text(names: list) -> str:
    """What it means that these ops have no row."""
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return f"what {shown} allocate{'s' if len(names) == 1 else ''} inside could not be measured, so the peak may be higher than predicted"


def _run(ops: list, batch: int) -> tuple[dict, int]:
    """Rows by position, and where the batch begins in which the process ended, if it did."""
    worker = os.path.join(os.path.dirname(__file__), "workspace_worker.py")
    task = json.dumps({"threads": torch.get_num_threads(), "batch": batch, "ops": ops})
    done = subprocess.run([sys.executable, worker], input=task, capture_output=True, text=True, check=False)
    found: dict = {}
    reached = 0
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word == "run":
            reached = int(rest)
        elif word == "row":
            number, _, row = rest.partition(" ")
            found[int(number)] = json.loads(row)
    return found, reached
