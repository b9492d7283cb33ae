"""What only the first call of a unit is asked, op by op: whether it uses weights that autocast had cast before it, whether it
checkpoints by itself, and whether it draws from generators that no checkpoint puts back.

Autocast keeps its casts of weights until its outermost region ends. A call in which such a cast is only used, since an earlier one
made it, would make it again in its recompute, where the cache is empty. Instead its checkpoint holds the cast, as the plan's replay
takes it: it is one of the tensors that were there before the call.
"""

from __future__ import annotations

import sys

import torch

from .._capture.op_facts import facts_of
from .errors import drift

_CAST = torch.ops.aten._to_copy.default
# Where functions that run under a checkpoint are called from.
CHECKPOINTS = frozenset(
    (
        "torch.utils.checkpoint",
        "fairscale.nn.checkpoint.checkpoint_activations",
        "deepspeed.runtime.activation_checkpointing.checkpointing",
        "xformers.checkpoint",
    )
)


def is_autocast_caching() -> bool:
    return torch._C._is_any_autocast_enabled() and torch.is_autocast_cache_enabled()


class Rehearsal:
    """Watches one call. `caller` is the code of the function that calls the unit's forward."""

    def __init__(self, module: str, caller, seeks_casts: bool, seeks_checkpoints: bool) -> None:
        self._module = module
        self._caller = caller
        self._seeks_casts = seeks_casts
        self._seeks_checkpoints = seeks_checkpoints
        self._own: set = set()  # parameters that the call casts itself, by id

    def op(self, left, func, args, kwargs, is_saved: bool) -> None:
        if self._seeks_checkpoints:
            self._look_for_checkpoints()
        if not is_saved and facts_of(func).own_generator(args, kwargs or {}) is not None:
            raise drift(
                self._module,
                f"{func} draws from a torch.Generator of the program's own, which its recompute would draw from again",
                expected="chance from torch's own generators, or the op saved",
                cause="a generator that was not given when the step was captured",
            )
        if self._seeks_casts:
            if func is _CAST:
                self._own.add(id(args[0]))
            self._look_for_casts(left, args)

    def _look_for_checkpoints(self) -> None:
        frame = sys._getframe(3)  # above the mode
        while frame is not None and frame.f_code is not self._caller:
            name = frame.f_globals.get("__name__")
            if name in CHECKPOINTS:
                raise drift(
                    self._module,
                    "the module checkpoints itself",
                    expected="a module that leaves that to the plan",
                    got=f"a call by {name}.{frame.f_code.co_name}",
                    cause="a checkpoint inside its forward that was not there when the step was captured",
                )
            frame = frame.f_back

    def _look_for_casts(self, left, args) -> None:
        for value in args:
            if isinstance(value, torch.Tensor):
                parameter = _parameter_of(value)
                if parameter is not None and id(parameter) not in self._own and id(parameter) not in left.weights:
                    left.weights[id(parameter)] = value.detach()
            elif isinstance(value, (list, tuple)):
                self._look_for_casts(left, value)


def _parameter_of(cast: torch.Tensor):
    """The parameter that this tensor was cast from."""
    node = cast.grad_fn
    if node is None or node.name() != "ToCopyBackward0":
        return None
    return getattr(node.next_functions[0][0], "variable", None)
