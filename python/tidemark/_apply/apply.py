"""Putting a plan on a model, and taking it back."""

from __future__ import annotations

import functools
import threading
import weakref

from .. import _core
from . import checks, forwards, words
from .units import Applied

_lock = threading.RLock()
_applied: dict = {}  # by id of a model: (weak reference to it, Applied, weak references to its units' modules)


def apply(plan, model, check_ranks: bool = True) -> None:
    content = words.read(plan.to_json())
    checks.check_kind(model)
    with _lock:
        known = {id(module) for entry in _applied.values() for ref in entry[2] if (module := ref()) is not None}
        if find(model) is not None or any(id(module) in known for module in model.modules()):
            _core.fail("apply", "the model has a plan already", expected="a model without one", remedy="tidemark.remove(model) first")
        checks.check(model, content)
        if check_ranks:
            from .ranks import check_if_distributed

            check_if_distributed(content.hash)
        state = Applied(model, content)
        refs = []
        for name in dict.fromkeys(["", *(unit.module for unit in content.units)]):
            module = model.get_submodule(name)
            forwards.put(module, functools.partial(state.call if name else state.root, name))
            refs.append(weakref.ref(module))
        key = id(model)
        _applied[key] = (weakref.ref(model, lambda _: _forget(key)), state, refs)


def remove(model) -> bool:
    with _lock:
        entry = _applied.pop(id(model), None)
        if entry is None:
            return False
        entry[1].close()
        for ref in entry[2]:
            module = ref()
            if module is not None:
                forwards.take(module)
        return True


def find(model) -> Applied | None:
    """What is applied to the model."""
    entry = _applied.get(id(model))
    return entry[1] if entry is not None and entry[0]() is model else None


def _forget(key: int) -> None:
    with _lock:
        entry = _applied.pop(key, None)
        if entry is not None:
            entry[1].close()
