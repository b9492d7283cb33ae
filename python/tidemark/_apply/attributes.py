"""Attributes of modules: a recompute sees them as its forward did, and leaves them as it finds them.

A counter that the forward moves would be moved twice otherwise, and a layer that depends on it would compute something else; a loss that
is stored beside the result (`self.aux = ...`) would be exchanged for the recompute's, whose graph no backward frees. Numbers, words, tensors,
what containers hold, and the attributes of the program's own objects are put back.

Nothing that is kept here has a graph: that of one step could hold the step before, and so on. Tensors that the forward exchanges (features
of the last call, for whoever wants to look) are kept from the first op on that takes them. Of those that no op takes only type and sizes are:
plain training has them no longer than until they are exchanged.
"""

from __future__ import annotations

import types
import weakref
from collections import deque
from operator import is_

import torch

from . import unchanged
from .containers import copy_of

_modules: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by module: it and all modules in it
_OF_ALL = frozenset(torch.nn.Module().__dict__) - {"training"} | {"forward"}  # parameters, buffers, hooks: not a forward's to exchange
_PLAIN = frozenset((int, float, bool, str, bytes, complex, frozenset, type(None), torch.dtype, torch.device, torch.Size))
_CONTAINERS = (list, dict, set, deque, tuple)
_NO_STATES = (torch.nn.Module, type, types.FunctionType, types.MethodType, types.ModuleType)
_OTHERS = object()  # stands for what is not put back


class _Owner:
    """One module: which of its attributes a forward may exchange. Every call asks for it, so that the names are kept."""

    __slots__ = ("_module", "_count", "_children", "names", "exchanged")

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = weakref.ref(module)
        self._count = -1
        self._children = tuple(map(id, module._modules.values()))
        self.names: list = []
        self.exchanged: set = set()  # names of those whose tensors a forward was seen to exchange

    @property
    def attributes(self) -> dict:
        module = self._module()
        return {} if module is None else module.__dict__

    def has_other_children(self) -> bool:
        children = self.attributes.get("_modules", {})
        return bool(children or self._children) and tuple(map(id, children.values())) != self._children

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

    def is_made_by_hook(self, name: str) -> bool:
        """A weight that a hook computes before each forward (weight_norm, spectral_norm, prune): nobody reads the old one."""
        hooks = self.attributes.get("_forward_pre_hooks", {}).values()
        return any(getattr(hook, "name", None) == name or getattr(hook, "_tensor_name", None) == name for hook in hooks)


def _owners(module: torch.nn.Module) -> list:
    found = _modules.get(module)
    if found is None or any(owner.has_other_children() for owner in found):
        unchanged.forget(module)
        found = _modules[module] = [_Owner(owner) for owner in module.modules()]
    return found


