"""The two dispatch modes of a checkpointed call: one for its forward, one for its recompute.

They do what the modes of PyTorch's selective checkpoint do, and follow the plan's list of ops while doing so: decisions are looked
up by position, which is the same as (op, occurrence in the call), and the first op that is not the expected one raises.
"""

from __future__ import annotations

import dataclasses
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import SAC_IGNORED_OPS

from .._capture.sources import current_place
from .errors import drift
from .rehearsal import Rehearsal
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


class Left:
    """What a call's forward leaves for its recompute."""

    __slots__ = ("kept", "casts", "weights", "unit")

    def __init__(self) -> None:
        self.kept: dict = {}  # by position: what a saved op made
        self.casts: set = set()  # positions at which the forward casts a parameter
        self.weights: dict = {}  # by id of a parameter: a cast of it that was there before the call
        self.unit = None  # the plan's words, in the form in which inputs of these sizes have them; None: as they are


class _Mode(TorchDispatchMode):
    """Follows the plan's list of ops."""

    part = ""
    reads = None  # who wants to know which tensors ops take

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __init__(self, unit: UnitWords, left: Left, tally) -> None:
        super().__init__()
        self.unit = unit
        self.expected = unit.found  # the ops themselves, as far as they were met
        self.saved = unit.saved
        self.left = left
        self.tally = tally
        self.at = 0

    def _is_ignored(self, func, args) -> bool:
        """An op that was not met at this place before. Raises when it is not the plan's."""
        if func in SAC_IGNORED_OPS:
            return True
        ops, at = self.unit.ops, self.at
        if at >= len(ops) or name_of(func) != ops[at]:
            raise _unknown(self.unit, at, func, args, self.part)
        self.expected[at] = func
        return False


class ForwardMode(_Mode):
    part = "forward"

    def __init__(self, unit: UnitWords, left: Left, tally, watch: Rehearsal | None) -> None:
        super().__init__(unit, left, tally)
        self.watch = watch

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        at = self.at
        if self.reads is not None:
            self.reads.op(args, kwargs)
        if func is not self.expected[at] and self._is_ignored(func, args):
            return func(*args, **kwargs) if kwargs else func(*args)
        self.at = at + 1
        if func is _CAST and _is_parameter(args[0]):
            self.left.casts.add(at)
        if self.watch is not None:
            self.watch.op(self.left, func, args, kwargs, at in self.saved)
        if self.tally is not None:
            self.tally.forward_op(func)
        out = func(*args, **kwargs) if kwargs else func(*args)
        if at in self.saved:
            self.left.kept[at] = Kept(out) if type(out) is torch.Tensor else tree_map(_keep, out)
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


# Ops that only look at a tensor otherwise, or copy it to do so. Which of them run depends on strides, and these on which sizes are 1:
# `reshape` and `contiguous` copy a transposed tensor, unless there is nothing to transpose.
_LOOKS = frozenset(
    f"aten.{name}"
    for name in (
        "view.default", "_unsafe_view.default", "_reshape_alias.default", "as_strided.default", "expand.default", "clone.default",
        "contiguous.default", "reshape.default", "permute.default", "transpose.int", "t.default", "squeeze.default", "squeeze.dim",
        "squeeze.dims", "unsqueeze.default", "alias.default",
    )
)  # fmt: skip


class AligningMode(ForwardMode):
    """The forward of a call whose inputs have other sizes than planned. Follows the plan's ops, but for those that only look or copy,
    and writes down what ran: that is what its recompute, and later calls with such inputs, have to run, too."""

    def __init__(self, unit: UnitWords, left: Left, tally, watch: Rehearsal | None) -> None:
        super().__init__(unit, left, tally, watch)
        self.ran: list = []
        self.saved_of_these: set = set()
        self.reach = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.reads is not None:
            self.reads.op(args, kwargs)
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs) if kwargs else func(*args)
        name, ops, to = name_of(func), self.unit.ops, self.at
        while to < len(ops) and ops[to] != name and ops[to] in _LOOKS:
            to += 1
        at = len(self.ran)
        if to < len(ops) and ops[to] == name:
            self.at = to + 1
            if to in self.saved:
                self.saved_of_these.add(at)
            if to < self.unit.reach:
                self.reach = at + 1
        elif name not in _LOOKS:
            raise _unknown(self.unit, self.at, func, args, self.part)
        self.ran.append(name)
        if func is _CAST and _is_parameter(args[0]):
            self.left.casts.add(at)
        if self.watch is not None:
            self.watch.op(self.left, func, args, kwargs, at in self.saved_of_these)
        if self.tally is not None:
            self.tally.forward_op(func)
        out = func(*args, **kwargs) if kwargs else func(*args)
        if at in self.saved_of_these:
            self.left.kept[at] = Kept(out) if type(out) is torch.Tensor else tree_map(_keep, out)
        return out

    def done(self) -> None:
        while self.at < len(self.unit.ops) and self.unit.ops[self.at] in _LOOKS:
            self.at += 1
        super().done()
        unit = self.unit
        if tuple(self.ran) != unit.ops:
            unit = dataclasses.replace(
                unit, ops=tuple(self.ran), saved=frozenset(self.saved_of_these), reach=self.reach, found=[None] * (len(self.ran) + 1)
            )
        self.left.unit = unit


class RecomputeMode(_Mode):
    part = "recompute"

    def __enter__(self):
        self.at = 0
        if self.left.unit is not None:
            self.unit = self.left.unit
            self.expected, self.saved = self.unit.found, self.unit.saved
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        at = self.at
        if func is _CAST and at not in self.left.casts and _is_parameter(args[0]):
            # In the forward, autocast had this weight in its cache from before the call.
            return self._cast(func, args, kwargs)
        if func is not self.expected[at] and self._is_ignored(func, args):
            return func(*args, **kwargs) if kwargs else func(*args)
        self.at = at + 1
        if at not in self.saved:
            if self.tally is not None:
                self.tally.recomputed_op(func)
            return func(*args, **kwargs) if kwargs else func(*args)
        unit = self.unit
        if at not in self.left.kept:
            raise drift(
                unit.module,
                "the call is recomputed twice, and what its checkpoint kept is gone",
                cause="a second backward over the same graph (retain_graph=True), which plans with saved ops do not allow",
            )
        kept = self.left.kept.pop(at)
        if self.tally is not None:
            self.tally.taken_op(func)
        if type(kept) is Kept:
            return _value(unit, func, kept)
        return tree_map(lambda x: _value(unit, func, x) if type(x) is Kept else x, kept)

    def _cast(self, func, args, kwargs):
        cast = self.left.weights.get(id(args[0]))
        if cast is not None and kwargs and kwargs.get("dtype") == cast.dtype:
            return cast.detach()
        return func(*args, **kwargs) if kwargs else func(*args)


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


def _is_called_by(package: str) -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(package):
            return True
        if frame.f_code.co_name == "_checkpointed":  # what called the unit is not the unit's business
            return False
        frame = frame.f_back
    return False


def _unknown(unit: UnitWords, at: int, func, args, where: str):
    place = current_place()
    expected = unit.ops[at] if at < len(unit.ops) else f"the end of the call after {len(unit.ops)} ops"
    if _is_called_by("torch.distributed.fsdp"):
        cause = (
            "fully_shard on a module inside this checkpointed one after the plan was applied, which would be gathered twice; "
            "shard the checkpointed module itself, or plan with units=[...] that match sharded ones"
        )
    elif where == "recompute":
        cause = "the module does something else in the recompute than in the forward: choices by chance or by counters (routing, layer drop), or a cache that the call adds to (use_cache=False in transformers)"
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
