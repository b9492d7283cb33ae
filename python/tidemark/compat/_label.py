"""`cuda` as a label, in a PyTorch that was built without CUDA.

There, `torch.device("cuda")` can be named but nothing can live on it, and a fake tensor on it ends the process as soon as
autograd asks for its device. With the label installed a tensor on `cuda` is always a fake tensor: Python is told `cuda`,
C++ is told `cpu`. So the programs that PyTorch's planning tools were written for run up to the point where a value or the
time of a GPU is wanted. What they would have run on a GPU is imitated as in `tidemark.capture(target="cuda")`.

Nothing is done where PyTorch knows CUDA itself.
"""

from __future__ import annotations

import collections
import functools
import time
import types
import weakref

import torch
import torch._functorch.config
from torch._subclasses import fake_tensor
from torch.utils import _device as device_module

from .._capture import imitate

_FakeTensor = fake_tensor.FakeTensor
_FakeTensorMode = fake_tensor.FakeTensorMode
_DEVICE_QUERY = torch.ops.prim.device.default
_CPU = torch.device("cpu")
_FAKE = torch._C._TorchDispatchModeKey.FAKE
_ROUNDING = 512  # bytes, of PyTorch's CUDA allocator

_replaced: list = []  # (owner, name, what was there), or nothing while the label is not installed
_own_mode = None  # makes the tensors on `cuda` that are asked for while no fake mode is active


def is_needed() -> bool:
    return not torch.backends.cuda.is_built()


def is_installed() -> bool:
    return bool(_replaced)


def _replace(owner, name: str, value) -> None:
    _replaced.append((owner, name, owner.__dict__.get(name, _replaced)))
    setattr(owner, name, value)


def uninstall() -> None:
    """Puts back what `install` replaced. Tensors that carry the label must be gone by then."""
    while _replaced:
        owner, name, value = _replaced.pop()
        if value is _replaced:
            delattr(owner, name)
        else:
            setattr(owner, name, value)


class CurrentDevice(str):
    """What `torch.cuda.current_device()` gives: a device where one is wanted, 0 where a number is. `torch.device(0)` itself
    is refused by a PyTorch without an accelerator, and it is no Python function that could be replaced."""

    __slots__ = ()

    def __int__(self) -> int:
        return 0

    __index__ = __int__

    def __str__(self) -> str:
        return "0"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(0, spec)

    def __eq__(self, other: object) -> bool:
        return other == 0 if isinstance(other, int) else str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


_CURRENT = CurrentDevice("cuda:0")


def is_label(device) -> bool:
    """Whether this names a CUDA device, in any of the ways in which PyTorch takes devices."""
    if isinstance(device, torch.device):
        return device.type == "cuda"
    if isinstance(device, str):
        return device == "cuda" or device[:5] == "cuda:"
    return isinstance(device, int) and not isinstance(device, bool)


def labelled(tensor) -> bool:
    return isinstance(tensor, _FakeTensor) and tensor.fake_device.type == "cuda"


def install() -> None:
    """A second call does nothing."""
    if is_installed() or not is_needed():
        return
    _label_fake_tensors()
    _label_factories()
    _label_functions()
    _label_cuda_module()


# -- fake tensors --


