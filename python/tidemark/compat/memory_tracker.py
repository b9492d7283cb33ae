"""What the device's allocator says after every operator, by module: PyTorch's older tool, for programs that print or plot it.

The figures are those of `torch.cuda`, so that with `cuda` as a label they are the bytes of live storages that carry it; nothing is
reserved beyond them.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from pathlib import Path

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from . import _label

__all__ = ["MemoryProfileDispatchMode", "MemoryTracker"]

BYTES_PER_MB = _MB = 1 << 20
# What a file of the tracker holds, and the attributes that it is read into.
_FILED = {
    "memories_allocated": "memories_allocated",
    "memories_active": "memories_active",
    "memories_reserved": "memories_reserved",
    "markers": "_markers",
    "num_alloc_retries": "_num_alloc_retries",
}


class MemoryProfileDispatchMode(TorchDispatchMode):
    """Tells the tracker of every operator but `detach`."""

    def __init__(self, memory_tracker) -> None:
        super().__init__()
        self.memory_tracker = memory_tracker

    def __torch_dispatch__(self, func, types, args=..., kwargs=None):
        result = func(*(() if args is ... else args), **(kwargs or {}))
        if func is not torch.ops.aten.detach.default:
            self.memory_tracker._ran(func)
        return result


class MemoryTracker:
    """`start_monitor(model)`, one or more steps, `stop()`, `summary()`."""

    def __init__(self) -> None:
        self._hooks: list = []
        self._device_module = torch.cuda if _label.is_installed() else torch.get_device_module()
        self.profile_mode = None
        self._clear_state()

    def _clear_state(self) -> None:
        self._operator_names: dict[str, int] = defaultdict(int)
        self.memories_allocated: dict[int, tuple[str, float]] = {}
        self.memories_active: dict[int, tuple[str, float]] = {}
        self.memories_reserved: dict[int, tuple[str, float]] = {}
        self._markers: dict[str, int] = {}
        self._cur_module_name = ""
        self._op_index = 0
        self._num_alloc_retries = 0

    def start_monitor(self, root_module: nn.Module) -> None:
        """Every operator is recorded from here on."""
        if self.profile_mode is not None:
            raise AssertionError("the tracker is monitoring already; stop() it first")
        self._clear_state()
        for name, module in root_module.named_modules():
            is_root = module is root_module
            self._hooks.append(module.register_forward_pre_hook(self._before(name, is_root)))
            if is_root:
                self._hooks.append(module.register_forward_hook(self._after))
        self._device_module.empty_cache()
        self.profile_mode = MemoryProfileDispatchMode(self)
        self.profile_mode.__enter__()

    def stop(self) -> None:
        """Ends what `start_monitor` began."""
        if self.profile_mode is None:
            raise AssertionError("the tracker is not monitoring; start_monitor(model) first")
        self._num_alloc_retries = self._device_module.memory_stats().get("num_alloc_retries", 0)
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self.profile_mode.__exit__(None, None, None)
        self.profile_mode = None

    def summary(self, top: int = 20) -> None:
        """Prints the operators after which the most was allocated that was not before."""
        rows = [self.memories_allocated[i] for i in range(self._op_index)]
        growth = {name: now - before for (_, before), (name, now) in zip(rows, rows[1:])}
        largest = sorted(growth.items(), key=lambda row: -row[1])[:top]
        line = "-" * 48
        print(line)
        print(f"The number of alloc retries are: {self._num_alloc_retries}")
        print(f"Top {top} ops that generates memory are:")
        for name, megabytes in largest:
            print(f"{name}: {megabytes}MB")
        print(line)

    def show_traces(self, path: str = "") -> None:
        """Plots the record, or that of a file, with matplotlib."""
        import matplotlib.pyplot as plt

        if path:
            self.load(path)
        series = {
            "allocated_memory": [value for _, value in self.memories_allocated.values()],
            "active_memory": [value for _, value in self.memories_active.values()],
            "reserved_memory": [value for _, value in self.memories_reserved.values()],
        }
        for shown in (list(series), *([name] for name in series)):
            _, axes = plt.subplots()
            for name in shown:
                axes.plot(series[name], label=name)
            for marker, at in self._markers.items():
                axes.axvline(at, color="red" if marker == "fw_bw_boundary" else "black", label=marker)
            axes.set_xlabel("# Operator Calls")
            axes.set_ylabel("Memory (MB)")
            axes.legend()

    def save_stats(self, path: str) -> None:
        stats = {key: getattr(self, attribute) for key, attribute in _FILED.items()}
        Path(path).write_bytes(pickle.dumps(stats))

    def load(self, path: str) -> None:
        stats = pickle.loads(Path(path).read_bytes())
        for key, attribute in _FILED.items():
            setattr(self, attribute, stats[key])
        self._op_index = len(self.memories_allocated)  # what summary() goes through

    def _before(self, name: str, is_root: bool):
        def hook(module, inputs) -> None:
            self._cur_module_name = f"{name}.forward"
            if is_root:
                self._markers["fw_start"] = len(self.memories_allocated)

        return hook

    def _after(self, module, inputs, outputs) -> None:
        self._markers["fw_bw_boundary"] = len(self.memories_allocated)

    def _ran(self, func) -> None:
        row = f"{self._cur_module_name}.{func.__name__}_{self._operator_names[func.__name__]}"
        self._operator_names[func.__name__] += 1
        device = self._device_module
        at = self._op_index
        self.memories_allocated[at] = (row, device.memory_allocated() / _MB)
        self.memories_active[at] = (row, device.memory_stats().get("active_bytes.all.current", 0) / _MB)
        self.memories_reserved[at] = (row, device.memory_reserved() / _MB)
        self._op_index = at + 1
