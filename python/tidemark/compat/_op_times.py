"""How long one op takes: by PyTorch's cost models, or measured on this machine."""

from __future__ import annotations

import time

import torch
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_leaves, tree_map

from .. import _core
from .._capture import amounts
from ._settings import settings

MODES = ("operator-level-benchmark", "operator-level-cost-model")

_FLOATING = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_WARM_UP, _TIMED = 2, 3


def by_cost_model(func, args, kwargs, result) -> float:
    """Milliseconds."""
    given = [t for t in tree_leaves((args, kwargs, result)) if isinstance(t, torch.Tensor)]
    made = {t.dtype for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.dtype in _FLOATING}
    dtype = min(made, key=lambda d: d.itemsize, default=None)
    flops = amounts.flops(func, args, kwargs, result) if func.namespace == "aten" else 0
    now = settings()
    return _core.reference_op_ms(
        now.cost,
        now.device,
        func._overloadpacket.__name__,
        [(t.untyped_storage().nbytes(), _covered(t)) for t in given],
        float(flops or 0),
        None if dtype is None else str(dtype).removeprefix("torch."),
    )


def _covered(t) -> float:
    size = float(t.element_size())
    for length, stride in zip(t.size(), t.stride()):
        if stride != 0:
            size *= length
    return size


class Benchmark:
    """Runs ops on real tensors, on the CPU, each kind once. What has no kernel there takes the cost model's time."""

    def __init__(self) -> None:
        self._known: dict = {}

    def __call__(self, func, args, kwargs, result) -> float:
        if _core.sac_op_traits(func._overloadpacket.__name__, "reference-m")[0]:
            return 0.0  # a view
        key = (func, *(_described(leaf) for leaf in tree_leaves((args, kwargs))))
        if key not in self._known:
            try:
                self._known[key] = _measured(func, args, kwargs)
            except (NotImplementedError, RuntimeError, IndexError):
                self._known[key] = by_cost_model(func, args, kwargs, result)
        return self._known[key]


def _described(leaf):
    if isinstance(leaf, torch.Tensor):
        return leaf.dtype, leaf.size(), leaf.stride()
    return type(leaf), str(leaf)


def _measured(func, args, kwargs) -> float:
    with no_dispatch(), torch.random.fork_rng(devices=[]), torch.no_grad():
        args, kwargs = tree_map(_real, args), tree_map(_real, kwargs)
        for _ in range(_WARM_UP):
            func(*args, **kwargs)
        began = time.perf_counter()
        for _ in range(_TIMED):
            func(*args, **kwargs)
        return (time.perf_counter() - began) * 1e3 / _TIMED


def _real(leaf):
    if isinstance(leaf, torch.device):
        return torch.device("cpu")
    if not isinstance(leaf, torch.Tensor):
        return leaf
    real = torch.empty_strided(leaf.size(), leaf.stride(), dtype=leaf.dtype, device="cpu")
    return real.uniform_() if leaf.dtype in _FLOATING else real.fill_(1)
