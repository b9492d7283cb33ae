"""Milliseconds of a training step and of its modules, on tensors without data."""

from __future__ import annotations

import collections
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from . import _op_times
from ._settings import settings
from .mod_tracker import ModTracker

__all__ = ["RuntimeEstimator"]

_DEVICE_QUERY = torch.ops.prim.device.default


class RuntimeEstimator(TorchDispatchMode):
    """Adds up what the ops take that run while it is open, inside a FakeTensorMode.

    >>> estimator = RuntimeEstimator()
    >>> with FakeTensorMode():
    ...     ...
    ...     with estimator(estimate_mode_type="operator-level-cost-model"):
    ...         step()
    >>> estimator.total_runtime, estimator.mod_runtimes["GPT.layers.0"]["fw"]

    `mod_runtimes` has forward ("fw") and backward ("bw") milliseconds by module, with what is inside of it; "Global" is all. The
    four `mod_..._order` lists have the modules as their passes start (pre) and end (post).
    """

    fake_mode: FakeTensorMode

    def __init__(self) -> None:
        super().__init__()
        self._mod_tracker = ModTracker()
        self._time = None
        self._mode_name = ""
        self._reset()

    def _reset(self) -> None:
        self.mod_runtimes: dict[str, dict[str, float]] = collections.defaultdict(lambda: {"fw": 0.0, "bw": 0.0})
        self.mod_fw_pre_order: list[str] = []
        self.mod_bw_pre_order: list[str] = []
        self.mod_fw_post_order: list[str] = []
        self.mod_bw_post_order: list[str] = []
        self.total_runtime = 0.0

    def __call__(self, estimate_mode_type: str) -> RuntimeEstimator:
        """Chooses "operator-level-cost-model" or "operator-level-benchmark"."""
        self._time = _time_of(estimate_mode_type)
        self._mode_name = estimate_mode_type
        return self

    def __enter__(self) -> RuntimeEstimator:
        self.fake_mode = _active_fake_mode("RuntimeEstimator")
        if self._time is None:
            self("operator-level-cost-model")
        self._reset()

        def noting(order: list[str], only_in_forward: bool):
            def note(module, *_):
                name = self._mod_tracker.get_known_fqn(module)
                if name is not None and not (only_in_forward and self._mod_tracker.is_bw):
                    order.append(name)

            return note

        self._mod_tracker.register_user_hooks(
            noting(self.mod_fw_pre_order, True),
            noting(self.mod_fw_post_order, True),
            noting(self.mod_bw_pre_order, False),
            noting(self.mod_bw_post_order, False),
        )
        self._mod_tracker.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        super().__exit__(*args)
        self._mod_tracker.__exit__(*args)
        self._mod_tracker.clear_user_hooks()
        print(f"Estimated ({self._mode_name}) total_time: {self.total_runtime:.3f} ms")

    def display_modulewise_stats(self, depth: int = 2) -> None:
        """Prints the orders and the times of modules at most `depth` names deep; the root's name is one."""

        def shown(names):
            return [name for name in dict.fromkeys(names) if name.count(".") + 1 <= depth]

        for title, order in (
            ("Pre-Forward", self.mod_fw_pre_order),
            ("Pre-Backward", self.mod_bw_pre_order),
        ):
            print(f"{title} order:")
            for name in shown(order):
                print(f"  {name}")
        for name in shown(self.mod_runtimes):
            times = self.mod_runtimes[name]
            print(f"{name}: forward {times['fw']:.3f} ms, backward {times['bw']:.3f} ms")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func is _DEVICE_QUERY and not settings().charges_device_queries:
            return result
        ms = self._time(func, args, kwargs, result)
        phase = "bw" if self._mod_tracker.is_bw else "fw"
        for name in self._mod_tracker.parents:
            self.mod_runtimes[name][phase] += ms
        self.total_runtime += ms
        return result


def _time_of(mode: str):
    if mode == "operator-level-cost-model":
        return _op_times.by_cost_model
    if mode == "operator-level-benchmark":
        return _op_times.Benchmark()
    raise NotImplementedError(f"there is no estimate_mode_type {mode!r}; expected one of {', '.join(_op_times.MODES)}")


def _active_fake_mode(who: str) -> FakeTensorMode:
    mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
    if mode is None:
        raise AssertionError(f"{who} works on fake tensors: open it inside a FakeTensorMode")
    return mode
