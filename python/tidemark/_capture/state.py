"""Everything a capture touches, put back as it was: objects, not only values."""

from __future__ import annotations

import functools
import gc
import random
import sys
import types

import torch

from .fakes import undispatched
from .sources import is_users


class Objects:
    """Attributes of objects, and what is in their lists, dicts and sets, one level deep."""

    def __init__(self) -> None:
        self._kept: list = []
        self._seen: set[int] = set()

    def keep(self, thing) -> None:
        if id(thing) in self._seen:
            return
        self._seen.add(id(thing))
        attributes = thing.__dict__
        containers = []
        for value in attributes.values():
            if isinstance(value, (dict, list, set)):
                containers.append((value, value.copy()))
        self._kept.append((thing, dict(attributes), containers))

    def put_back(self) -> None:
        for thing, attributes, containers in self._kept:
            now = thing.__dict__
            for name in [name for name in now if name not in attributes]:
                del now[name]
            for name, value in attributes.items():
                if now.get(name, _MISSING) is not value:
                    now[name] = value
            for container, copy in containers:
                _put_back_container(container, copy)


class Changes:
    """Notices which attributes of objects change. Holds none of their values: a tensor that a module keeps from one step
    to the next dies when the next one replaces it."""

    def __init__(self) -> None:
        self._kept: list = []

    def keep(self, thing) -> None:
        self._kept.append((thing, {name: _identity(value) for name, value in thing.__dict__.items()}))

    def found(self) -> list[tuple]:
        """(object, attribute) whose value is another object now, or has other things in it."""
        return [
            (thing, name)
            for thing, attributes in self._kept
            for name, value in thing.__dict__.items()
            if attributes.get(name) != _identity(value)
        ]


def _identity(value) -> tuple:
    if isinstance(value, dict):
        return id(value), tuple((id(k), id(v)) for k, v in value.items())
    if isinstance(value, (list, set)):
        return id(value), tuple(map(id, value))
    return (id(value), value._version) if isinstance(value, torch.Tensor) and not value.is_inference() else (id(value),)


_MISSING = object()


def _put_back_container(container, copy) -> None:
    if isinstance(container, list):
        if len(container) != len(copy) or any(a is not b for a, b in zip(container, copy)):
            container[:] = copy
    elif isinstance(container, dict):
        same = len(container) == len(copy) and all(
            k in container and container[k] is v for k, v in copy.items()
        )
        if not same:
            container.clear()
            container.update(copy)
    elif container != copy:
        container.clear()
        container.update(copy)


class Optimizers:
    """Groups and state of optimizers."""

    def __init__(self) -> None:
        self._kept: list = []

    def keep(self, optimizer) -> None:
        groups = [(group, dict(group), group["params"], list(group["params"])) for group in optimizer.param_groups]
        self._kept.append((optimizer, list(optimizer.param_groups), groups, optimizer.state, dict(optimizer.state)))

    def put_back(self) -> None:
        for optimizer, group_list, groups, state, entries in self._kept:
            optimizer.param_groups[:] = group_list
            for group, values, params, param_list in groups:
                group.clear()
                group.update(values)
                params[:] = param_list
            optimizer.state = state
            state.clear()
            state.update(entries)


class RandomState:
    """Every generator that a step may draw from: PyTorch's, Python's and NumPy's own, and those given."""

    def __init__(self, generators=()) -> None:
        self._torch = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
        self._python = random.getstate()
        self._generators: dict = {}  # by address: the generator, and its state
        for generator in generators:
            self.keep(generator)
        numpy = sys.modules.get("numpy")
        self._numpy = numpy.random.get_state() if numpy is not None else None

    def keep(self, generator) -> None:
        """One that is about to be drawn from."""
        if generator._cdata not in self._generators:
            with undispatched():
                self._generators[generator._cdata] = (generator, generator.get_state())

    def put_back(self) -> None:
        torch.set_rng_state(self._torch)
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)
        random.setstate(self._python)
        for generator, kept in self._generators.values():
            generator.set_state(kept)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)


