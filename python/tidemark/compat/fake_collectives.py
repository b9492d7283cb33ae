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


# Of the ops above, those that the reference's lists by argument and result leave out.
_UNLISTED = {"monitored_barrier_", "reduce_scatter_tensor_out"}


def _listed(wanted) -> set[torch._ops.OpOverload]:
    return {op for op in collective_ops if str(op).split(".")[1] not in _UNLISTED and wanted(op)}


def _group_at(position: int) -> set[torch._ops.OpOverload]:
    """Ops whose group is the argument of that number: counted from 0 where it is an object, from 1 where it is a name."""

    def wanted(op) -> bool:
        first = 0 if op in non_functional_collectives else 1
        names = [argument.name for argument in op._schema.arguments]
        return any(name in ("process_group", "group_name") and i + first == position for i, name in enumerate(names))

    return _listed(wanted)


def _moves(moved: str, *, one_tensor: bool | None = None) -> set[torch._ops.OpOverload]:
    """Ops that move this; of those, the ones that take or return one tensor, or a list."""

    def wanted(op) -> bool:
        if _moved[op] != moved:
            return False
        at = op._schema.returns[0] if moved == _RESULT else op._schema.arguments[1 if moved == _SECOND else 0]
        return one_tensor is None or (str(at.type) == "Tensor") == one_tensor

    return _listed(wanted)


_PAIRS = _listed(lambda op: str(op).split(".")[1] in ("isend", "irecv"))  # point to point, by their functional names


class CollectiveOp:
    """Questions about a collective op and its arguments. A function that is none is a TypeError."""

    # Where an op's group is, where its work handle, and which tensors it moves, as sets of ops.
    PG_ARG_1 = _group_at(1)
    PG_ARG_2 = _group_at(2)
    PG_ARG_3 = _group_at(3)
    PG_ARG_4 = _group_at(4)
    PG_ARG_5 = _group_at(5)
    WK_ARG_1 = _listed(lambda op: op in non_functional_collectives and len(op._schema.returns) == 2) | _PAIRS
    WK = _listed(lambda op: op in non_functional_collectives and len(op._schema.returns) == 1)
    COMM_TENSOR_ARG_0 = _moves(_FIRST, one_tensor=False)
    COMM_TENSOR_ARG_1 = _moves(_SECOND, one_tensor=False)
    COMM_TENSOR_ARG_RES = _moves(_RESULT, one_tensor=True)
    COMM_TENSOR_SINGLE_UNTYPED_STORAGE = _moves(_FIRST, one_tensor=True) - _PAIRS
    COMM_TENSOR_ARG_0_AND_RES = _moves(_BOTH)
    COMM_TENSOR_RES_SUM = _moves(_RESULT, one_tensor=False)

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
