"""What PyTorch does in place when nobody watches: which ops, and by which rules."""

from __future__ import annotations

import torch

from .arguments import Described

aten = torch.ops.aten

# When somebody watches the dispatcher, PyTorch writes some results out of place that it would otherwise write in place
# (FunctionsManual.cpp and attention.cpp, areAnyTensorSubclassLike; input_buffer.cpp, can_accumulate_inplace). These are
# the ops it does that with, and what it runs when nobody watches, with the arguments that one takes in addition. The
# Step keeps the name that a watcher sees, with the flag "unwatched".
IN_PLACE = {
    aten.add.Tensor: (aten.add_.Tensor, {}),
    aten.index_add.default: (aten.index_add_.default, {}),
    aten.index_fill.int_Tensor: (aten.index_fill_.int_Tensor, {}),
    aten.index_put.default: (aten._index_put_impl_.default, {"unsafe": True}),
    aten.masked_fill.Scalar: (aten.masked_fill_.Scalar, {}),
    aten.masked_fill.Tensor: (aten.masked_fill_.Tensor, {}),
    aten.masked_scatter.default: (aten.masked_scatter_.default, {}),
    aten.put.default: (aten.put_.default, {}),
    aten.scatter.src: (aten.scatter_.src, {}),
    aten.scatter.value: (aten.scatter_.value, {}),
    aten.scatter_add.default: (aten.scatter_add_.default, {}),
}

# The same for the formulas of single nodes, whose other ops have no such rule.
IN_PLACE_IN = {
    "BinaryCrossEntropyWithLogitsBackward0": {
        aten.sub.Tensor: (aten.sub_.Tensor, {}),
        aten.mul.Tensor: (aten.mul_.Tensor, {}),
    },
}


class Pending:
    """An op that PyTorch does in place when nothing else holds its first operand: what happens next tells."""

    __slots__ = ("func", "described", "facts", "first", "out", "out_ref", "call", "node", "source", "in_backward", "instead")


def is_engine_sum(d: Described, node: int, has_open_saves: bool) -> bool:
    """Whether the engine adds the gradients of two nodes, or the node itself adds something.

    The engine still calls the node the current one while it hands out the node's gradients, but by then it has
    released what the node saved; and the first gradient was made by an earlier node.
    """
    return len(d.refs) == 2 and None not in d.refs and not has_open_saves and d.refs[0].node != node


def may_add_in_place(d: Described) -> bool:
    """Whether the engine would add into the first gradient if it is the last to hold it."""
    if len(d.refs) != 2 or None in d.refs:
        return False
    first, second = d.tensors
    ref = d.refs[0]
    return (
        ref is not d.refs[1]
        and not ref.fixed
        and ref.save is None
        and not first._is_view()
        and first.size() == second.size()
        and _is_dense(first)
    )


def is_made_by(d: Described, node: int) -> bool:
    """Whether the first operand is something the running node made for itself."""
    ref = d.refs[0] if d.refs else None
    return ref is not None and ref.node == node and ref.save is None and not ref.fixed


def _is_dense(t) -> bool:
    """Non-overlapping and dense: the strides, sorted, are those of some order of dimensions."""
    expected = 1
    for stride, size in sorted((stride, size) for stride, size in zip(t.stride(), t.size()) if size != 1):
        if stride != expected:
            return False
        expected *= size
    return True
