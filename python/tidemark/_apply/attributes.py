"""Attributes of modules: a recompute sees them as its forward did, and leaves them as it finds them.

A counter that the forward moves would be moved twice otherwise, and a layer that depends on it would compute something else; a loss that
is stored beside the result (`self.aux = ...`) would be exchanged for the recompute's, whose graph no backward frees. Numbers, words, tensors
and what lists, dictionaries and sets hold are put back; other objects are the program's.
"""

from __future__ import annotations

import collections
import weakref
from operator import is_

import torch

from .caches import Elsewhere

_modules: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by module: it and all modules in it
_OF_ALL = frozenset(torch.nn.Module().__dict__) - {"training"} | {"forward"}  # parameters, buffers, hooks: not a forward's to exchange
_PLAIN = frozenset((int, float, bool, str, bytes, complex, tuple, frozenset, type(None), torch.dtype, torch.device, torch.Size))
_LISTS = frozenset((list, collections.deque))
_CONTAINERS = _LISTS | {dict, collections.OrderedDict, collections.defaultdict, set}
_OTHERS = object()  # stands for the program's own objects


class _Owner:
    """One module: which of its attributes a forward may exchange. Every call asks for it, so that the names are kept."""

    __slots__ = ("_module", "_count", "names")

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = weakref.ref(module)
        self._count = -1
        self.names: list = []

    @property
    def attributes(self) -> dict:
        module = self._module()
        return {} if module is None else module.__dict__

    def values(self) -> list:
        """By name."""
        attributes = self.attributes
        if len(attributes) == self._count:
            try:
                return [attributes[name] for name in self.names]
            except KeyError:
                pass
        self._count = len(attributes)
        self.names = [name for name in attributes if name not in _OF_ALL]
        return [attributes[name] for name in self.names]


def _owners(module: torch.nn.Module) -> list:
    found = _modules.get(module)
    if found is None:
        found = _modules[module] = [_Owner(owner) for owner in module.modules()]
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
        for owner in _owners(module):
            values = owner.values()
            if not _PLAIN.issuperset(map(type, values)):
                self._freeze(owner, values)
            self._before.append((owner, owner.names, values))

    def _freeze(self, owner: _Owner, values: list) -> None:
        for i, value in enumerate(values):
            kind = type(value)
            if kind in _PLAIN:
                continue
            if kind in _CONTAINERS:
                values[i] = _Copied(value)
            elif not isinstance(value, torch.Tensor):
                values[i] = _OTHERS
            elif value.grad_fn is not None:
                values[i] = Elsewhere(value)
                self._with_graph.append((owner, owner.names[i], values, i))

    def end_forward(self) -> None:
        """What the call has not exchanged it may have read: its values are kept, without its graph."""
        for owner, name, values, i in self._with_graph:
            value = owner.attributes.get(name)
            if value is not None and values[i].ref() is value:
                values[i] = value.detach().requires_grad_(value.requires_grad)
        self._with_graph = None

    def exchange(self) -> list:
        """Puts what the forward found in its place. Returns what was there, for `restore`."""
        now = []
        for owner, names, values in self._before:
            current = owner.values()
            now.append((owner, owner.names, current))
            if owner.names is names and all(map(is_, current, values)):
                continue
            for name, value in zip(owner.names, current):
                if name not in names and (type(value) in _PLAIN or type(value) in _CONTAINERS or isinstance(value, torch.Tensor)):
                    del owner.attributes[name]
            for name, value in zip(names, values):
                if value is not _OTHERS:
                    owner.attributes[name] = value.thaw() if type(value) in (Elsewhere, _Copied) else value
        return now


def restore(now: list) -> None:
    for owner, names, values in now:
        current = owner.values()
        if owner.names is names and all(map(is_, current, values)):
            continue
        for name in owner.names:
            if name not in names:
                del owner.attributes[name]
        for name, value in zip(names, values):
            if owner.attributes.get(name, _OTHERS) is not value:
                owner.attributes[name] = value
