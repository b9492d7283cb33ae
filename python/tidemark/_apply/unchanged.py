"""Whether a recompute reads what its forward read.

PyTorch's checkpoint looks after tensors that are arguments by position: it fails when they were written to meanwhile. Of tensors in
keyword arguments or in containers, of buffers and of weights, it would take whatever is in them by then, and gradients would be silently wrong.
So their versions are compared. Buffers that the call itself changes are put back instead (buffers.py).
"""

from __future__ import annotations

import weakref

import torch

from .errors import drift
from .sizes import tensors_in

_buffers: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by module: (weak reference to its owner, name) of each
_weights: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by module: the dictionaries of weights in it


def _buffers_of(module: torch.nn.Module) -> list:
    found = _buffers.get(module)
    if found is None:
        found = _buffers[module] = [(weakref.ref(owner), name) for owner in module.modules() for name in owner._buffers]
    return found


def _weights_of(module: torch.nn.Module) -> list:
    """Which there are, and how often each was written to. Every call asks for it."""
    held = _weights.get(module)
    if held is None:
        held = _weights[module] = [owner._parameters for owner in module.modules() if owner._parameters]
    try:
        return [(id(weight), weight._version) for weights in held for weight in weights.values() if weight is not None]
    except RuntimeError:  # made in inference mode: it has no version
        return []


def forget(module: torch.nn.Module) -> None:
    """Of a module with other modules in it than before."""
    _buffers.pop(module, None)
    _weights.pop(module, None)


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


class Unchanged:
    """What one call reads, as its forward leaves it: what the forward itself writes is the plan's business. Holds no tensor."""

    __slots__ = ("_given", "_read", "_weights")

    def __init__(self, module: torch.nn.Module, args: tuple, kwargs: dict, restored: frozenset) -> None:
        given: list = []
        for value in args:
            if not isinstance(value, torch.Tensor):
                tensors_in(value, given)
        tensors_in(kwargs, given)
        self._given = [(weakref.ref(tensor), _version(tensor)) for tensor in given]
        self._read = []
        for ref, name in _buffers_of(module):
            owner = ref()
            buffer = owner._buffers.get(name) if owner is not None else None
            if buffer is not None and (id(owner), name) not in restored:
                self._read.append((ref, name, weakref.ref(buffer), _version(buffer)))
        self._weights = _weights_of(module)

    def check(self, module: torch.nn.Module, path: str) -> None:
        for tensor_ref, version in self._given:
            tensor = tensor_ref()  # None: a container that has lost it
            if tensor is not None and _version(tensor) != version:
                raise drift(
                    path,
                    f"a tensor of shape {list(tensor.shape)} among its arguments was written to after the call",
                    expected="as its forward left it, since backward runs the call again",
                    cause="an op in place on a tensor that is passed by keyword or in a container; make it `x = x.op()`, or keep "
                    "this module from being a unit (not_units)",
                )
        for ref, name, buffer_ref, version in self._read:
            owner, buffer = ref(), buffer_ref()
            now = owner._buffers.get(name) if owner is not None else None
            if now is not buffer or now is None or _version(now) != version:
                raise drift(
                    path,
                    f"the buffer {name} that it reads was changed after the call",
                    expected="as its forward left it, since backward runs the call again",
                    cause="another call that writes into it; keep this module from being a unit (not_units)",
                )
        if _weights_of(module) != self._weights:
            self._say_which(module, path)

    def _say_which(self, module: torch.nn.Module, path: str) -> None:
        versions = dict(self._weights)
        for owner_name, owner in module.named_modules():
            for attribute, weight in owner._parameters.items():
                name = f"{owner_name}.{attribute}" if owner_name else attribute
                if weight is None or versions.get(id(weight)) == _version(weight):
                    continue
                if id(weight) in versions:
                    raise drift(
                        path,
                        f"the parameter {name} was written to after the call",
                        expected="as its forward found it, since backward runs the call again",
                        cause="an optimizer that steps, or weights that are loaded or averaged, between forward and backward",
                    )
                raise drift(
                    path,
                    f"the parameter {name} is another tensor than in the forward",
                    expected="the one that its forward used, since backward runs the call again",
                    cause="torch.func.functional_call, which puts the model's own weights back after the forward, or a parameter that is "
                    "exchanged between forward and backward",
                    remedy="tidemark.remove(model) for such calls",
                )
        raise drift(
            path,
            "the module has fewer parameters than in the forward",
            expected=str(len(self._weights)),
            got=str(len(_weights_of(module))),
            cause="a parameter that was taken away between forward and backward",
        )
