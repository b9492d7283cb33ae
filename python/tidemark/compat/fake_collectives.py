"""What is known of a collective from its call: its group, the bytes it moves, its work handle."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed
import torch.distributed._functional_collectives  # registers the functional ops
from torch._C._distributed_c10d import FakeWork, ProcessGroup, Work, _resolve_process_group
from torch.utils._pytree import tree_leaves

__all__ = ["CollectiveOp", "collective_ops", "functional_collectives", "non_functional_collectives", "sync_ops"]

# By op, which tensors it moves. None: it only waits.
_FIRST, _SECOND, _LAST, _RESULT = "first", "second", "last", "result"
_LARGER, _BOTH, _ALL = "larger of the first two", "first and result", "all arguments"

_IN_PLACE = {
    "c10d.broadcast_": _FIRST,
    "c10d.allreduce_": _FIRST,
    "c10d.reduce_": _FIRST,
    "c10d.send": _FIRST,
    "c10d.recv_": _FIRST,
    "c10d.recv_any_source_": _FIRST,
    "c10d.allgather_": _FIRST,
    "c10d._allgather_base_": _FIRST,
    "c10d.gather_": _FIRST,
    "c10d.reduce_scatter_": _SECOND,
    "c10d._reduce_scatter_base_": _SECOND,
    "c10d.scatter_": _SECOND,
    "c10d.alltoall_": _LARGER,
    "c10d.alltoall_base_": _LARGER,
    "c10d.barrier": None,
    "c10d.monitored_barrier_": None,
}
_FUNCTIONAL = {
    "_c10d_functional.broadcast": _FIRST,
    "_c10d_functional.broadcast_": _FIRST,
    "_c10d_functional.all_reduce": _FIRST,
    "_c10d_functional.all_reduce_": _FIRST,
    "_c10d_functional.all_reduce_coalesced": _FIRST,
    "_c10d_functional.all_reduce_coalesced_": _FIRST,
    "_c10d_functional.reduce_scatter_tensor": _FIRST,
    "_c10d_functional.reduce_scatter_tensor_out": _FIRST,
    "_c10d_functional_autograd.reduce_scatter_tensor": _FIRST,
    "_c10d_functional.isend": _FIRST,
    "_c10d_functional.irecv": _FIRST,
    "_c10d_functional.batch_p2p_ops": _ALL,
    "_c10d_functional.all_gather_into_tensor": _RESULT,
    "_c10d_functional.all_gather_into_tensor_coalesced": _RESULT,
    "_c10d_functional_autograd.all_gather_into_tensor": _RESULT,
    "_c10d_functional.reduce_scatter_tensor_coalesced": _RESULT,
    "_c10d_functional.all_gather_into_tensor_out": _LAST,
    "_c10d_functional.all_to_all_single": _BOTH,
    "_c10d_functional_autograd.all_to_all_single": _BOTH,
    "_dtensor.shard_dim_alltoall": _BOTH,
    "_c10d_functional.wait_tensor": None,
}


def _ops(table: dict) -> dict:
    """The ops of a table that this PyTorch has."""
    found = {}
    for name, moved in table.items():
        namespace, _, op = name.partition(".")
        packet = getattr(getattr(torch.ops, namespace), op, None)
        if packet is not None:
            found[packet.default] = moved
    return found


_moved = {**_ops(_IN_PLACE), **_ops(_FUNCTIONAL)}

non_functional_collectives: set[torch._ops.OpOverload] = set(_ops(_IN_PLACE))
functional_collectives: set[torch._ops.OpOverload] = set(_ops(_FUNCTIONAL))
collective_ops: set[torch._ops.OpOverload] = set(_moved)
sync_ops: set[torch._ops.OpOverload] = {op for op, moved in _moved.items() if moved is None}


class CollectiveOp:
    """Questions about a collective op and its arguments. A function that is none is a TypeError."""

    @staticmethod
    def sum_tensors(arg: Any) -> int:
        """Bytes of the storages of all tensors in a nested value."""
        return sum(t.untyped_storage().nbytes() for t in tree_leaves(arg) if isinstance(t, torch.Tensor))

    @staticmethod
    def get_process_group(func, args) -> ProcessGroup:
        """The group among whose members it runs: the argument that the op's schema calls so."""
        _check(func)
        for argument, value in zip(func._schema.arguments, args):
            if argument.name == "process_group":
                return ProcessGroup.unbox(value)
            if argument.name in ("group_name", "group"):
                return value if isinstance(value, ProcessGroup) else _resolve_process_group(value)
        raise TypeError(f"{func} was called without a process group among its arguments")

    @staticmethod
    def get_comm_tensor_size(func, res, args, kwargs) -> int:
        """Bytes that it moves."""
        _check(func)
        sizes = CollectiveOp.sum_tensors
        match _moved[func]:
            case "first":
                return sizes(args[0])
            case "second":
                return sizes(args[1])
            case "last":
                out = (kwargs or {}).get("out")
                return sizes(args[-1] if out is None else out)
            case "all arguments":
                return sizes(args)
            case "result":
                return sizes(res)
            case "larger of the first two":
                return max(sizes(args[0]), sizes(args[1]))
            case "first and result":
                return sizes(args[0]) + sizes(res)
        raise TypeError(f"{func} moves no tensors")

    @staticmethod
    def get_work(func, res) -> Work:
        """The handle to wait for: what it returned, or the last of that."""
        _check(func)
        if func not in non_functional_collectives:
            raise TypeError(f"{func} returns no work handle")
        return FakeWork.unbox(res[-1] if isinstance(res, (tuple, list)) else res)


def _check(func) -> None:
    if func not in _moved:
        raise TypeError(f"{func} is no collective that is known here")
