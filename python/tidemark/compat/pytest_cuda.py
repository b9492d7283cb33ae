"""A pytest plugin: `python -m pytest -p tidemark.compat.pytest_cuda ...` does not skip what wants an accelerator.

Importing `tidemark.compat` is enough for tests that ask `torch.testing._internal` for CUDA. With this, also for those that ask
`torch.accelerator`.
"""

from __future__ import annotations

import torch

from . import _label

if _label.is_installed():
    torch.accelerator.is_available = lambda: True
    torch.accelerator.current_accelerator = lambda check_available=False: torch.device("cuda")
