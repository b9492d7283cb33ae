"""What an op is given, in a form that can be compared and written down.

Tensors are named by their positions in a list, so that two calls with the same other arguments have equal keys.
"""

from __future__ import annotations

import torch

from .op_facts import OpFacts

_Tensor = torch.Tensor
_POSITIONS = [range(i, i + 1) for i in range(8)]


class Described:
    """An op before it runs. `inputs` and `refs` are the recorder's: tensors of the Step, and their storages."""

    __slots__ = ("tensors", "layouts", "inputs", "refs", "given", "args_key", "numbers", "args", "kwargs")


class SavedNumber:
    """A number that autograd saved as a small tensor, given to a backward op."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: int) -> None:
        self.tensor = tensor


def described(facts: OpFacts, args, kwargs, numbers) -> Described:
    """`numbers` are saved ones, by position."""
    d = Described()
    tensors = d.tensors = []
    given = d.given = {}
    key: list = [facts.name]
    for i, (name, value) in enumerate(zip(facts.names, args)):
        if isinstance(value, _Tensor):
            converted = _position(tensors)
            tensors.append(value)
        elif i in numbers:
            converted = _position(tensors)
            tensors.append(numbers[i])
        else:
            converted = _converted(value, tensors)
            kind = type(converted)
            if kind is float or kind is bool:
                key.append(kind)  # 1, 1.0 and True are equal, and not the same
            elif kind is tuple:
                key.append(_kinds(converted))
        given[name] = converted
        key.append(converted)
    for name, value in kwargs.items():
        converted = given[name] = _converted(value, tensors)
        key += (name, converted, _kinds(converted) if type(converted) is tuple else type(converted))
    d.layouts = layouts_of(tensors) if not numbers else ()
    d.args_key = tuple(key)
    d.numbers = numbers
    d.args = args
    d.kwargs = kwargs
    return d


def layouts_of(tensors: list) -> tuple:
    """Type, sizes, strides and offset of each, one after the other."""
    listed: list = []
    for t in tensors:
        listed += (t.dtype, t.size(), t.stride(), t.storage_offset())
    return tuple(listed)


def plain(value):
    """Lists as lists."""
    return [plain(item) for item in value] if type(value) is tuple else value


def _position(tensors: list) -> range:
    count = len(tensors)
    return _POSITIONS[count] if count < len(_POSITIONS) else range(count, count + 1)


def _converted(value, tensors: list):
    if isinstance(value, _Tensor):
        position = _position(tensors)
        tensors.append(value)
        return position
    kind = type(value)
    if kind is int or kind is float or kind is bool or kind is str or value is None:
        return value
    if kind is list or kind is tuple:
        if value and all(isinstance(item, _Tensor) for item in value):
            position = len(tensors)
            tensors.extend(value)
            return range(position, len(tensors))
        return tuple(_converted(item, tensors) for item in value)
    if isinstance(value, (int, float)):
        return kind.__mro__[-2](value)
    text = str(value)
    return text if " at 0x" not in text else kind.__name__  # an address is another one in every run


def _kinds(values: tuple):
    """Types of the numbers in a list, or None for the usual one, of whole numbers."""
    for value in values:
        if type(value) is not int:
            return tuple(map(type, values))
    return None