def _lean(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.grad_fn is None else tensor.detach().requires_grad_()


def _storage(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):  # of a kind that has none
        return -id(tensor)


def _storages(value) -> set:
    """Of the tensors in an attribute or in what is kept of it."""
    found: set = set()
    if isinstance(value, torch.Tensor):
        found.add(_storage(value))
    elif isinstance(value, _CONTAINERS):
        copy_of(value, lambda tensor: found.add(_storage(tensor)))
    return value.storages() if type(value) is _Copied else found


class Reads:
    """Tensors that are kept as soon as an op of the forward takes them."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict = {}  # by storage: the tensors, held weakly, and who wants them

    def wait(self, tensor: torch.Tensor, keep) -> torch.Tensor:
        """What stands for the tensor until then: without memory, so that whoever looks into it without an op is told."""
        self._waiting.setdefault(_storage(tensor), []).append((weakref.ref(tensor), keep))
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")

    def op(self, args, kwargs) -> None:
        for value in (*args, *kwargs.values()) if kwargs else args:
            if isinstance(value, torch.Tensor):
                for ref, keep in self._waiting.pop(_storage(value), ()) if self._waiting else ():
                    tensor = ref()
                    if tensor is not None:
                        keep(_lean(tensor))
            elif isinstance(value, (list, tuple)):
                self.op(value, None)


class _Copied:
    """A container as it was."""

    __slots__ = ("_items", "_kept")

    def __init__(self, container, reads: Reads | None = None) -> None:
        self._kept: dict = {}  # by id of what stands for it
        self._items = copy_of(container, _lean if reads is None else lambda tensor: self._stand_in(tensor, reads))

    def _stand_in(self, tensor: torch.Tensor, reads: Reads) -> torch.Tensor:
        stands = reads.wait(tensor, lambda found: self._kept.update({id(stands): found}))
        return stands

    def thaw(self):
        return copy_of(self._items, lambda tensor: _lean(self._kept.get(id(tensor), tensor)))

    def storages(self) -> set:
        found: set = set()
        copy_of(self._items, lambda tensor: found.add(_storage(self._kept.get(id(tensor), tensor))))
        return found


class _State:
    """An object of the program's own with the attributes that it had. Held weakly, since others may be in it by and by."""

    __slots__ = ("ref", "attributes")

    def __init__(self, value) -> None:
        self.ref = weakref.ref(value)
        self.attributes = {name: _frozen(item, None) for name, item in vars(value).items()}

    def put_back(self, value) -> dict | None:
        """What the object has now, if it is something else."""
        attributes = vars(value)
        if len(attributes) == len(self.attributes) and all(map(is_, attributes.values(), self.attributes.values())):
            return None
        now = dict(attributes)
        for name in now:
            if name not in self.attributes:
                del attributes[name]
        for name, item in self.attributes.items():
            if item is not _OTHERS:
                attributes[name] = item.thaw() if type(item) is _Copied else item
        return now


def _frozen(value, seen: set | None):
    """What is kept of a value; `seen` are the objects that are kept already, None inside of one."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, torch.Tensor):
        return _lean(value)
    if isinstance(value, _CONTAINERS):
        return value if type(value) is tuple and _PLAIN.issuperset(map(type, value)) else _Copied(value)
    if seen is None or id(value) in seen or isinstance(value, _NO_STATES) or type(getattr(value, "__dict__", None)) is not dict:
        return _OTHERS
    if type(value).__name__.endswith("Config"):
        return _OTHERS  # settings of many modules, which no forward changes
    try:
        seen.add(id(value))
        return _State(value)
    except TypeError:  # nobody can hold it weakly
        return _OTHERS


class Attributes:
    """The attributes of a module and of all in it, as the forward of a call finds them."""

    __slots__ = ("_before", "reads")

    def __init__(self, module: torch.nn.Module) -> None:
        self._before = []
        self.reads: Reads | None = None  # who looks at the forward's ops, where what it reads matters
        is_root = True
        seen: set = set()
        for owner in _owners(module):
            values = owner.values()
            if not _PLAIN.issuperset(map(type, values)):
                for i, value in enumerate(values):
                    if type(value) not in _PLAIN:
                        values[i] = self._kept_of(owner, owner.names[i], values, i, seen, is_root)
            is_root = False
            self._before.append((owner, owner.names, values))

    def _kept_of(self, owner: _Owner, name: str, values: list, i: int, seen: set, is_root: bool):
        value = values[i]
        if not is_root and owner.is_made_by_hook(name):
            return _OTHERS
        if name in owner.exchanged:
            if isinstance(value, torch.Tensor):
                self.reads = self.reads or Reads()
                return self.reads.wait(value, lambda found: values.__setitem__(i, found))
            if isinstance(value, _CONTAINERS) and _storages(value):
                self.reads = self.reads or Reads()
                return _Copied(value, self.reads)
        return _frozen(value, seen)

    def exchange(self) -> list:
        """Puts what the forward found in its place. Returns what was there, for `restore`."""
        now = []
        for owner, names, values in self._before:
            current = owner.values()
            states: list = []
            now.append((owner, owner.names, current, states))
            if owner.names is names and all(map(is_, current, values)):
                continue
            attributes = owner.attributes
            before = dict(zip(names, values))
            for name, value in zip(owner.names, current):
                if name not in owner.exchanged and _storages(value) - _storages(before.get(name)):
                    owner.exchanged.add(name)
                if name not in names and not isinstance(value, _NO_STATES):
                    del attributes[name]
            for name, value in zip(names, values):
                if type(value) is _State:
                    state = value.ref()
                    if state is not None:
                        attributes[name] = state
                        states.append((state, value.put_back(state)))
                elif value is not _OTHERS:
                    attributes[name] = value.thaw() if type(value) is _Copied else value
        return now


def restore(now: list) -> None:
    for owner, names, values, states in now:
        for state, found in states:
            if found is not None:
                vars(state).clear()
                vars(state).update(found)
        current = owner.values()
        if owner.names is names and all(map(is_, current, values)):
            continue
        attributes = owner.attributes
        for name in owner.names:
            if name not in names:
                del attributes[name]
        for name, value in zip(names, values):
            if attributes.get(name, _OTHERS) is not value:
                attributes[name] = value
