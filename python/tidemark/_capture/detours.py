"""Functions of PyTorch that go another way when they meet fake tensors, sent the way of real ones."""

from __future__ import annotations

import contextlib

import torch

from .fakes import undispatched

_one_hot = torch._C._nn.one_hot


class Detours:
    """`functions` are those that it stands in for."""

    def __init__(self, mode, is_imitated: bool) -> None:
        self._mode = mode
        self._checks_values = not is_imitated  # GPU kernels check where they write
        self.functions = {_one_hot: self._encoded}

    def _encoded(self, func, args, kwargs):
        """What the kernel does. Fake tensors are compared with all classes instead, which takes more memory."""
        return self._one_hot(*args, **kwargs) if args else func(*args, **kwargs)

    def _one_hot(self, tensor, num_classes: int = -1):
        if tensor.dtype != torch.int64 or tensor.numel() == 0:
            return _one_hot(tensor, num_classes)
        if self._checks_values or num_classes == -1:
            least, most = torch.aminmax(tensor)
            if num_classes > 0 and self._mode.shadows.get(least) is None:
                self._know(least, 0)
                self._know(most, num_classes - 1)  # or the real kernel would refuse them
            least.item()
            largest = most.item()
            num_classes = largest + 1 if num_classes == -1 else num_classes
            del least, most
        shape = [*tensor.size(), num_classes]
        out = torch.ops.aten.zeros.default(shape, dtype=torch.int64, layout=torch.strided, device=tensor.device)
        return out.scatter_(-1, tensor.unsqueeze(-1), 1)

    def _know(self, fake, value: int) -> None:
        with undispatched():
            self._mode.shadows.set(fake, torch.tensor(value))


@contextlib.contextmanager
def conversions():
    """A module that is converted to what it is already, in the middle of a step. PyTorch exchanges fake parameters for others
    when it converts them, which autograd forbids; of real ones nothing changes."""
    cls = torch.nn.Module
    convert = cls._apply

    def converted(self, fn, recurse=True):
        held = [t for module in (self.modules() if recurse else (self,)) for t in (*_values(module._parameters), *_values(module._buffers))]
        with torch.no_grad():
            if all(fn(t) is t for t in held):
                return self
        return convert(self, fn, recurse)

    cls._apply = converted
    try:
        yield
    finally:
        cls._apply = convert


def _values(tensors: dict) -> list:
    return [t for t in tensors.values() if t is not None]