class Values:
    """Contents of tensors that a real step changes, and their gradients."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple] = {}  # by address: the storage, and a copy
        self._tensors: list = []
        self._gradients: list = []

    def keep(self, tensor) -> None:
        original = tensor.detach()
        self._tensors.append((tensor, original))
        # The whole storage: a tensor may cover an element several times, and then cannot be written to.
        storage = original.untyped_storage()
        if storage._cdata not in self._storages:
            self._storages[storage._cdata] = (storage, storage.clone())

    def keep_gradient(self, parameter) -> None:
        self._gradients.append((parameter, parameter.grad))
        if parameter.grad is not None and parameter.grad.layout == torch.strided:
            self.keep(parameter.grad)

    def put_back(self) -> None:
        for storage, copy in self._storages.values():
            if storage.nbytes() != copy.nbytes():
                storage.resize_(copy.nbytes())
            storage.copy_(copy)
        for tensor, original in self._tensors:
            if tensor.data_ptr() != original.data_ptr() or tensor.size() != original.size():
                tensor.data = original  # the step gave it other data
        for parameter, gradient in self._gradients:
            parameter.grad = gradient


class NoCollection:
    """Python's cycle collector runs at moments of its own; a recorded step has none of them."""

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *error) -> None:
        if self._was_enabled:
            gc.enable()


_DEEPEST = 4  # a step's function, a method that it calls, its object, a list of it
_MOST_THINGS = 20_000
_LEAVES = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer, type, types.ModuleType, str, bytes, int, float, type(None))


def _reachable(function) -> list:
    """What a step's function refers to, each once: by a global name, from the function around it, as an argument given or by
    default, as an attribute of its object; and what the functions, objects and lists among these refer to in turn."""
    found: dict = {}
    pending = [(function, 0)]
    for thing, depth in pending:  # grows meanwhile
        for value in _referred(thing):
            if id(value) not in found and len(found) < _MOST_THINGS:
                found[id(value)] = value
                if depth + 1 < _DEEPEST and not isinstance(value, _LEAVES):
                    pending.append((value, depth + 1))
    return list(found.values())


def _referred(thing) -> list:
    if isinstance(thing, (list, tuple, set, frozenset)):
        return list(thing)
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, types.MethodType):
        return [thing.__func__, thing.__self__, *getattr(thing.__self__, "__dict__", {}).values()]
    if isinstance(thing, types.FunctionType):
        return _referred_by_code(thing) if is_users(thing.__code__.co_filename) else []
    values = list(getattr(thing, "__dict__", {}).values())
    called = getattr(type(thing), "__call__", None)
    return [*values, called] if isinstance(called, types.FunctionType) else values


def _referred_by_code(function) -> list:
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    codes = [function.__code__]
    for code in codes:  # with the functions written inside it
        values += [function.__globals__[name] for name in code.co_names if name in function.__globals__]
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:
            continue
    return values


def reachable_helpers(function) -> list:
    """Gradient scalers and schedulers that a step function uses: they keep state that a capture would change."""
    kinds: tuple = (torch.optim.lr_scheduler.LRScheduler,)
    scaler = getattr(torch.amp, "GradScaler", None)
    if scaler is not None:
        kinds += (scaler,)
    return [value for value in _reachable(function) if isinstance(value, kinds)]


def reachable_modules(function, model) -> list:
    """Other modules that a step function uses, such as a moving average of the model."""
    own = set(model.modules())
    return [value for value in _reachable(function) if isinstance(value, torch.nn.Module) and value not in own]


def reachable_generators(function, model) -> list:
    """Random generators that a step function uses, or that modules keep."""
    values = _reachable(function) + [value for module in model.modules() for value in module.__dict__.values()]
    return list({id(value): value for value in values if isinstance(value, torch.Generator)}.values())


def own_tensors(thing) -> list:
    """Tensors among an object's attributes, and in its lists and dicts."""
    found = []
    for value in thing.__dict__.values():
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
        found += [item for item in inside if isinstance(item, torch.Tensor) and item.layout == torch.strided]
    return found


def reachable_optimizers(function, model=None) -> list:
    """Optimizers that a step function uses; with a model, only those of its parameters."""
    own = None if model is None else {id(p) for p in model.parameters()}
    found = []
    for value in _reachable(function):
        if isinstance(value, torch.optim.Optimizer) and not any(value is other for other in found):
            if own is None or any(id(p) in own for group in value.param_groups for p in group["params"]):
                found.append(value)
    return found
