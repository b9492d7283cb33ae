"""Which modules are running, forward or backward, and hooks at the four boundaries."""

from __future__ import annotations

import collections
import sys
import warnings
import weakref
from collections.abc import Callable

import torch
from torch.autograd.graph import register_multi_grad_hook
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._pytree import tree_leaves

__all__ = ["ModTracker"]

_GLOBAL = "Global"
_KINDS = ("pre_fw", "post_fw", "pre_bw", "post_bw")


class ModTracker:
    """While it is open, `parents` are the names of the modules that are running; "Global" always is.

    >>> with ModTracker() as tracker:
    ...     model(x)  # inside a module's forward, tracker.parents has it and all around it

    A name starts with the class of the outermost module: "GPT.layers.0". Backward is followed by hooks on the gradients of what a
    module returns (its backward starts) and of what it is given (it ends). A module whose inputs need no gradients ends
    with the whole backward.
    """

    parents: set[str]

    def __init__(self):
        self.parents = {_GLOBAL}
        self._active = collections.Counter()
        self._names = weakref.WeakKeyDictionary()
        self._named_below = weakref.WeakSet()  # modules whose children have their names
        self._at_end: list[Callable[[], None]] = []
        self._will_end = False
        self._hooks: dict[str, Callable | None] = dict.fromkeys(_KINDS)
        self._handles: list = []

    @property
    def is_bw(self):
        """Whether this thread is in a backward."""
        return torch._C._current_graph_task_id() != -1

    def get_known_fqn(self, mod):
        """The name of a module that was seen running, or None."""
        return self._names.get(mod) if mod is not None else None

    def register_user_hooks(
        self,
        pre_fw_hook: Callable | None = None,
        post_fw_hook: Callable | None = None,
        pre_bw_hook: Callable | None = None,
        post_bw_hook: Callable | None = None,
    ):
        """Calls these with the module and what goes in, what goes in and comes out, or gradients; in backward a module that is
        gone is None. Only one of each kind."""
        for kind, hook in zip(_KINDS, (pre_fw_hook, post_fw_hook, pre_bw_hook, post_bw_hook)):
            if hook is None:
                continue
            if self._hooks[kind] is not None:
                raise AssertionError(f"there is a {kind}_hook already; clear_user_hooks() removes it")
            self._hooks[kind] = hook

    def clear_user_hooks(self):
        """Removes all four."""
        self._hooks = dict.fromkeys(_KINDS)

    def __enter__(self):
        self._handles = [
            register_module_forward_pre_hook(self._before_forward),
            register_module_forward_hook(self._after_forward, always_call=True),
        ]
        return self

    def __exit__(self, *args):
        for handle in self._handles:
            handle.remove()
        self._handles = []

    # -- names --

    def _name_of(self, mod) -> str:
        if mod not in self._names:
            self._names[mod] = type(mod).__name__
        name = self._names[mod]
        if mod not in self._named_below:
            for attribute, child in mod.named_children():
                self._names[child] = f"{name}.{attribute}"
                self._name_of(child)
            self._named_below.add(mod)
        return name

    # -- what runs --

    def _activate(self, name: str) -> None:
        if self._active[name] and not self.is_bw:
            warnings.warn(f"module {name} is entered while it runs; what is said of its parents may be wrong", stacklevel=2)
        self._active[name] += 1
        self.parents.add(name)

    def _deactivate(self, name: str) -> None:
        if not self._active[name]:
            if self.is_bw:
                return
            raise RuntimeError(f"module {name} is left, but it was not running; another tracker must have changed it")
        self._active[name] -= 1
        if not self._active[name]:
            self.parents.discard(name)

    def _call(self, kind: str, *args) -> None:
        hook = self._hooks[kind]
        if hook is not None:
            hook(*args)

    # -- forward --

    def _before_forward(self, mod, given) -> None:
        if _in_compiled_module():
            return
        name = self._name_of(mod)
        self._activate(name)
        self._call("pre_fw", mod, given)
        if self.is_bw:
            return
        reference = weakref.ref(mod)

        def ends(gradients):
            self._call("post_bw", reference(), gradients)
            self._deactivate(name)

        tensors = _differentiable(given)
        if tensors:
            register_multi_grad_hook(tensors, ends, mode="all")
        else:
            self._at_end.append(lambda: ends(None))

    def _after_forward(self, mod, given, returned) -> None:
        if _in_compiled_module():
            return
        name = self._name_of(mod)
        self._call("post_fw", mod, given, returned)
        self._deactivate(name)
        tensors = [] if self.is_bw else _differentiable(returned)
        if not tensors:
            return
        reference = weakref.ref(mod)

        def starts(gradient):
            self._ask_for_the_end()
            self._activate(name)
            self._call("pre_bw", reference(), gradient)

        register_multi_grad_hook(tensors, starts, mode="any")

    # -- the end of backward --

    def _ask_for_the_end(self) -> None:
        if self._will_end:
            return
        self._will_end = True
        torch.autograd.Variable._execution_engine.queue_callback(self._backward_ends)

    def _backward_ends(self) -> None:
        waiting, self._at_end = self._at_end, []
        for action in reversed(waiting):
            action()
        self.parents = {_GLOBAL}
        self._active.clear()
        self._will_end = False


def _differentiable(values) -> list:
    return [t for t in tree_leaves(values) if isinstance(t, torch.Tensor) and t.requires_grad]


def _in_compiled_module() -> bool:
    dynamo = sys.modules.get("torch._dynamo")
    return dynamo is not None and dynamo.eval_frame._is_in_optimized_module()
