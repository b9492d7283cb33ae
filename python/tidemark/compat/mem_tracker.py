"""Live bytes by device and category, and snapshots of them for every module, while a training loop runs.

What is counted and when is that of PyTorch's tracker; `docs/compat.md` lists where it differs on purpose. The same figures
come from a recorded step without running anything (`tidemark.ReferenceTracker`).
"""

from __future__ import annotations

import copy
import enum
import re
import weakref
from typing import Any

import torch
from torch import nn, optim
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from .common_utils import get_untyped_storages
from .mod_tracker import ModTracker

__all__ = ["MemTracker"]

_TOTAL_KEY = "Total"
_PYTORCH_MIN_ALLOCATE = 512
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_WAIT = "_c10d_functional.wait_tensor.default"


class _RefType(str, enum.Enum):
    """What a storage is for."""


class _State(str, enum.Enum):
    """When a snapshot was taken."""


class _MemRefType(_RefType):
    PARAM = "Parameter"
    BUFFER = "Buffer"
    GRAD = "Gradient"
    ACT = "Activation"
    TEMP = "Temp"
    OPT = "Optstate"
    OTH = "Other"


class _ModState(_State):
    PRE_FW = "Pre-Forward"
    POST_FW = "Post-Forward"
    PEAK_FW = "Peak-Forward"
    PRE_BW = "Pre-Backward"
    PRE_FW_AC = "Pre-Forward-AC"
    POST_FW_AC = "Post-Forward-AC"
    POST_BW = "Post-Backward"
    PEAK_BW = "Peak-Backward"


class _UpdateType(enum.Enum):
    """Why a snapshot changes: a storage came, went, got another category, or another size."""

    ADD = enum.auto()
    DEL = enum.auto()
    REF = enum.auto()
    SIZE = enum.auto()


_Snapshot = dict  # device: {category: bytes, "Total": bytes}


class _ModMemStats:
    """What is known of a module: bytes, and the snapshots of each state, one per call."""

    def __init__(self, mod_fqn: str):
        self.mod_fqn = mod_fqn
        self.parameter_mem = 0
        self.buffer_mem = 0
        self.input_mem = 0
        self.output_mem = 0
        self.local_peak: dict[torch.device, int] = {}
        self.snapshots: dict[_ModState, list[_Snapshot]] = {}


