"""PyTorch's planning tools (torch.distributed._tools) by their names, on Tidemark.

Code written for them runs with another import, on a machine without a GPU:

    from tidemark.compat.mem_tracker import MemTracker
    from tidemark.compat.ilp_utils import aggregate_stats, parse_module_info
    from tidemark.compat.sac_ilp import sac_milp

In a PyTorch without CUDA, importing this package makes `cuda` a label that tensors without data can carry (see
docs/compat.md). `use(...)` says whose times the estimators give; from the start those of PyTorch's own model ("reference-m")
for the A100 of its published figures.
"""

from . import _label
from ._settings import Settings, settings, use

__all__ = ["Settings", "label_cuda", "settings", "use"]


def label_cuda(wanted: bool = True) -> None:
    """Whether `cuda` is a label, in a PyTorch without CUDA. Importing this package switches it on; switch it off only when no
    tensor carries it any more."""
    if wanted:
        _label.install()
    else:
        _label.uninstall()


label_cuda()
