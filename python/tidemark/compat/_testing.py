"""PyTorch's own test helpers, told that the label `cuda` is a device.

The test files of its planning tools ask `torch.testing._internal` whether there is a GPU, when they are imported. With the label there
is enough of one for them, so that they need no other change than their imports.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from unittest import mock

import torch

_HELPERS = ("torch.testing._internal.common_utils", "torch.testing._internal.common_cuda")
# Has the models of the tests; asks for the accelerator while it is imported, and only then.
_MODELS = "torch.testing._internal.distributed._tensor.common_dtensor"


class _Finder(importlib.abc.MetaPathFinder):
    """Steps in when one of those modules is imported."""

    def find_spec(self, name, path, target=None):
        if name not in (*_HELPERS, _MODELS):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module) -> None:
            if name == _MODELS:
                with mock.patch.object(torch.accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda")):
                    run(module)
            else:
                run(module)
                module.TEST_CUDA = True

        spec.loader.exec_module = exec_module
        return spec


_finder = _Finder()


def tell() -> None:
    """From now on. A second call does nothing."""
    for name in _HELPERS:
        if name in sys.modules:
            sys.modules[name].TEST_CUDA = True
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def untell() -> None:
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in _HELPERS:
        if name in sys.modules:
            sys.modules[name].TEST_CUDA = torch.cuda.is_available()