class _Followed(weakref.ref):
    """A storage that is counted."""

    __slots__ = ("key", "device", "kind", "bytes")

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class MemTracker(TorchDispatchMode):
    """Counts memory while it is open.

    >>> tracker = MemTracker()
    >>> tracker.track_external(model, optimizer)
    >>> with tracker:
    ...     loss = model(x).sum()
    ...     loss.backward()
    ...     optimizer.step()
    >>> tracker.display_snapshot("peak", units="MiB")
    >>> tracker.display_modulewise_snapshots(depth=2, units="MiB")

    Run one step, then `reset_mod_stats()`, then the step that is looked at: in the first one the optimizer has no state.
    """

    def __init__(self) -> None:
        super().__init__()
        self.memory_tracking: weakref.WeakKeyDictionary[nn.Module, _ModMemStats] = weakref.WeakKeyDictionary()
        self._mod_tracker = ModTracker()
        self._followed: dict[int, _Followed] = {}
        self._now: _Snapshot = {}
        self._peak: _Snapshot = {}
        self._peak_total: dict[torch.device, int] = {}
        self._in_optimizer = False
        self._recomputed = None  # the outermost module that runs again in backward
        self._gradient_hooks = WeakIdKeyDictionary()  # by parameter
        self._optimizer_hooks: list = []
        self._resize = None
        self._depth = 0

    # -- storages --

    def _change(self, device: torch.device, kind: _RefType, more: int) -> None:
        counts = self._now.get(device)
        if counts is None:
            counts = self._now[device] = {**dict.fromkeys(_MemRefType, 0), _TOTAL_KEY: 0}
        counts[kind] += more
        counts[_TOTAL_KEY] += more

    def _died(self, ref: _Followed) -> None:
        if self._followed.get(ref.key) is ref:
            del self._followed[ref.key]
            self._change(ref.device, ref.kind, -ref.bytes)

    def _set_size(self, ref: _Followed, storage) -> None:
        size = _rounded(storage.nbytes(), ref.device)
        if size != ref.bytes:
            self._change(ref.device, ref.kind, size - ref.bytes)
            ref.bytes = size

    def _follow(self, t: torch.Tensor, kind: _RefType, recategorize: bool = True) -> list[_Followed]:
        """Counts the storages of a tensor, each by itself: that one is known says nothing of the others."""
        refs = []
        for storage in get_untyped_storages(t):
            ref = self._followed.get(storage._cdata)
            if ref is None:
                ref = _Followed(storage, self._died)
                ref.key, ref.device, ref.kind = storage._cdata, t.device, kind
                ref.bytes = _rounded(storage.nbytes(), t.device)
                self._followed[ref.key] = ref
                if ref.bytes > 0:
                    self._change(ref.device, kind, ref.bytes)
            else:
                self._set_size(ref, storage)
                if recategorize and ref.kind != kind:
                    self._change(ref.device, ref.kind, -ref.bytes)
                    self._change(ref.device, kind, ref.bytes)
                    ref.kind = kind
            refs.append(ref)
        return refs

    def _followed_bytes(self, values: Any) -> int:
        """Bytes of those storages of what a module is given or returns that are counted already."""
        refs = {}
        for t in tree_leaves(values):
            if isinstance(t, torch.Tensor):
                for storage in get_untyped_storages(t):
                    if storage._cdata in self._followed:
                        refs[storage._cdata] = self._followed[storage._cdata].bytes
        return sum(refs.values())

    # -- modules --

    def _follow_module(self, module: nn.Module, hook_gradients: bool) -> tuple[int, int]:
        sizes = []
        for tensors, kind in ((module.parameters(), _MemRefType.PARAM), (module.buffers(), _MemRefType.BUFFER)):
            refs = {}
            for t in tensors:
                for ref in self._follow(t, kind):
                    refs[ref.key] = ref.bytes
                if kind is _MemRefType.PARAM:
                    if t.grad is not None:
                        self._follow(t.grad, _MemRefType.GRAD)
                    if hook_gradients and t.requires_grad and t not in self._gradient_hooks:
                        self._hook_gradient(t)
            sizes.append(sum(refs.values()))
        return sizes[0], sizes[1]

    def _hook_gradient(self, parameter) -> None:
        def computed(gradient):
            self._follow(gradient, _MemRefType.GRAD)

        def accumulated(p):
            if p.grad is not None:
                self._follow(p.grad, _MemRefType.GRAD)

        self._gradient_hooks[parameter] = (
            parameter.register_hook(computed),
            parameter.register_post_accumulate_grad_hook(accumulated),
        )

    def _snapshot(self, stats: _ModMemStats, state: _ModState) -> None:
        stats.snapshots.setdefault(state, []).append(copy.deepcopy(self._now))

    def _start_peak(self, stats: _ModMemStats, state: _ModState) -> None:
        stats.local_peak = {device: counts[_TOTAL_KEY] for device, counts in self._now.items()}
        self._snapshot(stats, state)

    def _before_forward(self, module: nn.Module, inputs: Any) -> None:
        stats = self.memory_tracking.get(module)
        if self._mod_tracker.is_bw:
            if self._recomputed is None:
                self._recomputed = weakref.ref(module)
            if stats is not None:
                self._snapshot(stats, _ModState.PRE_FW_AC)
            return
        name = self._mod_tracker.get_known_fqn(module)
        if stats is None:
            stats = self.memory_tracking[module] = _ModMemStats(name)
            stats.parameter_mem, stats.buffer_mem = self._follow_module(module, True)
        elif self._mod_tracker.parents - {name} == {"Global"}:
            raise NotImplementedError(
                f"{name} is run a second time; the statistics are those of one iteration: call reset_mod_stats() between two"
            )
        stats.mod_fqn = name
        stats.input_mem = self._followed_bytes(inputs)
        self._start_peak(stats, _ModState.PEAK_FW)
        self._snapshot(stats, _ModState.PRE_FW)

    def _after_forward(self, module: nn.Module, inputs: Any, outputs: Any) -> None:
        stats = self.memory_tracking.get(module)
        if self._mod_tracker.is_bw:
            if stats is not None:
                self._snapshot(stats, _ModState.POST_FW_AC)
            if self._recomputed is not None and self._recomputed() is module:
                self._recomputed = None
            return
        if stats is not None:
            stats.output_mem = self._followed_bytes(outputs)
            self._snapshot(stats, _ModState.POST_FW)

    def _before_backward(self, module: nn.Module | None, args: Any) -> None:
        stats = self.memory_tracking.get(module) if module is not None else None
        if stats is not None:
            self._start_peak(stats, _ModState.PEAK_BW)
            self._snapshot(stats, _ModState.PRE_BW)

    def _after_backward(self, module: nn.Module | None, args: Any) -> None:
        stats = self.memory_tracking.get(module) if module is not None else None
        if stats is not None:
            self._snapshot(stats, _ModState.POST_BW)

    def _look_for_peaks(self) -> None:
        for device, counts in self._now.items():
            if self._peak_total.get(device, 0) < counts[_TOTAL_KEY]:
                self._peak_total[device] = counts[_TOTAL_KEY]
                self._peak[device] = counts.copy()
        state = _ModState.PEAK_BW if self._mod_tracker.is_bw else _ModState.PEAK_FW
        parents = self._mod_tracker.parents
        for stats in self.memory_tracking.values():
            if stats.mod_fqn in parents and state in stats.snapshots:
                last = stats.snapshots[state][-1]
                for device, counts in self._now.items():
                    if stats.local_peak.get(device, 0) < counts[_TOTAL_KEY]:
                        stats.local_peak[device] = counts[_TOTAL_KEY]
                        last[device] = counts.copy()

    # -- optimizers --

    def _follow_states(self, optimizer: optim.Optimizer) -> None:
        for states in optimizer.state.values():
            for t in states.values():
                if isinstance(t, torch.Tensor):
                    self._follow(t, _MemRefType.OPT)

    def _hook_optimizers(self) -> None:
        def before(optimizer, args, kwargs):
            self._in_optimizer = True

        def after(optimizer, args, kwargs):
            self._follow_states(optimizer)
            self._in_optimizer = False

        self._optimizer_hooks = [register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)]

    # -- the user's side --

    def track_external(self, *external: nn.Module | optim.Optimizer | torch.Tensor) -> None:
        """Counts what was made before the tracker was opened: modules, optimizers, tensors; None is passed over."""
        for thing in tree_leaves(external):
            if isinstance(thing, torch.Tensor):
                self._follow(thing, _MemRefType.OTH)
            elif isinstance(thing, nn.Module):
                self._follow_module(thing, False)
            elif isinstance(thing, optim.Optimizer):
                self._follow_states(thing)
            elif thing is not None:
                raise TypeError(f"a {type(thing).__name__} cannot be tracked; expected a module, an optimizer or a tensor")

    def get_tracker_snapshot(self, type: str = "current") -> dict[torch.device, dict[str, int]]:
        """Bytes by device and category: now ("current"), or when the device held most ("peak")."""
        if type == "current":
            return copy.deepcopy(self._now)
        if type == "peak":
            return copy.deepcopy(self._peak)
        raise ValueError(f'the snapshot is "current" or "peak", not {type!r}')

    def display_snapshot(self, type: str = "current", units: str = "B", tabulate: bool = False) -> None:
        """Prints a snapshot; units are B, KiB, MiB or GiB."""
        _print_snapshot(self.get_tracker_snapshot(type), units, tabulate)

    def display_modulewise_snapshots(self, depth: int = 2, units: str = "B", tabulate: bool = False) -> None:
        """Prints what every module's states held, for modules at most `depth` names deep; the root's name is one."""
        for stats in sorted(self.memory_tracking.values(), key=lambda stats: _natural(stats.mod_fqn)):
            if stats.mod_fqn.count(".") + 1 > depth:
                continue
            print(f"Module: {stats.mod_fqn}")
            _print_state_snapshots(stats.snapshots, units, tabulate)

    def reset_mod_stats(self) -> None:
        """Forgets what is known of modules, not what is counted; between two iterations."""
        self.memory_tracking.clear()

    # -- opening and closing --

    def __enter__(self) -> MemTracker:
        if self._depth == 0:
            self._hook_optimizers()
            self._mod_tracker.register_user_hooks(
                self._before_forward, self._after_forward, self._before_backward, self._after_backward
            )
            self._watch_resizing()
            self._peak = copy.deepcopy(self._now)
            self._peak_total = {device: counts[_TOTAL_KEY] for device, counts in self._now.items()}
            self._mod_tracker.__enter__()
        self._depth += 1
        super().__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            for handle in self._optimizer_hooks:
                handle.remove()
            for handles in self._gradient_hooks.values():
                for handle in handles:
                    handle.remove()
            self._gradient_hooks.clear()
            self._mod_tracker.clear_user_hooks()
            torch.UntypedStorage.resize_ = self._resize
            self._mod_tracker.__exit__(*args)
        super().__exit__(*args)

    def _watch_resizing(self) -> None:
        """A storage is resized without any op."""
        resize = self._resize = torch.UntypedStorage.resize_
        followed = self._followed

        def resized(storage, size):
            resize(storage, size)
            ref = followed.get(storage._cdata)
            if ref is not None:
                self._set_size(ref, storage)

        torch.UntypedStorage.resize_ = resized

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if str(func) == _WAIT and torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None:
            result = args[0]  # the fake version would make a tensor
        else:
            result = func(*args, **kwargs)
        if func is torch.ops.prim.device.default:
            return result
        if self._in_optimizer:
            kind = _MemRefType.OPT
        elif self._mod_tracker.is_bw and self._recomputed is None:
            kind = _MemRefType.TEMP
        else:
            kind = _MemRefType.ACT
        for t in tree_leaves(result):
            if isinstance(t, torch.Tensor):
                self._follow(t, kind, recategorize=False)
        self._look_for_peaks()
        return result


