"""What the operators of every module keep and take, and in which order they are best given up.

Operators are watched here; how they are grouped, ordered and fitted is decided by the library (`tidemark/sac/`), with the rules
of PyTorch's estimator.
"""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import SAC_IGNORED_OPS

from .. import _core
from .._capture.op_facts import facts_of
from ._settings import settings
from .common_utils import get_untyped_storages
from .mem_tracker import _PYTORCH_MIN_ALLOCATE, _rounded, print_table  # noqa: F401
from .mod_tracker import ModTracker
from .runtime_estimator import _active_fake_mode, _time_of

__all__ = ["SACEstimator", "SACStats", "MSPS", "SACTradeOffStats", "SACGreedyOrderMeta"]

# Not counted as operators of a module: those that selective checkpointing does not see, and three more.
OPS_TO_ALWAYS_SKIP = SAC_IGNORED_OPS | {
    torch.ops.aten.clone.default,
    torch.ops.aten.lift_fresh.default,
    torch.ops.profiler._record_function_exit._RecordFunction,
}


@dataclass
class _SACMetadata:
    """An operator as scripts describe it; `inplace_info` is empty, or the operator and the one whose result it changes."""

    func: Any
    time_taken: float
    memory_used: float
    curr_idx: int
    output_ids: tuple[int, ...]
    inplace_info: tuple[int, ...]
    is_view_like: bool
    is_rand_op: bool


@dataclass
class _SACModMetadata:
    """A module as scripts describe it: where its operators begin, and what they are."""

    start_idx: int
    force_store_random: bool
    sac_metadata: list[_SACMetadata]


@dataclass
class SACStats:
    """The operators of a module's forward, in their order; lists of operators hold their positions. In `inplace_ops` a pair is
    an operator and the one whose result it changes: itself when that came from outside."""

    func_names: list[str]
    runtimes: list[float]
    memory: list[int]
    view_like_ops: list[int]
    rand_ops: list[int]
    saved_autograd_ops: list[int]
    inplace_ops: list[tuple[int, int]]
    force_store_random: bool


class MSPS(NamedTuple):
    """Operators that are given up together: bytes, milliseconds, and bytes per millisecond."""

    func_names: set[str]
    op_idx: int
    memory: int
    runtime: float
    msps: float


@dataclass
class SACTradeOffStats:
    """Time over bytes given up, as parts of the module's, and straight lines through it."""

    n_segments: int
    slopes: list[float]
    intercepts: list[float]
    fit_breaks: list[float]
    tradeoff_curve: OrderedDict[float, float]
    sac_memory: int
    sac_runtime: float


@dataclass
class SACGreedyOrderMeta:
    """What is always recomputed, what is always stored, what belongs together, and the rest in greedy order."""

    recomputed_ops: set[int]
    stored_ops: set[int]
    inplace_op_groups: dict[int, set[int]]
    random_ops_group: dict[int, set[int]]
    msps_meta: list[MSPS]


@dataclass
class _Ran:
    """An operator that ran."""

    name: str
    ms: float
    bytes: int
    storages: frozenset[int]
    is_view_like: bool
    is_in_place: bool
    is_random: bool


@dataclass
class _OpenModule:
    start: int
    force_store_random: bool


