"""What the allocator says of a step: the bytes that are there when it begins, and its peak above them.

On a GPU the allocator can be asked. On a CPU its events tell, of which there are none from before the recording: what was there then is
what model and optimizers hold, and what the step's ops are given. Other tensors of the program, such as a dataset, are no part of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .._capture.state import own_tensors, reachable_optimizers


@dataclass(frozen=True)
class Measured:
    start_bytes: int
    growth_bytes: int  # the peak, less what was there when the step began


def on_cuda(step_fn, watched) -> Measured:
    """`watched()` runs the step once more, for whoever follows its ops."""
    step_fn()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step_fn()
    torch.cuda.synchronize()
    growth = torch.cuda.max_memory_allocated() - before
    watched()
    return Measured(before, growth)


def on_cpu(step_fn, watched, model) -> Measured:
    """The profiler drops frees of blocks that it did not see made, so the step runs twice under it: the gradients that the second
    one frees are those of the first. A step that is watched op by op allocates a little more; the peak is that of one that is not."""
    from torch.profiler import ProfilerActivity, profile, record_function

    name = "tidemark: the audited step"
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step_fn()
        held = _held(model, reachable_optimizers(step_fn, model))
        with record_function(name):
            step_fn()
    begin, end, changes = _events(profiler, name)
    start: dict = {}  # by address: bytes
    total = highest = 0
    for at, address, nbytes in changes:
        if at < begin:
            if nbytes > 0:
                start[address] = nbytes
            else:
                start.pop(address, None)
        elif at <= end:
            total += nbytes
            highest = max(highest, total)
    with _Given() as given:
        watched()
    # What one step leaves to the next is elsewhere each time. It was counted above.
    recorded = {address for _, address, _ in changes}
    start.update(held)
    start.update((address, nbytes) for address, nbytes in given.found.items() if address not in recorded)
    return Measured(sum(start.values()), highest)


def _events(profiler, name: str) -> tuple[int, int, list]:
    """When the step of that name began and ended, and all changes of memory in their order: (when, address, bytes)."""
    kinds = torch._C._profiler._EventType
    begin = end = 0
    changes = []
    pending = list(profiler.profiler.kineto_results.experimental_event_tree())
    for event in pending:  # grows meanwhile
        pending.extend(event.children)
        if event.tag == kinds.Allocation:
            fields = event.extra_fields
            changes.append((event.start_time_ns, len(changes), fields.ptr, fields.alloc_size))
        elif event.name == name:
            begin, end = event.start_time_ns, event.end_time_ns
    return begin, end, [(at, address, nbytes) for at, _, address, nbytes in sorted(changes)]


def _storage(tensor, into: dict) -> None:
    if tensor.layout == torch.strided and tensor.device.type == "cpu":
        try:
            storage = tensor.untyped_storage()
            if storage.nbytes():
                into[storage.data_ptr()] = storage.nbytes()
        except (NotImplementedError, RuntimeError):
            pass  # a wrapper around other tensors, which are met themselves


def _held(model, optimizers) -> dict:
    found: dict = {}
    for module in model.modules():
        for tensor in (*module._parameters.values(), *module._buffers.values(), *own_tensors(module)):
            if tensor is not None:
                _storage(tensor, found)
    for parameter in model.parameters():
        if parameter.grad is not None:
            _storage(parameter.grad, found)
    for optimizer in optimizers:
        for value in tree_leaves(list(optimizer.state.values())):
            if isinstance(value, torch.Tensor):
                _storage(value, found)
    return found


class _Given(TorchDispatchMode):
    """Finds the storages that ops are given and that no op made."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict = {}
        self._made: set = set()

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given: dict = {}
        for value in tree_leaves((args, kwargs)):
            if isinstance(value, torch.Tensor):
                _storage(value, given)
        if func is torch.ops.aten.lift_fresh.default:
            self._made.update(given)  # Python made it from numbers just now
        for address, nbytes in given.items():
            if address not in self._made:
                self.found[address] = nbytes
        out = func(*args, **kwargs)
        fresh: dict = {}
        for value in tree_leaves(out):
            if isinstance(value, torch.Tensor):
                _storage(value, fresh)
        self._made.update(address for address in fresh if address not in given)
        return out
