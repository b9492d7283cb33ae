"""A recorded op as a call that can be made again, on tensors that somebody supplies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .._core import Step


_FLOATS = (0.001, 0.02)


def overload(name: str) -> Any:
    namespace, packet, variant = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), variant)


class OpCall:
    """Looks everything up once, so that little but the op itself happens when it is run."""

    __slots__ = ("func", "_args", "_kwargs")

    def __init__(self, op: Any, device: str) -> None:
        self.func = overload(op.name)
        self._args: list = []
        self._kwargs: dict = {}
        for position, argument in enumerate(self.func._schema.arguments):
            if argument.name not in op.args:
                if not argument.has_default_value():
                    raise TypeError(f"{op.name} has no {argument.name}")
                continue
            value = _template(op.args[argument.name], "List[" in str(argument.type), device)
            if argument.kwarg_only or len(self._args) < position:
                self._kwargs[argument.name] = value
            else:
                self._args.append(value)

    def arguments(self, inputs: list) -> tuple[list, dict]:
        return [_filled(v, inputs) for v in self._args], {k: _filled(v, inputs) for k, v in self._kwargs.items()}

    def named_arguments(self, inputs: list) -> dict:
        """All of them by name."""
        names = [argument.name for argument in self.func._schema.arguments]
        args, kwargs = self.arguments(inputs)
        return {**dict(zip(names, args)), **kwargs}


class _Input:
    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


def _template(value: Any, is_list: bool, device: str) -> Any:
    if isinstance(value, range):
        return _Input(value[0]) if not is_list and len(value) == 1 else [_Input(i) for i in value]
    if isinstance(value, list):
        return [_template(item, False, device) for item in value]
    if isinstance(value, str) and value.startswith("torch."):
        return getattr(torch, value.removeprefix("torch."))
    if isinstance(value, str) and value.split(":")[0] in ("cpu", "cuda", "meta"):
        return torch.device(device)
    return value


def _filled(value: Any, inputs: list) -> Any:
    if type(value) is _Input:
        return inputs[value.index]
    if type(value) is list:
        return [_filled(item, inputs) for item in value]
    return value


def layout_of(step: Step, tensor: int) -> Any:
    return step.layouts[step.tensors[tensor].layout]


def extent_of(step: Step, tensor: int) -> int:
    """Elements from the first that the tensor reaches to the last."""
    layout = layout_of(step, tensor)
    extent = 1
    for size, stride in zip(layout.shape, layout.stride):
        if size == 0:
            return 0
        extent += (size - 1) * stride
    return extent


def make_up_floats(flat: torch.Tensor) -> None:
    """They differ, as those of a real step do: pooling, which branches on them, takes half as long on equal ones, and
    convolutions, too, are quicker."""
    if flat.dtype.itemsize > 1:
        flat.uniform_(*_FLOATS)
    else:  # PyTorch draws no numbers of eight bits
        flat.copy_(torch.empty(flat.shape, device=flat.device).uniform_(*_FLOATS))


def made_up(step: Step, tensor: int, device: str) -> torch.Tensor:
    """A tensor of the recorded layout with values that suit most ops."""
    layout = layout_of(step, tensor)
    dtype = getattr(torch, layout.dtype)
    # Whole numbers are indices as often as not: 0 is always a valid one.
    flat = torch.zeros(extent_of(step, tensor), dtype=dtype, device=device)
    if dtype.is_floating_point:
        make_up_floats(flat)
    elif dtype is torch.bool:
        flat[::2] = True
    return flat.as_strided(layout.shape, layout.stride)
