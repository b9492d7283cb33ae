"""Fake tensors: how they are made from real ones, and the cures for where they differ from them.

A cure is for an op or a mechanism, never for a model.
"""

from __future__ import annotations

import contextlib
import logging

import torch
from torch._prims_common import suggest_memory_format
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

aten = torch.ops.aten


@contextlib.contextmanager
def undispatched():
    """Real work in the middle of a recorded step: no mode sees it."""
    guard = torch._C._DisableTorchDispatch()
    try:
        yield
    finally:
        del guard


class Fakes:
    """Makes fake tensors. Views of one storage become views of one fake storage."""

    def __init__(self) -> None:
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._device = torch.device("cpu")
        self._storages: dict[int, tuple] = {}  # of real storages: (the real one, the fake one)
        self._tensors: dict[int, tuple] = {}  # of real tensors: (the real one, the fake one)

    def is_fake(self, t) -> bool:
        return isinstance(t, FakeTensor)

    def of(self, real):
        """The fake of a real tensor; asked twice, the same one."""
        known = self._tensors.get(id(real))
        if known is not None:
            return known[1]
        storage = real.untyped_storage()
        made = self._storages.get(storage._cdata)
        if made is None:
            made = self._storages[storage._cdata] = (storage, torch.UntypedStorage(storage.nbytes(), device="meta"))
        fake = self._over(made[1], real.dtype, real.storage_offset(), real.size(), real.stride())
        self._tensors[id(real)] = (real, fake)
        return fake

    def fresh(self, bytes: int, dtype, offset: int, size, stride):
        """A fake tensor over a storage of its own."""
        return self._over(torch.UntypedStorage(bytes, device="meta"), dtype, offset, size, stride)

    def _over(self, storage, dtype, offset: int, size, stride):
        guard = torch._C._DisableTorchDispatch()
        meta = torch.empty(0, dtype=dtype, device="meta")
        meta.set_(storage, offset, size, stride)
        fake = FakeTensor(self.mode, meta, self._device)
        del guard
        return fake

    def real_leaves(self):
        """Real tensors that were used, whose .grad may now be fake."""
        return [real for real, _ in self._tensors.values()]


class _NeverFake:
    """Stands where libraries look for the class of fake tensors to ask whether they are being traced. They are not:
    a recorded step has to take the way that a real one takes."""


@contextlib.contextmanager
def not_traced():
    namespace = torch._subclasses
    kept = namespace.FakeTensor
    namespace.FakeTensor = _NeverFake
    try:
        yield
    finally:
        namespace.FakeTensor = kept


@contextlib.contextmanager
def quiet():
    """PyTorch logs a traceback whenever a fake op fails, also when the failure is answered otherwise or comes again from real
    tensors; what goes wrong for good is raised."""
    log = logging.getLogger(FakeTensorMode.__module__)
    was_disabled, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was_disabled


# -- cures: overload -> function(func, args, kwargs) that runs the op under the fake mode --


def _contiguous(func, args, kwargs):
    """The fake kernel copies the strides of an argument; the real one returns contiguous tensors."""
    out = func(*args, **kwargs)
    if isinstance(out, torch.Tensor):
        return out if out.is_contiguous() else torch.empty(out.shape, dtype=out.dtype)
    return tuple(o if o is None or o.is_contiguous() else torch.empty(o.shape, dtype=o.dtype) for o in out)


def _in_the_format_of(position: int):
    """The real kernel lays its first result out like that argument, channels first or last and dense; the fake one copies the
    strides of another, or of this one as they are."""

    def cured(func, args, kwargs):
        out = func(*args, **kwargs)
        first = out if isinstance(out, torch.Tensor) else out[0]
        if first is None:
            return out
        laid_out = torch.empty(first.shape, dtype=first.dtype, memory_format=suggest_memory_format(args[position]))
        if laid_out.stride() == first.stride():
            return out
        return laid_out if first is out else (laid_out, *out[1:])

    return cured


