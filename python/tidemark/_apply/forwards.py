"""Detours for the forwards of single modules, without a trace on the modules.

A module's class gets a forward that looks up whether it is called for a module with a detour; every other one, a copy of
the module included, runs as before. So nothing is stored in the module: its attributes, state_dict, pickles and copies are what
they were. Only where a module has a forward of its own, as an attribute, that attribute is exchanged; copies and pickles of the
module have the old one.
"""

from __future__ import annotations

import copy
import functools
import threading
import types
import weakref

import torch

from .errors import drift

_lock = threading.RLock()
_detours: dict = {}  # by id of a module: _Detour
_classes: dict = {}  # by class: _Exchange, the latest one


class _Detour:
    """Where the calls of one module go. `exchange` is that of its class; None when the module has a forward of its own, `own`."""

    __slots__ = ("module", "run", "exchange", "own")

    def __init__(self, module: weakref.ref, run, exchange: _Exchange | None, own) -> None:
        self.module = module
        self.run = run
        self.exchange = exchange
        self.own = own


class _Exchange:
    """What a class's forward was, and what it is while modules of the class have detours."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.kept = cls.__dict__.get("forward")  # None: inherited
        self.count = 0
        self.forward = _looking_up(self, cls.forward)
        cls.forward = self.forward

    def is_in_place(self) -> bool:
        return self.cls.__dict__.get("forward") is self.forward

    def undo(self) -> None:
        if _classes.get(self.cls) is self:
            del _classes[self.cls]
        if not self.is_in_place():
            return  # somebody has put another forward there since, which is left alone; from now on ours, if called, only passes on
        if self.kept is None:
            del self.cls.forward
        else:
            self.cls.forward = self.kept


class _Exchanged:
    """Stands for a forward that a module has of its own. Copied or pickled, it is that forward."""

    def __init__(self, own, module: torch.nn.Module, detour) -> None:
        functools.update_wrapper(self, own)
        self._own = own
        self._module = weakref.ref(module)
        self._detour = detour

    def __call__(self, *args, **kwargs):
        own = self._own
        module = self._module()
        if torch.compiler.is_compiling():
            if torch.is_grad_enabled() and module.training:
                _refuse_compiling(module)
            return own(*args, **kwargs)
        return self._detour(lambda _, *a, **k: own(*a, **k), module, args, kwargs)

    def __deepcopy__(self, memo):
        return copy.deepcopy(self._own, memo)

    def __reduce__(self):
        own = self._own
        if isinstance(own, types.MethodType):
            return getattr, (own.__self__, own.__func__.__name__)
        return copy.copy, (own,)


def put(module: torch.nn.Module, detour) -> None:
    """From now on `detour(forward, module, args, kwargs)` runs instead of the module's forward."""
    with _lock:
        key = id(module)
        if "forward" in module.__dict__:
            own = module.__dict__["forward"]
            module.__dict__["forward"] = _Exchanged(own, module, detour)
            _detours[key] = _Detour(weakref.ref(module), detour, None, own)
            return
        cls = type(module)
        exchange = _classes.get(cls)
        if exchange is None or not exchange.is_in_place():
            exchange = _classes[cls] = _Exchange(cls)
        exchange.count += 1
        _detours[key] = _Detour(weakref.ref(module, lambda _: _forget(key, exchange)), detour, exchange, None)


def take(module: torch.nn.Module) -> None:
    with _lock:
        found = _detours[id(module)]
        if found.exchange is None:
            del _detours[id(module)]
            module.__dict__["forward"] = found.own
        else:
            _forget(id(module), found.exchange)


def _forget(key: int, exchange: _Exchange) -> None:
    with _lock:
        if _detours.pop(key, None) is None:
            return
        exchange.count -= 1
        if exchange.count == 0:
            exchange.undo()


def _looking_up(exchange: _Exchange, original):
    find = _detours.get

    @functools.wraps(original)
    def forward(self, *args, **kwargs):
        if torch.compiler.is_compiling():
            if _has_detour(id(self), id(exchange)) and torch.is_grad_enabled() and self.training:
                _refuse_compiling(self)
            return original(self, *args, **kwargs)
        found = find(id(self))
        # Of another exchange: a forward of the module's class has called that of a base class, which is no call of its own.
        if found is None or found.exchange is not exchange:
            if "_is_replica" in self.__dict__ and torch.is_grad_enabled() and self.training:
                _refuse_replica(self)
            return original(self, *args, **kwargs)
        return found.run(original, self, args, kwargs)

    return forward


# Asked while a model is compiled, not in what comes of it: the table may lose modules that are freed meanwhile.
@torch.compiler.assume_constant_result
def _has_detour(module_id: int, exchange_id: int) -> bool:
    found = _detours.get(module_id)
    return found is not None and id(found.exchange) == exchange_id


def _name_of(module: torch.nn.Module) -> str:
    """In its model. The detours are bound methods with the module's name given."""
    found = _detours.get(id(module))
    return getattr(found.run, "args", ("",))[0] if found is not None else ""


@torch.compiler.disable(reason="a model with a Tidemark plan runs eagerly; tidemark.remove(model) before torch.compile")
def _refuse_compiling(module: torch.nn.Module) -> None:
    raise drift(
        _name_of(module),
        "a module with a plan is being compiled",
        expected="eager PyTorch, whose ops the plan decides about",
        cause="torch.compile, model.compile() or torch.export, whatever the order with plan.apply",
        remedy="tidemark.remove(model) first, or compile only modules that neither are units nor contain any",
    )


def _refuse_replica(module: torch.nn.Module) -> None:
    hooks = module.__dict__.get("_forward_hooks")  # a replica shares them with its original
    for found in list(_detours.values()):
        original = found.module()
        if original is not None and original.__dict__.get("_forward_hooks") is hooks:
            raise drift(
                _name_of(original),
                "a replica of the module is called, which the plan does not reach",
                expected="the module itself",
                cause="torch.nn.DataParallel over several devices, which trains copies",
                remedy="DistributedDataParallel, with the plan on each rank's model, or tidemark.remove(model)",
            )
