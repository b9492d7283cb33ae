"""How programs look at the values of fake tensors without an op: in a formatted string, as a list, as a NumPy array."""

from __future__ import annotations

import contextlib
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .fakes import undispatched
from .sources import place_of

_MOST_ELEMENTS = 1 << 20  # of values that have memory of their own; more are one number, repeated


class Readings:
    """Stands in for methods of tensors. `functions` are those that it answers for."""

    def __init__(self, mode) -> None:
        self._mode = mode
        self.functions = {
            torch.Tensor.__format__: self._formatted,
            torch.Tensor.__array__: self._read,
            torch.Tensor.numpy: self._read,
            torch.Tensor.tolist: self._read,
        }

    @contextlib.contextmanager
    def of_fakes(self):
        """Fake tensors have a way of their own to become a list, with ops that a real tensor does not need."""
        own = FakeTensor.__dict__.get("tolist")
        if own is None:
            yield
            return
        FakeTensor.tolist = lambda t: self._read(torch.Tensor.tolist, (t,), {})
        try:
            yield
        finally:
            FakeTensor.tolist = own

    def _formatted(self, func, args, kwargs):
        """PyTorch formats the number in a plain tensor, but a tensor subclass as an object."""
        t = args[0]
        if not self._mode.fakes.is_fake(t) or t.dim() > 0:
            return func(*args, **kwargs)
        return format(t.detach().item(), *args[1:])

    def _read(self, func, args, kwargs):
        """The method of a real tensor. PyTorch reads the memory, which a fake tensor does not have; and a real one's method
        would detach it first, which makes a fake."""
        t, *more = args
        if self._mode.fakes.is_fake(t):
            needs_gradient = t.requires_grad
            t = self._values(t, place_of(sys._getframe(2)))
            if needs_gradient and t.dtype.is_floating_point:
                t.requires_grad_()  # an error of most such methods
        with undispatched():
            return func(t, *more, **kwargs)

    def _values(self, t, place: str):
        values = self._mode.shadows.get(t)
        with undispatched():
            if values is not None:
                return values.clone()
            self._mode.placeholder(t, place)
            ones = torch.ones((), dtype=t.dtype).expand(t.size())
            return ones.clone() if t.numel() <= _MOST_ELEMENTS else ones
