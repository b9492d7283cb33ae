"""PyTorch's planning tools (torch.distributed._tools) by their names, on Tidemark.

Code written for them runs with another import, on a machine without a GPU:

    from tidemark.compat.mem_tracker import MemTracker
    from tidemark.compat.ilp_utils import aggregate_stats, parse_module_info
    from tidemark.compat.sac_ilp import sac_milp

In a PyTorch without CUDA, importing this package makes `cuda` a label that tensors without data can carry (see
docs/compat.md). `use(...)` says whose times the estimators give; from the start those of PyTorch's own model ("reference-m")
for the A100 of its published figures.
"""

import importlib

from . import _label, _testing
from ._settings import Settings, settings, use

# The names that torch.distributed._tools has itself, by the module they are in.
_TOOLS = {
    "MSPS": "sac_estimator",
    "MemTracker": "mem_tracker",
    "MemoryTracker": "memory_tracker",
    "ModTracker": "mod_tracker",
    "RuntimeEstimator": "runtime_estimator",
    "SACEstimator": "sac_estimator",
    "SACGreedyOrderMeta": "sac_estimator",
    "SACStats": "sac_estimator",
    "SACTradeOffStats": "sac_estimator",
}

__all__ = ["Settings", "label_cuda", "settings", "use", *_TOOLS]


def __getattr__(name: str):
    if name not in _TOOLS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_TOOLS[name]}", __name__), name)


def label_cuda(wanted: bool = True) -> None:
    """Whether `cuda` is a label, in a PyTorch without CUDA. Importing this package switches it on; switch it off only when no
    tensor carries it any more."""
    if wanted:
        _label.install()
    else:
        _label.uninstall()
    if _label.is_installed():
        _testing.tell()
    else:
        _testing.untell()


label_cuda()
