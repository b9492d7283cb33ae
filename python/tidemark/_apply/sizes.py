"""The tensors in a call's arguments, against those that the plan was made for."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass

import torch

from .errors import drift
from .words import UnitWords

_dtypes: dict = {}


def dtype_name(dtype: torch.dtype) -> str:
    name = _dtypes.get(dtype)
    if name is None:
        name = _dtypes[dtype] = str(dtype).removeprefix("torch.")
    return name


def tensors_in(value, into: list, depth: int = 0) -> None:
    """In the order in which a capture lists them."""
    if isinstance(value, torch.Tensor):
        into.append(value)
    elif depth > 8:
        return
    elif isinstance(value, (list, tuple)):
        for item in value:
            tensors_in(item, into, depth + 1)
    elif isinstance(value, dict):
        for item in value.values():
            tensors_in(item, into, depth + 1)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            tensors_in(getattr(value, field.name, None), into, depth + 1)


def signature_of(tensors: list) -> tuple:
    return tuple((dtype_name(t.dtype), tuple(t.shape)) for t in tensors)


def growth(unit: UnitWords, signature: tuple) -> float:
    """How much more memory the inputs may need than the planned ones: 1 or less when no more. Raises when they are of another
    kind."""
    planned = unit.inputs
    if len(signature) != len(planned):
        raise drift(
            unit.module,
            "the call gets another number of tensors than the plan's",
            expected=str(len(planned)),
            got=str(len(signature)),
            cause="other arguments (a mask, positions, a cache) than when the step was captured",
        )
    for i, ((dtype, sizes), (planned_dtype, planned_sizes)) in enumerate(zip(signature, planned)):
        if dtype != planned_dtype:
            raise drift(
                unit.module,
                f"tensor {i + 1} of the call's arguments has another type",
                expected=planned_dtype,
                got=dtype,
                cause="a model, autocast or input of another precision than when the step was captured",
            )
        if len(sizes) != len(planned_sizes):
            raise drift(
                unit.module,
                f"tensor {i + 1} of the call's arguments has another number of dimensions",
                expected=f"{len(planned_sizes)}, as in {list(planned_sizes)}",
                got=f"{len(sizes)}, in {list(sizes)}",
                cause="an input of another shape than when the step was captured",
            )
    return growth_of(signature, planned)


def are_alike(signature: tuple, planned: tuple) -> bool:
    """Whether they can be compared: as many tensors, of the same types and numbers of dimensions."""
    return len(signature) == len(planned) and all(a[0] == b[0] and len(a[1]) == len(b[1]) for a, b in zip(signature, planned))


def growth_of(signature: tuple, planned: tuple) -> float:
    """An attention takes memory with the square of the length. So a size that grows counts twice, but for the first one, usually
    the batch, as long as no other one shrinks; and inputs are larger unless even the square of what grows is made up for."""
    largest = 0.0
    for (_, sizes), (_, planned_sizes) in zip(signature, planned):
        if sizes == planned_sizes:
            continue
        elements = math.prod(sizes) / max(1, math.prod(planned_sizes))
        grown = [max(1.0, size / max(1, before)) for size, before in zip(sizes, planned_sizes)]
        if math.prod(grown) == 1:
            continue
        ratio = elements * math.prod(grown[1:])
        if ratio <= 1:
            ratio = elements * math.prod(grown)
        largest = max(largest, ratio)
    return largest
