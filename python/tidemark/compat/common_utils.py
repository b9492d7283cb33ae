"""Storages behind tensors."""

from __future__ import annotations

import warnings

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

__all__ = ["get_untyped_storages"]


def get_untyped_storages(t: torch.Tensor) -> set[torch.UntypedStorage]:
    """The storages of a tensor: its own, or those of the tensors that a wrapper is made of, however deep."""
    found: set[torch.UntypedStorage] = set()
    open_tensors = [t]
    while open_tensors:
        tensor = open_tensors.pop()
        if is_traceable_wrapper_subclass(tensor):
            names, _ = tensor.__tensor_flatten__()
            open_tensors.extend(getattr(tensor, name) for name in names)
        elif not hasattr(tensor, "untyped_storage"):
            warnings.warn(f"a {type(tensor).__name__} has no storage, and is not counted", stacklevel=2)
        else:
            found.add(tensor.untyped_storage())
    return found
