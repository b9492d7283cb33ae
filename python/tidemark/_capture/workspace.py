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

# Above this many bytes of arguments an op is not run.
MOST_BYTES = 256 << 20
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
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"an op has an argument of type {type(value).__name__}")


def _bytes(value) -> int:
    if isinstance(value, (Specimen, NumberSpecimen)):
        return value.bytes
    if isinstance(value, list):
        return sum(_bytes(item) for item in value)
    return 0


def measure(samples: dict) -> tuple[dict, list]:
    """{kind: (row, row under a dispatch mode)}, and the kinds that could not be run."""
    kinds, ops, skipped = [], [], []
    for kind, (func, args, kwargs, _) in samples.items():
        try:
            if func.namespace != "aten" or _bytes(args) + _bytes(list(kwargs.values())) > MOST_BYTES:
                raise TypeError
            ops.append({"op": str(func), "args": _coded(args), "kwargs": {k: _coded(v) for k, v in kwargs.items()}})
            kinds.append(kind)
        except TypeError:
            skipped.append(kind)
    rows: dict = {}
    first, batch, alone = 0, _BATCH, 0
    while first < len(ops):
        last = len(ops) if alone == 0 else min(len(ops), first + _BATCH)
        found, reached = _run(ops[first:last], batch if alone == 0 else 1)
        for number, row in found.items():
            rows[kinds[first + number]] = row
        if len(found) == last - first:
            first, alone = last, 0
        elif alone == 0:  # something in this batch ends the process: one by one
            first, alone = first + reached, 1
        else:
            rows[kinds[first + reached]] = False
            first += reached + 1
    skipped += [kind for kind, row in rows.items() if row is False]
    return {kind: pair for kind, pair in rows.items() if pair is not False}, skipped


def table(step, samples: dict):
    """The workspace table of a step, and the names of the ops that could not be measured."""
    rows, skipped = measure(samples)
    listed = []
    for kind, (plain, watched) in rows.items():
        key = _core.workspace_key(step, samples[kind][3])
        listed.append((key, [tuple(s) for s in plain], False))  # also of ops without scratch: they are known to have none
        if watched != plain:
            listed.append((key + " watched", [tuple(s) for s in watched], False))
    return _core.WorkspaceTable(listed, device="cpu"), [kind[0][0] for kind in skipped]


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
