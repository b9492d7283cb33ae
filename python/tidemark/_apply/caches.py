"""Caches of keys and values that a call adds to (those of `transformers`, where `use_cache` is on by default).

A recompute that got the same cache would add to it a second time. So it gets a copy with what was in the cache before the forward. The
checkpoint does not hold the cache itself, which is the program's to drop: of what other layers have put there, the copy knows
the sizes, and the tensors as long as somebody else holds them.
"""

from __future__ import annotations

import sys
import weakref

import torch


class _Place:
    """Stands for a cache in the arguments that a checkpoint holds."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class _Frozen:
    """An object as it was: its class and attributes."""

    __slots__ = ("source", "cls", "attributes")

    def __init__(self, source, depth: int) -> None:
        self.source = source
        self.cls = type(source)
        self.attributes = {name: _freeze(value, depth + 1) for name, value in vars(source).items()}

    def lean(self) -> None:
        """After the forward: lets go of the object, and of tensors that the call did not exchange."""
        now = vars(self.source)
        is_changed = any(now.get(name) is not value for name, value in self.attributes.items() if value is None or isinstance(value, torch.Tensor))
        for name, value in self.attributes.items():
            if isinstance(value, torch.Tensor) and not is_changed:
                self.attributes[name] = _Elsewhere(value)
            else:
                _lean(value)
        self.source = None

    def thaw(self):
        made = self.cls.__new__(self.cls)
        made.__dict__.update((name, _thaw(value)) for name, value in self.attributes.items())
        return made


class _Elsewhere:
    """A tensor that somebody else holds, or nobody. Then its sizes are left: who computes with it is told by PyTorch."""

    __slots__ = ("ref", "sizes")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.ref = weakref.ref(tensor)
        self.sizes = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")

    def thaw(self) -> torch.Tensor:
        tensor = self.ref()
        return self.sizes if tensor is None else tensor


def _cache_class():
    module = sys.modules.get("transformers.cache_utils")
    return getattr(module, "Cache", None) if module is not None else None


def _freeze(value, depth: int):
    if type(value) is list:
        return [_freeze(item, depth) for item in value]
    if type(value) is dict:
        return {key: _freeze(item, depth) for key, item in value.items()}
    if depth <= 4 and type(value).__module__.startswith("transformers.") and hasattr(value, "__dict__") and not isinstance(value, type):
        if isinstance(value, _cache_class()) or "Layer" in type(value).__name__:
            return _Frozen(value, depth)
    return value


def _lean(value) -> None:
    if type(value) is list:
        for item in value:
            _lean(item)
    elif type(value) is dict:
        for item in value.values():
            _lean(item)
    elif type(value) is _Frozen:
        value.lean()


def _thaw(value):
    if type(value) is list:
        return [_thaw(item) for item in value]
    if type(value) is dict:
        return {key: _thaw(item) for key, item in value.items()}
    return value.thaw() if type(value) in (_Frozen, _Elsewhere) else value


class Caches:
    """The caches among one call's arguments."""

    def __init__(self, found: list) -> None:
        self._live = found
        self._before = [_Frozen(cache, 0) for cache in found]

    def end_forward(self) -> None:
        for frozen in self._before:
            frozen.lean()
        self._live = None

    def put_into(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments with the caches themselves in the forward, and with copies in a recompute."""
        caches = self._live if self._live is not None else [frozen.thaw() for frozen in self._before]

        def filled(value):
            return caches[value.index] if type(value) is _Place else value

        return tuple(map(filled, args)), {name: filled(value) for name, value in kwargs.items()}


def take_out(args: tuple, kwargs: dict) -> tuple[tuple, dict, Caches | None]:
    """The arguments without caches, and these."""
    cls = _cache_class()
    if cls is None:
        return args, kwargs, None
    found: list = []

    def taken(value):
        if not isinstance(value, cls):
            return value
        found.append(value)
        return _Place(len(found) - 1)

    others = tuple(map(taken, args)), {name: taken(value) for name, value in kwargs.items()}
    return (*others, Caches(found)) if found else (args, kwargs, None)