def _batch_norm(func, args, kwargs):
    """The real kernel keeps mean and deviation in the type of the layer's own parameters and statistics where its input's is a
    narrower one (autocast); the fake one takes the input's."""
    out = _in_the_format_of(0)(func, args, kwargs)
    dtype = next((t.dtype for t in args[1:5] if t is not None), out[1].dtype)
    return (out[0], *(t if t.dtype == dtype else torch.empty(t.shape, dtype=dtype) for t in out[1:]))


def _gradient_first(position: int):
    """The real kernel goes over the gradient and then over what forward kept, at `position`, and takes the strides of the
    first; the fake one takes those of the second."""

    def cured(func, args, kwargs):
        out = func(*args, **kwargs)
        laid_out = aten.add.Tensor(args[0], args[position])
        return out if laid_out.stride() == out.stride() else laid_out

    return cured


def _grouped_mm_of_any_type(func, args, kwargs):
    """The fake kernel wants bfloat16, the real CPU kernel does not."""
    dtype = args[0].dtype
    if dtype == torch.bfloat16:
        return func(*args, **kwargs)
    a, b = args[:2]
    offsets = args[2] if len(args) > 2 else kwargs.get("offs")
    width = b.size(-1)
    if a.dim() == 3:
        shape = (a.size(0), a.size(1)) if b.dim() == 3 else (a.size(1),)
    else:
        shape = (a.size(0),) if b.dim() == 3 else (offsets.numel(), a.size(0))
    dtype = kwargs.get("out_dtype") or dtype
    aligned = 16 // dtype.itemsize  # rows start at multiples of 16 bytes
    row = -(-width // aligned) * aligned
    return torch.empty_strided((*shape, width), torch.empty(*shape, row, device="meta").stride(), dtype=dtype)


def _as_the_kernel_lays_out(func, args, kwargs):
    """The fake kernel does not know how large the scratch is that the kernel keeps for backward: the op is run once."""
    key = (func, tuple((a.dtype, a.size(), a.stride()) if isinstance(a, torch.Tensor) else repr(a) for a in args))
    layouts = _layouts_seen.get(key)
    if layouts is None:
        with undispatched():
            real = func(*(torch.zeros(a.size(), dtype=a.dtype) if isinstance(a, torch.Tensor) else a for a in args))
            layouts = _layouts_seen[key] = [o if o is None else (o.size(), o.stride(), o.dtype) for o in real]
    return tuple(o if o is None else torch.empty_strided(o[0], o[1], dtype=o[2]) for o in layouts)


def _number_in_a_whole_storage(func, args, kwargs):
    """The kernels compute the loss of every element and then shrink that very tensor to the one number, which does not
    shrink its storage."""
    out = func(*args, **kwargs)
    if out.dim():
        return out
    return torch.empty(torch.broadcast_shapes(args[0].size(), args[1].size()), dtype=out.dtype).resize_(())


_layouts_seen: dict = {}

CURES = {
    aten._log_softmax_backward_data.default: _contiguous,
    aten.binary_cross_entropy.default: _number_in_a_whole_storage,
    aten.elu_backward.default: _gradient_first(5),
    aten.hardsigmoid_backward.default: _gradient_first(1),
    aten.hardswish_backward.default: _gradient_first(1),
    aten.hardtanh_backward.default: _gradient_first(1),
    aten.huber_loss_backward.default: _contiguous,
    aten.mse_loss.default: _number_in_a_whole_storage,
    aten.mse_loss_backward.default: _contiguous,
    aten.native_batch_norm.default: _batch_norm,
    aten.native_batch_norm_backward.default: _in_the_format_of(1),
    aten.native_group_norm_backward.default: _in_the_format_of(1),
    aten.native_layer_norm_backward.default: _contiguous,
    aten.roll.default: _in_the_format_of(0),
    aten.smooth_l1_loss.default: _number_in_a_whole_storage,
    aten.smooth_l1_loss_backward.default: _contiguous,
    aten.soft_margin_loss.default: _number_in_a_whole_storage,
    aten.softplus_backward.default: _gradient_first(1),
}
if hasattr(aten, "mkldnn_rnn_layer"):
    CURES[aten.mkldnn_rnn_layer.default] = _as_the_kernel_lays_out
if hasattr(aten, "_grouped_mm"):
    CURES[aten._grouped_mm.default] = _grouped_mm_of_any_type
