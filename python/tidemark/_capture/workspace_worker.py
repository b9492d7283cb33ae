"""Runs ops alone, for real, and prints what they allocate. A process of its own: an op on made-up values may crash.

Reads one JSON object from standard input: {"threads": n, "ops": [{"op": name, "args": [...], "kwargs": {...}}, ...]}.
Prints "run N" before a batch that starts with op N, and "row N JSON" for each op: its rows, plain and under a dispatch
mode, or false when it cannot be run.
"""

from __future__ import annotations

import contextlib
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._python_dispatch import TorchDispatchMode

LABEL = "tidemark "


def value_of(coded):
    if isinstance(coded, list):
        return [value_of(item) for item in coded]
    if not isinstance(coded, dict):
        return coded
    ((kind, content),) = coded.items()
    if kind == "tensor":
        dtype, size, stride, extent, ones = content
        dtype = getattr(torch, dtype)
        # Whole numbers are indices as often as not: 0 is always a valid one.
        flat = torch.zeros(extent, dtype=dtype)
        flat[:ones] = 1
        if dtype.is_floating_point:
            flat.fill_(0.5)
        return flat.as_strided(size, stride)
    if kind == "number":
        return torch.tensor(content, dtype=torch.float64 if isinstance(content, float) else None)
    if kind == "torch":
        return getattr(torch, content)
    return torch.device("cpu")


def overload(name: str):
    namespace, packet, variant = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), variant)


def _rnn_backward(args: list) -> list:
    """The scratch that forward leaves for backward has a form of its own: forward makes it."""
    inputs, weights, hidden, cell = args[0], args[1:5], args[5], args[6]
    reverse, mode, hidden_size, layers, biases, train, bidirectional, batch_sizes, batch_first = args[13:22]
    forward = torch.ops.aten.mkldnn_rnn_layer.default
    outs = forward(
        inputs, *weights, hidden, cell, reverse, batch_sizes, mode, hidden_size, layers, biases, bidirectional, batch_first, train
    )
    return [*args[:22], outs[3]]


PREPARE = {"aten.mkldnn_rnn_layer_backward.default": _rnn_backward}


def storages(out, into: list) -> list:
    if isinstance(out, torch.Tensor):
        into.append(out.untyped_storage())
    elif isinstance(out, (list, tuple)):
        for item in out:
            storages(item, into)
    return into


def run_batch(ops: list, first: int) -> dict:
    outputs: dict = {}
    # Gradients stay enabled, as in training: some kernels ask. Nothing here requires any.
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        for number, op in enumerate(ops, first):
            try:
                func = overload(op["op"])
                kwargs = {k: value_of(v) for k, v in op["kwargs"].items()}
                args = value_of(op["args"])
                if op["op"] in PREPARE:
                    args = PREPARE[op["op"]](args)
                func(*args, **kwargs)  # once before: kernels keep things from their first run
                for way in ("plain", "watched"):
                    args = value_of(op["args"])
                    if op["op"] in PREPARE:
                        args = PREPARE[op["op"]](args)
                    with record_function(f"{LABEL}{number} {way}"), WAYS[way]:
                        out = func(*args, **kwargs)
                    given = {s.data_ptr() for s in storages(list(args) + list(kwargs.values()), [])}
                    outputs[number, way] = [s.data_ptr() for s in storages(out, []) if s.data_ptr() not in given]
                    del out, args
            except Exception:
                outputs.pop((number, "plain"), None)
    found: dict = {}
    for number, way, events in windows(profiler):
        if (number, way) in outputs:
            found[number, way] = row_of(events, outputs[number, way])
    rows: dict = {}
    for number in range(first, first + len(ops)):
        rows[number] = [found[number, way] for way in WAYS] if (number, "plain") in outputs else False
    return rows


class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


WAYS = {"plain": contextlib.nullcontext(), "watched": Watch()}


def windows(profiler):
    """(number, way, [(address, signed bytes)]) of each labelled run."""
    pending = list(profiler.profiler.kineto_results.experimental_event_tree())
    while pending:
        event = pending.pop()
        if event.name.startswith(LABEL):
            found: list = []
            allocations(event, found)
            found.sort(key=lambda a: a[0])
            number, way = event.name[len(LABEL) :].split()
            yield int(number), way, [(address, bytes) for _, address, bytes in found]
        else:
            pending.extend(event.children)


def allocations(event, into: list) -> None:
    for child in event.children:
        fields = child.extra_fields
        if hasattr(fields, "alloc_size"):
            into.append((child.start_time_ns, fields.ptr, fields.alloc_size))
        allocations(child, into)


def row_of(events: list, outputs: list) -> list:
    last = {address: at for at, (address, bytes) in enumerate(events) if bytes > 0}  # an address can be used twice
    fresh = {last[address]: k for k, address in enumerate(dict.fromkeys(a for a in outputs if a in last))}
    row: list = []
    open_scratch: dict = {}
    count = 0
    for at, (address, bytes) in enumerate(events):
        if bytes > 0 and at in fresh:
            row.append([0, fresh[at]])
        elif bytes > 0:
            row.append([1, bytes])
            open_scratch[address] = count
            count += 1
        elif address in open_scratch:
            row.append([2, open_scratch.pop(address)])
    return row


def main() -> None:
    task = json.load(sys.stdin)
    torch.set_num_threads(task["threads"])
    ops, size = task["ops"], task["batch"]
    for first in range(0, len(ops), size):
        print(f"run {first}", flush=True)
        for number, row in run_batch(ops[first : first + size], first).items():
            print(f"row {number} {json.dumps(row)}", flush=True)


if __name__ == "__main__":
    main()
