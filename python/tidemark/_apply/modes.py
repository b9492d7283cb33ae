"""The two dispatch modes of a checkpointed call: one for its forward, one for its recompute.

They do what the modes of PyTorch's selective checkpoint do, and follow the plan's list of ops while doing so: decisions are looked
up by position, which is the same as (op, occurrence in the call), and the first op that is not the expected one raises.
"""

from __future__ import annotations

import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import SAC_IGNORED_OPS

from .._capture.sources import current_place
from .errors import drift
from .words import UnitWords

_CAST = torch.ops.aten._to_copy.default

_names: dict = {}


def name_of(func) -> str:
    name = _names.get(func)
    if name is None:
        name = _names[func] = sys.intern(str(func))
    return name


class Kept:
    """An output of a saved op, and its version, since nobody may write into it meanwhile."""

    __slots__ = ("value", "version")

    def __init__(self, value) -> None:
        # Without its graph, which would hold it in turn; and with the version counter of the original, which is kept above
        # the keys that are excluded here.
        with torch._C._SetExcludeDispatchKeyGuard(torch._C.DispatchKey.ADInplaceOrView, False):
            self.value = value.detach()
        self.version = self.value._version


def _keep(value):
    return Kept(value) if isinstance(value, torch.Tensor) else value


class ForwardMode(TorchDispatchMode):
    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __init__(self, unit: UnitWords, cache: dict, casts: set, tally) -> None:
        super().__init__()
        self.unit = unit
        self.cache = cache
        self.casts = casts  # positions at which the forward casts a parameter
        self.tally = tally
        self.at = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs) if kwargs else func(*args)
        unit = self.unit
        at = self.at
        if at >= len(unit.ops) or (_names.get(func) or name_of(func)) is not unit.ops[at]:
            raise _unknown(unit, at, func, args, "forward")
        self.at = at + 1
        if func is _CAST and _is_parameter(args[0]):
            self.casts.add(at)
        if self.tally is not None:
            self.tally.forward_op(func)
        out = func(*args, **kwargs) if kwargs else func(*args)
        if at in unit.saved:
            if type(out) is torch.Tensor:
                self.cache[at] = Kept(out)
            else:
                self.cache[at] = tree_map(_keep, out)
        return out

    def done(self) -> None:
        """After the call: everything the plan knows of has run."""
        if self.at != len(self.unit.ops):
            raise drift(
                self.unit.module,
                f"the call ran {self.at} ops and ended",
                expected=f"{len(self.unit.ops)}, next {self.unit.ops[self.at]}",
                cause="a part of the module is switched off that ran when the step was captured (dropout, a branch, a hook)",
            )


class RecomputeMode(TorchDispatchMode):
    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __init__(self, unit: UnitWords, cache: dict, casts: set, tally) -> None:
        super().__init__()
        self.unit = unit
        self.cache = cache
        self.casts = casts  # positions at which the forward casts a parameter
        self.tally = tally
        self.at = 0

    def __enter__(self):
        self.at = 0
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs) if kwargs else func(*args)
        unit = self.unit
        at = self.at
        if func is _CAST and at not in self.casts and _is_parameter(args[0]):
            # In the forward, autocast had this weight in its cache from before the call.
            return func(*args, **kwargs) if kwargs else func(*args)
        if at >= len(unit.ops) or (_names.get(func) or name_of(func)) is not unit.ops[at]:
            raise _unknown(unit, at, func, args, "recompute")
        self.at = at + 1
        if at not in unit.saved:
            if self.tally is not None:
                self.tally.recomputed_op(func)
            return func(*args, **kwargs) if kwargs else func(*args)
        if at not in self.cache:
            raise drift(
                unit.module,
                "the call is recomputed twice, and what its checkpoint kept is gone",
                cause="a second backward over the same graph (retain_graph=True), which plans with saved ops do not allow",
            )
        kept = self.cache.pop(at)
        if self.tally is not None:
            self.tally.taken_op(func)
        if type(kept) is Kept:
            return _value(unit, func, kept)
        return tree_map(lambda x: _value(unit, func, x) if type(x) is Kept else x, kept)


def _value(unit: UnitWords, func, kept: Kept):
    if kept.value._version != kept.version:
        raise drift(
            unit.module,
            f"a saved result of {func} was changed in place",
            cause="code that writes into it after the call, which did not run when the step was captured",
        )
    return kept.value


def _is_parameter(value) -> bool:
    """Whether autocast would keep its cast of this."""
    return isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad


def _unknown(unit: UnitWords, at: int, func, args, where: str):
    place = current_place()
    expected = unit.ops[at] if at < len(unit.ops) else f"the end of the call after {len(unit.ops)} ops"
    if where == "recompute":
        cause = "the module does something else in the recompute than in the forward: choices by chance or by counters (routing, layer drop)"
    elif "<eval_with_key>" in place:
        cause = "torch.compile, which makes other ops; plans are for eager PyTorch"
    elif name_of(func) in unit.ops or str(getattr(func, "overloadpacket", "")) in {op.rpartition(".")[0] for op in unit.ops}:
        cause = "code that changed, other arguments, dropout or train() and eval() set otherwise than when the step was captured"
    else:
        cause = "code that changed, other arguments, autocast or another device than when the step was captured"
    sizes = ", ".join(str(list(a.shape)) for a in args if isinstance(a, torch.Tensor))
    return drift(
        unit.module,
        f"op {at + 1} of the call's {where} is not the plan's",
        expected=expected,
        got=f"{func}({sizes}) at {place}",
        cause=cause,
    )
