"""Buffers that a checkpointed call changes: its recompute starts from what they were and leaves them as it found them.

On a CPU the copies are kept outside PyTorch's allocator, so that they cost nothing of the budget.
"""

from __future__ import annotations

import ctypes
import weakref

import torch


class Snapshot:
    """The values of some buffers at one moment."""

    def __init__(self, places: list) -> None:
        self._held = []
        for ref, name in places:
            module = ref()
            buffer = module._buffers.get(name) if module is not None else None
            if buffer is not None:
                self._held.append((ref, name, buffer, _copy(buffer)))

    def put_back(self) -> None:
        for ref, name, buffer, copy in self._held:
            module = ref()
            if module is not None and module._buffers.get(name) is not buffer:
                module._buffers[name] = buffer
            _write(buffer, copy)


def places_of(root: torch.nn.Module, names: tuple[str, ...]) -> list:
    places = []
    for name in names:
        owner, _, attribute = name.rpartition(".")
        places.append((weakref.ref(root.get_submodule(owner)), attribute))
    return places


def _is_plain(buffer: torch.Tensor) -> bool:
    return buffer.device.type == "cpu" and type(buffer) is torch.Tensor and buffer.is_contiguous()


def _copy(buffer: torch.Tensor):
    if _is_plain(buffer):
        return ctypes.string_at(buffer.data_ptr(), buffer.nbytes) if buffer.nbytes else b""
    with torch.no_grad():
        return buffer.clone()


def _write(buffer: torch.Tensor, copy) -> None:
    if isinstance(copy, bytes):
        ctypes.memmove(buffer.data_ptr(), copy, len(copy))
        return
    # What autograd saved before must not notice: after the recompute the values are the old ones again.
    with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(buffer):
        buffer.copy_(copy)
