"""Workspace that cannot be measured here.

An op that is too large to be run: two smaller ones of its kind are run, and what they allocated is continued in a straight
line. Another device: what its kernels are known to allocate, by op; nothing for the others.
"""

from __future__ import annotations

import torch

from .workspace import MOST_BYTES, Specimen, argument_bytes, run_ops

# The larger of the two trials has about this many bytes of arguments.
_TRIAL_BYTES = MOST_BYTES // 4


def extrapolated(samples: dict) -> dict:
    """{kind: (row, row under a dispatch mode)} for those that could be tried."""
    trials, kinds = [], []
    for kind, (func, args, kwargs, _) in samples.items():
        if func.namespace != "aten":
            continue
        pair = _trials(args, kwargs)
        if pair is not None:
            kinds.append((kind, *(scale for *_, scale in pair)))
            trials += [(func, small, small_kwargs) for small, small_kwargs, _ in pair]
    found = run_ops(trials)
    rows = {}
    for number, (kind, first, second) in enumerate(kinds):
        larger, smaller = found.get(2 * number), found.get(2 * number + 1)
        if larger and smaller:
            rows[kind] = tuple(_continued(a, b, first, second) for a, b in zip(larger, smaller))
    return rows


def _continued(larger: list, smaller: list, first: float, second: float) -> list:
    """`first` and `second` are how large the trials are, as parts of the whole. Rows of another form are scaled."""
    same_form = [step[0] for step in larger] == [step[0] for step in smaller]
    row = []
    for position, (what, amount) in enumerate(larger):
        if what == 1:
            if same_form:
                slope = (amount - smaller[position][1]) / (first - second)
                amount = max(amount, round(amount + slope * (1 - first)))
            else:
                amount = round(amount / first)
        row.append([what, amount])
    return row


def _trials(args, kwargs):
    """The op with one dimension made smaller, twice: (arguments, keyword arguments, part of the whole)."""
    largest = max(_specimens([*args, *kwargs.values()]), key=lambda s: s.bytes, default=None)
    if largest is None:
        return None
    factor = -(-argument_bytes([*args, *kwargs.values()]) // _TRIAL_BYTES)
    # The batch comes first, and which kernel runs hardly depends on it; else whatever is long enough.
    length = next((n for n in largest.size if n >= 2 * factor), max(largest.size, default=0))
    sizes = [length // factor, length // (2 * factor)]
    if sizes[1] < 1 or sizes[0] == sizes[1]:
        return None
    power = list(largest.size).count(length)
    return [
        (
            _shrunk(list(args), length, size),
            {k: _shrunk(v, length, size) for k, v in kwargs.items()},
            (size / length) ** power,
        )
        for size in sizes
    ]


def _specimens(value) -> list:
    if isinstance(value, Specimen):
        return [value]
    if isinstance(value, (list, tuple)):
        return [s for item in value for s in _specimens(item)]
    return []


def _shrunk(value, length: int, size: int):
    if isinstance(value, Specimen):
        return value.resized([size if n == length else n for n in value.size])
    if isinstance(value, list):
        return [_shrunk(item, length, size) for item in value]
    if type(value) is int and value == length:
        return size
    return value


# -- CUDA --


def _rounded(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _flash_backward(args) -> list:
    """flash_api.cpp of torch 2.13, mha_bwd: the gradient of the query is summed in single precision, beside one
    number per row; keys and values that several heads share get a gradient per head first."""
    query, key = args[1], args[2]
    batch, heads, length, width = query.size
    rows = _rounded(length, 128)
    wide = _rounded(width, 32 if width <= 128 else 64)
    scratch = [batch * heads * rows * 4, batch * heads * rows * wide * 4]
    if key.size[1] != heads:
        scratch += [batch * key.size[2] * heads * width * query.dtype.itemsize] * 2
    return scratch


def _efficient_backward(args) -> list:
    """attention_backward.cu of torch 2.13: one number per row of the query."""
    batch, heads, length, _ = args[1].size
    return [batch * heads * _rounded(length, 32) * 4]


def _embedding_backward(args) -> list:
    """Embedding.cu of torch 2.13: above 3,072 indices they are sorted with their positions."""
    indices = args[1]
    count = 1
    for n in indices.size:
        count *= n
    return [8 * count] * 4 if count > 3072 else []


_CUDA = {
    "_scaled_dot_product_flash_attention_backward": _flash_backward,
    "_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "embedding_dense_backward": _embedding_backward,
}


def on_cuda(samples: dict) -> dict:
    """{kind: row}: what kernels are known to allocate before their results; nothing for all others."""
    rows = {}
    for kind, (func, args, _, _) in samples.items():
        formula = _CUDA.get(func._overloadpacket.__name__) if isinstance(func, torch._ops.OpOverload) else None
        rows[kind] = [[1, bytes] for bytes in formula(args)] if formula else []
    return rows
