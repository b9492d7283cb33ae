"""How much an op computes, reads and writes, from its arguments and layouts.

FLOPs are those of PyTorch's own counter (matrix products, convolutions and attention; a multiplication and an addition are
two), and zero for what it takes as free. Bytes are those of the elements that an op touches, each once: an expanded
tensor counts by what it holds, a view costs nothing.
"""

from __future__ import annotations

import math

import torch

aten = torch.ops.aten

# The counter knows these by the name they have on another device, or as another op's work.
_SAME_FLOPS = {
    "_scaled_dot_product_flash_attention_for_cpu": "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu_backward": "_scaled_dot_product_flash_attention_backward",
    "_addmm_activation": "addmm",
}
# They hold matrix products that nothing counts.
_UNCOUNTED = {"mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "_cudnn_rnn", "_cudnn_rnn_backward", "miopen_rnn"}

# New memory that nothing is written to; inputs that give their layout only; values that are overwritten unread.
_EMPTY = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
_LAYOUT_ONLY = {
    *("zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like"),
    *("new_zeros", "new_ones", "new_full"),
}
_OVERWRITES = {"fill_", "zero_", "copy_", "normal_", "uniform_", "bernoulli_", "exponential_", "random_"}
# They read as much of their first input as they return, or write as much of it as they are given.
_GATHERS = {"embedding", "index_select", "gather", "index", "take", "take_along_dim"}
_BAGS = {"_embedding_bag", "_embedding_bag_forward_only"}
_SCATTERS = {
    "index_add_", "index_put_", "_index_put_impl_", "scatter_", "scatter_add_", "scatter_reduce_", "index_copy_", "index_reduce_", "put_",
}


def touched(dtype: torch.dtype, size, stride) -> int:
    """Bytes of the elements that a layout reaches, each once."""
    count = extent = 1
    for length, step in zip(size, stride):
        if length == 0:
            return 0
        if step != 0:
            count *= length
            extent += (length - 1) * step
    return min(count, extent) * dtype.itemsize


def flops(func, args, kwargs, out) -> int | None:
    """As PyTorch counts them; None when an op holds work that nobody counts."""
    if func.namespace != "aten":
        return None
    registry, by_name = _counter()
    packet = func._overloadpacket
    name = packet.__name__
    if name in _UNCOUNTED:
        return None
    if name == "dot" or name == "vdot":
        return 2 * args[0].numel()
    if name == "_grouped_mm":  # every row of the first with the matrix of its group, or every column of the second
        first, second = args[0], args[1]
        of_columns = first.dim() == 3 and second.dim() == 2
        return 2 * (first.size(1) * first.size(2) if of_columns else first.numel()) * second.size(-1)
    if name in ("mv", "addmv"):
        return 2 * args[1 if name == "addmv" else 0].numel()
    formula = registry.get(packet) or by_name.get(_SAME_FLOPS.get(name))
    if formula is None:
        return 0
    try:
        return int(formula(*args, **kwargs, out_val=out))
    except (TypeError, ValueError, AssertionError, RuntimeError, IndexError):
        return None


_known: list = []


def _counter():
    if not _known:
        from torch.utils.flop_counter import flop_registry

        _known.append((flop_registry, {p.__name__: f for p, f in flop_registry.items() if hasattr(p, "__name__")}))
    return _known[0]


def traffic(func, inputs: list, outputs: list, mutated: list, shapes: list) -> tuple[int | None, int | None]:
    """(read, written) bytes. `inputs` are the bytes of the distinct tensors it is given, in order, and `shapes` their
    sizes; `outputs` the bytes of its fresh results; `mutated` the positions of the inputs it writes to."""
    if func.namespace != "aten":
        return None, None
    name = func._overloadpacket.__name__
    if not outputs and not mutated:
        return 0, 0  # views, and questions about a tensor
    if name in _EMPTY:
        return 0, 0
    if name in _LAYOUT_ONLY:
        return 0, sum(outputs)
    if name in _GATHERS:
        return sum(inputs[1:]) + sum(outputs), sum(outputs)
    if name in _BAGS:  # a row for each index, whatever comes out; the table may be far larger
        rows = math.prod(shapes[1]) * inputs[0] // max(1, shapes[0][0])
        return min(inputs[0], rows) + sum(inputs[1:]), sum(outputs)
    if name in _SCATTERS:
        values = sum(inputs[1:])
        return values, max(inputs[1:], default=0)
    written = sum(outputs) + sum(inputs[i] for i in mutated)
    if name in _OVERWRITES:
        return sum(size for i, size in enumerate(inputs) if i not in mutated), written
    return sum(inputs), written
