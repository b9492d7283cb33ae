"""Lists, dictionaries, and objects that hold tensors or such containers, among a call's arguments.

They belong to the program, which may fill, empty or refill them after the call, and so may the call itself. The checkpoint therefore keeps
a copy of each as it was when the call began, tensors excepted, and every recompute gets a copy of that: it sees what the
forward saw, and the program's own containers never see a recompute.
"""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import fields, is_dataclass

import torch

# What is never a container, and what nearly all arguments are. Asked first, for every argument of every call.
_SINGLE = frozenset((torch.Tensor, torch.nn.Parameter, type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device))
_DEPTH = 8  # as far as a capture looks
_LEAN = -1  # beside the copies by id: what to do with tensors


def copied(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments with copies of their containers; these very objects where there are none."""
    if _are_single(args) and _are_single(kwargs.values()):
        return args, kwargs
    made: dict = {}  # by id of a container: its copy, so that what was one object stays one
    new_args = tuple([_copy(value, made, 0) for value in args])
    new_kwargs = {name: _copy(value, made, 0) for name, value in kwargs.items()}
    if any(new is not old for new, old in zip(new_args, args)) or any(new_kwargs[name] is not old for name, old in kwargs.items()):
        return new_args, new_kwargs
    return args, kwargs


def _are_single(values) -> bool:
    """Nothing but what is no container, and tuples of that."""
    for value in values:
        kind = type(value)
        if kind not in _SINGLE and not (kind is tuple and _SINGLE.issuperset(map(type, value))):
            return False
    return True


def copy_of(container, lean):
    """A copy of a container and of those in it, with `lean(tensor)` for each tensor."""
    return _copy(container, {_LEAN: lean}, 0)


def _copy(value, made: dict, depth: int):
    if isinstance(value, torch.Tensor):
        lean = made.get(_LEAN)
        return value if lean is None else lean(value)
    if type(value) in _SINGLE or isinstance(value, torch.nn.Module) or depth > _DEPTH:
        return value
    if isinstance(value, tuple):
        return _copy_tuple(value, made, depth)
    if isinstance(value, (list, dict, set, deque)) or _is_mutable_dataclass(value):
        found = made.get(id(value))
        if found is None:
            found = copy.copy(value)
            made[id(value)] = found
            _copy_items(found, made, depth + 1)
        return found
    if _is_state(value):
        found = made.get(id(value))
        if found is None:
            found = made[id(value)] = object.__new__(type(value))
            found.__dict__.update(vars(value))
            _copy_items(found.__dict__, made, depth + 1)
        return found
    return value


def _copy_tuple(value: tuple, made: dict, depth: int):
    items = [_copy(item, made, depth + 1) for item in value]
    if all(new is old for new, old in zip(items, value)):
        return value
    if type(value) is tuple:
        return tuple(items)
    if hasattr(value, "_fields"):  # a named tuple
        return tuple.__new__(type(value), items)
    return value


def _copy_items(into, made: dict, depth: int) -> None:
    """Of a container that is a copy already: what is in it. Writes only where something is another object then."""
    if isinstance(into, (list, deque)):
        for i, item in enumerate(into):
            new = _copy(item, made, depth)
            if new is not item:
                into[i] = new
    elif isinstance(into, dict):
        for key, item in list(into.items()):
            new = _copy(item, made, depth)
            if new is not item:
                into[key] = new
    if is_dataclass(into):
        for field in fields(into):
            item = getattr(into, field.name, None)
            new = _copy(item, made, depth)
            if new is not item:
                setattr(into, field.name, new)


def _is_mutable_dataclass(value) -> bool:
    return is_dataclass(value) and not isinstance(value, type) and not value.__dataclass_params__.frozen


def _is_state(value) -> bool:
    """An object of the program's own that carries tensors along, which calls may exchange: plain, so that its attributes are all of it."""
    cls = type(value)
    if cls.__new__ is not object.__new__ or cls.__module__.partition(".")[0] in ("torch", "builtins") or hasattr(cls, "__slots__"):
        return False
    attributes = getattr(value, "__dict__", None)
    return type(attributes) is dict and any(isinstance(item, (torch.Tensor, list, dict, set, deque)) for item in attributes.values())