class SACEstimator(TorchDispatchMode):
    """Watches a forward, inside a FakeTensorMode.

    >>> estimator = SACEstimator()
    >>> with FakeTensorMode():
    ...     ...
    ...     with estimator(estimate_mode_type="operator-level-cost-model"):
    ...         loss = model(x).sum()
    ...     loss.backward()
    >>> estimator.pwlf_sac_tradeoff_curve(n_segments=2)
    >>> estimator.display_modulewise_sac_stats(depth=3, print_tabular=True)

    `sac_mod_stats`, `sac_mod_greedy_order_meta` and `sac_mod_tradeoff_stats` are by module, for those that have modules inside.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sac_mod_stats: dict[str, SACStats] = {}
        self.sac_mod_tradeoff_stats: dict[str, SACTradeOffStats] = {}
        self.sac_mod_greedy_order_meta: dict[str, SACGreedyOrderMeta] = {}
        self._mod_tracker = ModTracker()
        self._time = None
        self._ran: list[_Ran] = []
        self._open: dict[str, _OpenModule] = {}
        self._saved: set[int] = set()
        self._numbers: dict[int, tuple[int, weakref.ref]] = {}
        self._next_number = itertools.count()
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda t: t)

    def __call__(self, estimate_mode_type: str) -> SACEstimator:
        """Chooses "operator-level-cost-model" or "operator-level-benchmark"."""
        self._time = _time_of(estimate_mode_type)
        return self

    def __enter__(self) -> SACEstimator:
        _active_fake_mode("SACEstimator")
        if self._time is None:
            self("operator-level-cost-model")
        self._mod_tracker.register_user_hooks(pre_fw_hook=self._before_forward, post_fw_hook=self._after_forward)
        self._mod_tracker.__enter__()
        self._hooks.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        super().__exit__(*args)
        self._hooks.__exit__(*args)
        self._mod_tracker.__exit__(*args)
        self._mod_tracker.clear_user_hooks()

    # -- watching --

    def _number(self, storage) -> int:
        """A number of its own for every storage; an address is used again once its storage is gone."""
        key = storage._cdata
        known = self._numbers.get(key)
        if known is None:
            known = (next(self._next_number), weakref.ref(storage, lambda _: self._numbers.pop(key, None)))
            self._numbers[key] = known
        return known[0]

    def _pack(self, t: torch.Tensor) -> torch.Tensor:
        self._saved.update(self._number(storage) for storage in get_untyped_storages(t))
        return t

    def _before_forward(self, mod: nn.Module, inputs: Any) -> None:
        if self._mod_tracker.is_bw or next(mod.children(), None) is None:
            return
        given = any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(inputs))
        self._open[self._mod_tracker.get_known_fqn(mod)] = _OpenModule(len(self._ran), not given)

    def _after_forward(self, mod: nn.Module, inputs: Any, outputs: Any) -> None:
        name = self._mod_tracker.get_known_fqn(mod)
        if not self._mod_tracker.is_bw and name in self._open:
            module = self._open.pop(name)
            self.sac_mod_stats[name] = self._stats(self._ran[module.start :], module.force_store_random)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self._mod_tracker.is_bw:
            return result
        facts = facts_of(func)
        family = func._overloadpacket.__name__
        is_view_like, is_in_place, is_skipped = _core.sac_op_traits(family, settings().rules)
        if facts.ignored or is_skipped:
            return result
        tensors = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
        sizes = {}
        for t in tensors:
            for storage in get_untyped_storages(t):
                sizes[self._number(storage)] = _rounded(storage.nbytes(), t.device)
        self._ran.append(
            _Ran(
                name=family,
                ms=self._time(func, args, kwargs, result),
                bytes=0 if is_view_like else sum(sizes.values()),
                storages=frozenset(sizes),
                is_view_like=is_view_like,
                is_in_place=is_in_place,
                is_random=facts.is_random({**dict(zip(facts.names, args)), **kwargs}),
            )
        )
        return result

    def _stats(self, ran: list[_Ran], force_store_random: bool) -> SACStats:
        in_place = []
        for position, op in enumerate(ran):
            if op.is_in_place:
                makers = (i for i in range(position) if op.storages and op.storages <= ran[i].storages)
                in_place.append((position, next(makers, position)))
        stats = SACStats(
            func_names=[op.name for op in ran],
            runtimes=[op.ms for op in ran],
            memory=[op.bytes for op in ran],
            view_like_ops=[i for i, op in enumerate(ran) if op.is_view_like],
            rand_ops=[i for i, op in enumerate(ran) if op.is_random],
            saved_autograd_ops=[i for i, op in enumerate(ran) if op.storages and op.storages <= self._saved],
            inplace_ops=in_place,
            force_store_random=force_store_random,
        )
        stats.memory = _core.sac_bytes_without_result(rows_of(stats))
        return stats

    # -- what follows from it --

    def pwlf_sac_tradeoff_curve(self, n_segments: int = 2, save_tradeoff_graphs: bool = False) -> None:
        """Fills in the greedy orders and the trade-offs of all modules. `n_segments` is 1 or 2; graphs are saved as
        MODULE_ac_tradeoff.png, by matplotlib."""
        if n_segments not in (1, 2):
            raise ValueError(f"a trade-off is fitted by 1 or 2 segments, not {n_segments!r}")
        for name, stats in self.sac_mod_stats.items():
            self.sac_mod_greedy_order_meta[name] = greedy_order_of(stats)
            self.sac_mod_tradeoff_stats[name] = trade_off_of(stats, n_segments)
            if save_tradeoff_graphs:
                _save_graph(self.sac_mod_tradeoff_stats[name], f"{name}_ac_tradeoff")

    def display_sac_stats(self, sac_stats: SACStats, print_tabular: bool = False) -> None:
        """Prints the operators of a module."""
        print(
            f"Total Memory: {sum(sac_stats.memory)} B Total Runtime: {sum(sac_stats.runtimes)} ms "
            f"Store Random: {sac_stats.force_store_random}"
        )
        heads = dict(sac_stats.inplace_ops)
        header = ["Op Idx", "Op Name", "Runtimes (ms)", "Memory (B)", "View-like", "Random", "Saved Autograd", "In-place"]
        rows = [
            [i, name, f"{ms:.4f}", size, i in sac_stats.view_like_ops, i in sac_stats.rand_ops]
            + [i in sac_stats.saved_autograd_ops, heads.get(i)]
            for i, (name, ms, size) in enumerate(zip(sac_stats.func_names, sac_stats.runtimes, sac_stats.memory))
        ]
        _show(header, rows, print_tabular)

    def display_sac_tradeoff_stats(
        self, greedy_order_meta: SACGreedyOrderMeta, sac_stats: SACStats, print_tabular: bool = False
    ) -> None:
        """Prints a module's groups in greedy order, added up; before them what is always recomputed, after them what is always
        stored."""
        meta = greedy_order_meta
        all_bytes, all_ms = sum(sac_stats.memory), sum(sac_stats.runtimes)
        rows = []
        bytes_, ms = 0, 0.0

        def add(ops: set[int], score: str, stored: bool, recomputed: bool) -> None:
            nonlocal bytes_, ms
            bytes_ += sum(sac_stats.memory[i] for i in ops)
            ms += sum(sac_stats.runtimes[i] for i in ops)
            parts = (f"{bytes_ / all_bytes if all_bytes else 0:.4f}", bytes_, f"{ms / all_ms if all_ms else 0:.4f}", ms)
            rows.append([sorted(ops), sorted({sac_stats.func_names[i] for i in ops}), *parts, score, stored, recomputed])

        def members(head: int) -> set[int]:
            return {head} | meta.inplace_op_groups.get(head, set()) | meta.random_ops_group.get(head, set())

        if meta.recomputed_ops:
            add(meta.recomputed_ops, "", False, True)
        for group in meta.msps_meta:
            add(members(group.op_idx), f"{group.msps:.2e}", False, False)
        for head in sorted(meta.stored_ops):
            add(members(head), "", True, False)
        header = ["Op Id(s)", "Op Name(s)", "Discarded Mem (%)", "Discarded Mem (B)", "Recomp time (%)", "Recomp time (ms)"]
        _show([*header, "MSPS", "Always Stored", "Always Recomputed"], rows, print_tabular)

    def display_modulewise_sac_stats(self, depth: int = 2, print_tabular: bool = False) -> None:
        """Prints both for modules at most `depth` names deep; the root's name is one."""
        for name, stats in sorted(self.sac_mod_stats.items()):
            if name.count(".") + 1 > depth:
                continue
            print(f"Module: {name}")
            self.display_sac_stats(stats, print_tabular)
            meta = self.sac_mod_greedy_order_meta.get(name)
            if meta is None:
                meta = self.sac_mod_greedy_order_meta[name] = greedy_order_of(stats)
            print("AC Trade-off for Module:", name)
            self.display_sac_tradeoff_stats(meta, stats, print_tabular)


