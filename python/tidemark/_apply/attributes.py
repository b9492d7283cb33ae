"""Attributes of modules: a recompute sees them as its forward did, and leaves them as it finds them.

A counter that the forward moves would be moved twice otherwise, and a layer that depends on it would compute something else; a loss that
is stored beside the result (`self.aux = ...`) would be exchanged for the recompute's, whose graph no backward frees. Numbers, words, tensors
and what lists, dictionaries and sets hold are put back; other objects are the program's.
"""

from __future__ import annotations

import collections
import weakref

import torch

from .caches import Elsewhere

_modules: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by module: the attributes of all modules in it
_OF_ALL = frozenset(torch.nn.Module().__dict__) - {"training"} | {"forward"}  # parameters, buffers, hooks: not a forward's to exchange
_PLAIN = frozenset((int, float, bool, str, bytes, complex, tuple, frozenset, type(None), torch.dtype, torch.device, torch.Size))
_LISTS = frozenset((list, collections.deque))
_CONTAINERS = _LISTS | {dict, collections.OrderedDict, collections.defaultdict, set}
_GONE = object()


def _held(module: torch.nn.Module) -> list:
    found = _modules.get(module)
    if found is None:
        found = _modules[module] = [owner.__dict__ for owner in module.modules()]
    return found


class _Copied:
    """A container as it was. Holds no tensor that has a graph: that of one step could hold the step before, and so on."""

    __slots__ = ("items",)

    def __init__(self, container) -> None:
        self.items = _exchanged(container, lambda item: Elsewhere(item) if _has_graph(item) else item)

    def thaw(self):
        return _exchanged(self.items, lambda item: item.thaw() if type(item) is Elsewhere else item)


def _exchanged(container, exchange):
    copied = container.copy()
    if type(copied) in _LISTS:
        for i, item in enumerate(copied):
            copied[i] = exchange(item)
    elif type(copied) is not set:
        for key, item in copied.items():
            copied[key] = exchange(item)
    return copied


def _has_graph(value) -> bool:
    return isinstance(value, torch.Tensor) and value.grad_fn is not None


class Attributes:
    """The attributes of a module and of all in it, as the forward of a call finds them."""

    __slots__ = ("_before", "_with_graph")

    def __init__(self, module: torch.nn.Module) -> None:
        self._before = []
        self._with_graph = []
        for attributes in _held(module):
            before = {}
            for name, value in attributes.items():
                if name in _OF_ALL:
                    continue
                kind = type(value)
                if kind in _PLAIN:
                    before[name] = value
                elif kind in _CONTAINERS:
                    before[name] = _Copied(value)
                elif isinstance(value, torch.Tensor):
                    if value.grad_fn is None:
                        before[name] = value
                    else:
                        before[name] = Elsewhere(value)
                        self._with_graph.append((attributes, before, name))
            self._before.append(before)

    def end_forward(self) -> None:
        """What the call has not exchanged it may have read: its values are kept, without its graph."""
        for attributes, before, name in self._with_graph:
            value = attributes.get(name)
            if value is not None and before[name].ref() is value:
                before[name] = value.detach().requires_grad_(value.requires_grad)
        self._with_graph = None

    def exchange(self, module: torch.nn.Module) -> list:
        """Puts what the forward found in its place. Returns what was there, for `restore`."""
        now = []
        for attributes, before in zip(_held(module), self._before):
            kept = {name: value for name, value in attributes.items() if name not in _OF_ALL}
            now.append((attributes, kept))
            for name, value in kept.items():
                if name not in before and (type(value) in _PLAIN or type(value) in _CONTAINERS or isinstance(value, torch.Tensor)):
                    del attributes[name]
            for name, value in before.items():
                if kept.get(name, _GONE) is not value:
                    attributes[name] = value.thaw() if type(value) in (Elsewhere, _Copied) else value
        return now


def restore(now: list) -> None:
    for attributes, kept in now:
        for name in [name for name in attributes if name not in _OF_ALL and name not in kept]:
            del attributes[name]
        for name, value in kept.items():
            if attributes.get(name, _GONE) is not value:
                attributes[name] = value