class Allocator:
    """Bytes of the storages on `cuda` that are alive, as `torch.cuda.memory_stats` reports them."""

    def __init__(self) -> None:
        self._sizes: dict = {}
        self.current = 0
        self.peak = 0
        self.count = 0
        self.depth = 0  # of ops that are being taken apart

    def made(self, storage) -> None:
        key = storage._cdata
        if key in self._sizes:
            return
        size = -(-storage.nbytes() // _ROUNDING) * _ROUNDING
        reference = weakref.ref(storage, functools.partial(self._died, key))
        self._sizes[key] = (size, reference)
        self.current += size
        self.count += 1
        self.peak = max(self.peak, self.current)

    def reset_peak(self) -> None:
        self.peak = self.current

    def _died(self, key: int, _) -> None:
        size, _ = self._sizes.pop(key)
        self.current -= size


allocator = Allocator()


def _label_fake_tensors() -> None:
    make = _FakeTensor.__new__
    config = torch._functorch.config
    _replaced.append((config, "fake_tensor_prefer_device_type", config.fake_tensor_prefer_device_type))
    config.fake_tensor_prefer_device_type = "cuda"  # where C++ made one operand on the CPU after all

    def made(cls, *args, **kwargs):
        device = kwargs.get("device", args[2] if len(args) > 2 else None)
        if device is None or torch.device(device).type != "cuda":
            return make(cls, *args, **kwargs)
        if len(args) > 2:
            args = (*args[:2], _CPU, *args[3:])
        else:
            kwargs["device"] = _CPU
        tensor = make(cls, *args, **kwargs)
        tensor.fake_device = torch.device(device)
        return tensor

    _replace(_FakeTensor, "__new__", staticmethod(made))
    for owner in (_FakeTensor, _FakeTensorMode):
        _replace(owner, "__torch_dispatch__", _answering_cpu(owner.__dict__["__torch_dispatch__"]))
    _replace(_FakeTensor, "is_cuda", property(lambda self: self.fake_device.type == "cuda"))


_means_cpu = 0  # open calls that name the CPU


def _with_label(args, kwargs):
    """C++ makes a tensor "where that one is" by naming the device it was told of, the CPU. A program that means the CPU says
    so in Python, where it is noticed."""
    if not _means_cpu:
        for value in args:
            if labelled(value):
                return {**kwargs, "device": value.fake_device}
    return kwargs


def _answering_cpu(dispatch):
    """C++ asks for a tensor's device through dispatch; Python reads the property `device`, which keeps the label."""
    if isinstance(dispatch, classmethod):
        inner = dispatch.__func__

        def of_class(cls, func, types, args=(), kwargs=None):
            if func is _DEVICE_QUERY and labelled(args[0]) and not args[0].fake_mode.in_kernel_invocation:
                return _CPU
            return inner(cls, func, types, args, kwargs or {})

        return classmethod(of_class)

    def of_mode(self, func, types, args=(), kwargs=None):
        if func is _DEVICE_QUERY and labelled(args[0]) and not args[0].fake_mode.in_kernel_invocation:
            return _CPU
        if kwargs and "device" in kwargs and kwargs["device"] is not None and kwargs["device"].type == "cpu":
            kwargs = _with_label(args, kwargs)
        # What an op makes on its way here, where it is taken apart, its kernel would not.
        allocator.depth += 1
        try:
            result = dispatch(self, func, types, args, kwargs)
        finally:
            allocator.depth -= 1
        if allocator.depth == 0:
            for tensor in result if isinstance(result, (list, tuple)) else (result,):
                if labelled(tensor):
                    allocator.made(tensor.untyped_storage())
        return result

    return of_mode


# -- what makes tensors while no fake mode is active --


def _mode():
    global _own_mode
    if _own_mode is None:
        _own_mode = _FakeTensorMode(allow_non_fake_inputs=True)
    return _own_mode


def _is_faking() -> bool:
    return torch._C._get_dispatch_mode(_FAKE) is not None


def _label_factories() -> None:
    made_there = device_module.DeviceContext.__torch_function__

    def of_context(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.device.type == "cuda" and func in device_module._device_constructors() and not _is_faking():
            if kwargs.get("device") is None:
                kwargs["device"] = self.device
            if is_label(kwargs["device"]):
                with _mode():
                    return func(*args, **kwargs)
        return made_there(self, func, types, args, kwargs)

    _replace(device_module.DeviceContext, "__torch_function__", of_context)
    for function in device_module._device_constructors():
        owner = torch if getattr(torch, function.__name__, None) is function else None
        if owner is not None:
            _replace(owner, function.__name__, _made_on_label(function))
    _replace(torch.Tensor, "to", _moved_to_label(torch.Tensor.to))
    _replace(torch.Tensor, "cuda", _to_cuda)
    _replace(torch.Tensor, "cpu", _to_cpu)


def _made_on_label(function):
    @functools.wraps(function)
    def made(*args, **kwargs):
        device = kwargs.get("device")
        if device is not None and is_label(device):
            if isinstance(device, int):
                kwargs["device"] = torch.device("cuda", device)
            if not _is_faking():
                with _mode():
                    return function(*args, **kwargs)
        return function(*args, **kwargs)

    return made


def _moved_to_label(to):
    @functools.wraps(to)
    def moved(self, *args, **kwargs):
        device = kwargs.get("device", args[0] if args else None)
        if isinstance(device, torch.Tensor):
            device = device.device
        if isinstance(device, (torch.device, str, int)):
            if labelled(self) != is_label(device):
                dtype = kwargs.get("dtype", args[1] if len(args) > 1 else None)
                return _moved(self, torch.device(device), dtype if isinstance(dtype, torch.dtype) else self.dtype)
            if labelled(self):  # C++ would take it for a tensor on the CPU, and copy it
                kwargs = {name: value for name, value in kwargs.items() if name not in ("device", "other")}
                args = args[1:]
                return to(self, *args, **kwargs) if args or kwargs else self
        return to(self, *args, **kwargs)

    return moved


def _moved(tensor, device, dtype):
    global _means_cpu
    if isinstance(tensor, _FakeTensor):
        _means_cpu += device.type == "cpu"
        try:
            return torch.ops.aten._to_copy(tensor, dtype=dtype, device=device)
        finally:
            _means_cpu -= device.type == "cpu"
    if _is_faking():
        fake = torch.empty_strided(tensor.size(), tensor.stride(), dtype=dtype, device=device)
    else:
        with _mode():
            fake = torch.empty_strided(tensor.size(), tensor.stride(), dtype=dtype, device=device)
    return fake.requires_grad_() if tensor.requires_grad else fake


def _to_cuda(self, device=None, non_blocking=False, memory_format=torch.preserve_format):
    return self.to("cuda:0" if device is None else device)


def _to_cpu(self, memory_format=torch.preserve_format):
    return self.to("cpu")


# -- kernels --


class _Silent:
    def note(self, *_) -> None:
        pass


def _label_functions() -> None:
    """Dropout and attention choose their op by the device, in C++."""
    choices = imitate.Choices(_Silent(), imitate.find_target("cuda"))
    functional = torch.nn.functional
    for owner, name in ((functional, "dropout"), (torch, "dropout"), (functional, "scaled_dot_product_attention")):
        original = getattr(owner, name)
        _replace(owner, name, _chosen(original, choices.of(original)))


def _chosen(original, instead):
    @functools.wraps(original)
    def call(first, *args, **kwargs):
        return (instead if labelled(first) else original)(first, *args, **kwargs)

    return call


# -- torch.cuda --


class Event:
    """Time of this machine, for programs that time what they run."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._at = None

    def record(self, stream=None) -> None:
        self._at = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        return (end._at - self._at) * 1e3

    def synchronize(self) -> None:
        pass

    wait = query = synchronize


def _memory_stats(device=None) -> collections.OrderedDict:
    stats = collections.OrderedDict()
    for name in ("allocated_bytes", "active_bytes", "requested_bytes"):
        for pool in ("all", "large_pool", "small_pool"):
            counted = pool == "all"
            stats[f"{name}.{pool}.current"] = allocator.current if counted else 0
            stats[f"{name}.{pool}.peak"] = allocator.peak if counted else 0
    stats["allocation.all.allocated"] = allocator.count
    return stats


def _properties(device=None) -> types.SimpleNamespace:
    """Only what follows from the generation that is imitated."""
    major, minor = imitate.find_target("cuda").capability
    return types.SimpleNamespace(name="cuda, a label", major=major, minor=minor)


def _label_cuda_module() -> None:
    # One function for each name: PyTorch's compiler has a table of functions, and refuses one with two names.
    cuda = torch.cuda
    for name in ("set_device", "synchronize", "empty_cache", "reset_accumulated_memory_stats"):
        _replace(cuda, name, lambda *args, **kwargs: None)
    _replace(cuda, "current_device", lambda: _CURRENT)
    _replace(torch.accelerator, "current_device_index", lambda: _CURRENT)
    _replace(cuda, "memory_stats", _memory_stats)
    _replace(cuda, "memory_allocated", lambda device=None: allocator.current)
    _replace(cuda, "memory_reserved", lambda device=None: allocator.current)  # nothing is kept for later
    _replace(cuda, "max_memory_allocated", lambda device=None: allocator.peak)
    _replace(cuda, "reset_peak_memory_stats", lambda device=None: allocator.reset_peak())
    _replace(cuda, "Event", Event)
    _replace(cuda, "get_device_capability", lambda device=None: imitate.find_target("cuda").capability)
    _replace(cuda, "get_device_name", lambda device=None: "cuda, a label")
    _replace(cuda, "get_device_properties", _properties)