def rows_of(stats: SACStats) -> list[tuple]:
    """The operators as the library takes them."""
    heads = dict(stats.inplace_ops)
    views, random, saved = set(stats.view_like_ops), set(stats.rand_ops), set(stats.saved_autograd_ops)
    return [
        (name, float(ms), int(size), i in views, i in random, i in saved, heads.get(i))
        for i, (name, ms, size) in enumerate(zip(stats.func_names, stats.runtimes, stats.memory))
    ]


def greedy_order_of(stats: SACStats) -> SACGreedyOrderMeta:
    order = _core.sac_greedy_order(rows_of(stats), stats.force_store_random, settings().rules)
    in_place: dict[int, set[int]] = {}
    for op, head in stats.inplace_ops:
        in_place.setdefault(head, {head}).add(op)
    random = {min(stats.rand_ops): set(stats.rand_ops)} if stats.rand_ops else {}
    return SACGreedyOrderMeta(
        recomputed_ops=set(order["recomputed"]),
        stored_ops={op for op in order["stored"] if op in in_place or op in random},
        inplace_op_groups=in_place,
        random_ops_group=random,
        msps_meta=[
            MSPS({stats.func_names[i] for i in members}, head, size, ms, score)
            for head, members, size, ms, score in order["candidates"]
        ],
    )


def trade_off_of(stats: SACStats, n_segments: int = 2) -> SACTradeOffStats:
    found = _core.sac_trade_off(rows_of(stats), stats.force_store_random, settings().rules, n_segments)
    return SACTradeOffStats(
        n_segments=len(found["slopes"]),
        slopes=found["slopes"],
        intercepts=found["intercepts"],
        fit_breaks=found["breaks"],
        tradeoff_curve=OrderedDict(found["curve"]),
        sac_memory=sum(stats.memory),
        sac_runtime=sum(stats.runtimes),
    )


def _show(header: list[str], rows: list[list], tabular: bool) -> None:
    if tabular:
        print_table(header, rows)
        return
    print("\t".join(header))
    for row in rows:
        print("\t".join(str(cell) for cell in row))


def _save_graph(stats: SACTradeOffStats, name: str) -> None:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("graphs are drawn by matplotlib, which is not installed: pip install matplotlib") from error
    figure, axes = pyplot.subplots()
    axes.plot(list(stats.tradeoff_curve), list(stats.tradeoff_curve.values()), "o")
    for i in range(stats.n_segments):
        ends = stats.fit_breaks[i : i + 2]
        axes.plot(ends, [stats.slopes[i] * x + stats.intercepts[i] for x in ends])
    axes.set_xlabel("part of the bytes that is given up")
    axes.set_ylabel("part of the time that is run again")
    figure.savefig(f"{name}.png")
    pyplot.close(figure)
