"""A pytest plugin: `python -m pytest -p tidemark.compat.pytest_cuda ...` does not skip what wants a CUDA device.

PyTorch's own test files ask `torch.testing._internal` whether there is one. With `cuda` as a label there is enough of one for the
tests of its planning tools.
"""

from __future__ import annotations

import importlib
from unittest import mock

import torch
from torch.testing._internal import common_cuda, common_utils

from . import _label

if _label.is_installed():
    common_utils.TEST_CUDA = True
    common_cuda.TEST_CUDA = True
    # The module with the models of the tests asks for the accelerator when it is imported, and only then.
    with mock.patch.object(torch.accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda")):
        importlib.import_module("torch.testing._internal.distributed._tensor.common_dtensor")