def _rounded(size: int, device: torch.device) -> int:
    """As CUDA's allocator does."""
    if device.type != "cuda":
        return size
    return -(-size // _PYTORCH_MIN_ALLOCATE) * _PYTORCH_MIN_ALLOCATE


def _divisor(units: str) -> int:
    if units not in _UNITS:
        raise ValueError(f"units are one of {', '.join(_UNITS)}, not {units!r}")
    return _UNITS[units]


def _amount(size: int, units: str, divisor: int) -> str:
    return f"{size} B" if divisor == 1 else f"{size / divisor:.2f} {units}"


def _print_rows(rows, units: str, divisor: int, tabulate: bool) -> None:
    """Devices that hold nothing are left out."""
    if tabulate:
        header = ["State", "Device", *(kind.value for kind in _MemRefType), _TOTAL_KEY]
        table = [
            [label, str(device), *(_amount(size, units, divisor) for size in counts.values())]
            for label, snapshot in rows
            for device, counts in snapshot.items()
            if counts[_TOTAL_KEY] > 0
        ]
        print_table(header, table)
        return
    for label, snapshot in rows:
        if label:
            print(label)
        for device, counts in snapshot.items():
            if counts[_TOTAL_KEY] > 0:
                print(f"Device: {device}")
                for kind, size in counts.items():
                    print(f"\t{kind.value if isinstance(kind, _RefType) else kind}: {_amount(size, units, divisor)}")


# The names under which scripts call these.
_get_mem_divisor = _divisor


def _rounding_fn(value: int, divisor: int, precision: int) -> float | int:
    return round(value / divisor, precision) if divisor > 1 else value


def _print_snapshot(snapshot: _Snapshot, units: str, tabulate: bool = False) -> None:
    divisor = _divisor(units)
    if snapshot:
        _print_rows([("", snapshot)], units, divisor, tabulate)
    else:
        print("No memory tracked.")


def _print_snapshot_tabular(snapshot: _Snapshot, units: str) -> None:
    _print_snapshot(snapshot, units, tabulate=True)


def _print_state_snapshots(snapshots: dict[_State, list[_Snapshot]], units: str, tabulate: bool = False) -> None:
    _print_rows(_rows_of(snapshots), units, _divisor(units), tabulate)


def _print_state_snapshots_tabular(snapshots: dict[_State, list[_Snapshot]], units: str) -> None:
    _print_state_snapshots(snapshots, units, tabulate=True)


def _rows_of(snapshots: dict[_State, list[_Snapshot]]) -> list:
    return [(f"{state.value} #{number}", snapshot) for state, listed in snapshots.items() for number, snapshot in enumerate(listed, 1)]


def print_table(header: list[str], rows: list[list[Any]]) -> None:
    """Columns as wide as what is in them."""
    lines = [header, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def _natural(text: str) -> list:
    """Sorts layers.2 before layers.10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", text)]
