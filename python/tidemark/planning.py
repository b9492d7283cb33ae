"""The cheapest plan under a budget, and what it costs at least for every budget.

    result = tidemark.plan(step, budget="8GB", device="cpu")
    result.plan.apply(model)
    print(result.explain())
    tidemark.frontier(step, "h100").points
"""

from __future__ import annotations

import operator
from typing import Iterable, Sequence

from . import _core, _highs
from ._core import Device, Frontier, PlanResult, SearchOptions, Step, WorkspaceTable

UNSEEN_BYTES = 4096  # numbers that become tensors below every hook: 8 to 64 bytes were measured


_MOST_BYTES = 1 << 62
_MOST_BUDGETS = 65_536


def plan(
    step: Step,
    budget: str | int,
    device: str | Device = "cpu",
    *,
    reserve: str | int | None = None,
    against: str | None = None,
    workspace: WorkspaceTable | None = None,
    early_stop: bool = True,
    rng: str = "when_needed",
    units: Sequence[str] = (),
    not_units: Sequence[str] = (),
    always_save: Sequence[str] = (),
    never_save: Sequence[str] = (),
    max_work: int = 60_000_000,
    ranks: int = 1,
    ranks_per_node: int = 0,
    method: str = "exact",
    highs: str | None = None,
) -> PlanResult:
    """Finds the cheapest plan whose peak stays within `budget`: "8GB", "70GiB", "90%" of the device's memory, or bytes.

    device: whose times count, by name, by the path of a device file, or as a Device. "cpu" stands for a machine like this
    one, with modelled times; `tidemark.calibrate` writes a file with measured ones.
    reserve: of the budget, not for tensors; by default the device's overhead, and 4 KiB for a captured step on a CPU, for numbers
    that PyTorch allocates where no hook sees them.
    against: which bytes the budget is about: "exact" (default on a CPU), "rounded" (default elsewhere) or "reserved".
    workspace: by default the step's own; an empty WorkspaceTable() stands for none.
    early_stop: end a recompute at the last tensor that is needed. rng: keep the random state "when_needed", "always" or
    "never".
    units, not_units: patterns over module names ("layers.*.mlp"): only, or never, checkpoint these.
    always_save, never_save: patterns "MODULE::OP" or "OP": never, or always, recompute these where their module is
    checkpointed.
    max_work: when the search stops, in entries; twenty million take about a second.
    ranks: how many devices take part in the step's collectives; ranks_per_node: of them in each node (0: all in one).
    method: "exact", or another one to compare it with: "greedy", "milp", "exact-milp", "reference-policy", "knapsack"
    (docs/methods.md). highs: the library of the solver HiGHS, for "milp" and "exact-milp"; by default that of the
    package highsbox, or the system's.

    What the search concluded is data: see `PlanResult.termination`. Plans are checked before they are returned.
    """
    _check_step(step)
    device = find_device(device)
    if isinstance(budget, bool) or not isinstance(budget, (str, int)) or (isinstance(budget, int) and not 0 < budget < _MOST_BYTES):
        _core.fail("budget", "this is no budget", expected='a number of bytes, or a text such as "8GB" or "90%"', got=repr(budget))
    budget_bytes = _core.parse_budget(budget, "budget").bytes_on(device.memory_bytes)
    if reserve is None and _has_unseen(step, device):  # too little for any step, and not worth an error of its own
        budget_bytes = max(budget_bytes, device.overhead_bytes + UNSEEN_BYTES + 1)
    return _core.plan_step(
        step,
        budget_bytes,
        device,
        _options(step, device, reserve, against, workspace, early_stop, rng, units, not_units, always_save, never_save, ranks, ranks_per_node),
        max_work=_count("max_work", max_work, 0),
        method=method,
        highs=_highs.places(highs),
    )


def frontier(
    step: Step,
    device: str | Device = "cpu",
    *,
    budgets: int = 64,
    full: bool = False,
    reserve: str | int | None = None,
    against: str | None = None,
    workspace: WorkspaceTable | None = None,
    early_stop: bool = True,
    rng: str = "when_needed",
    units: Sequence[str] = (),
    not_units: Sequence[str] = (),
    always_save: Sequence[str] = (),
    never_save: Sequence[str] = (),
    max_work: int | None = None,
    ranks: int = 1,
    ranks_per_node: int = 0,
) -> Frontier:
    """Finds what recomputing costs at least, for `budgets` budgets from the smallest possible to that without a plan.

    full: every breakpoint instead, where the least time changes; `Frontier.missing` says what the work limit left out.
    max_work: for all budgets together, in entries and replayed events; by default 100 million, with `full` 500 million.
    The other options are those of `tidemark.plan`.
    """
    _check_step(step)
    device = find_device(device)
    return _core.find_frontier(
        step,
        device,
        _options(step, device, reserve, against, workspace, early_stop, rng, units, not_units, always_save, never_save, ranks, ranks_per_node),
        budgets=_count("budgets", budgets, 2, _MOST_BUDGETS),
        full=full,
        max_work=0 if max_work is None else _count("max_work", max_work, 1),
    )


def find_device(device: str | Device) -> Device:
    if isinstance(device, Device):
        return device
    if not isinstance(device, str):
        _core.fail("device", "this is no device", expected="a name of tidemark.devices(), a device file, or a Device", got=repr(device))
    return _core.find_device(device)


def _check_step(step: Step) -> None:
    if not isinstance(step, Step):
        _core.fail(
            "step",
            "this is no step",
            expected="a tidemark.Step",
            got=repr(step),
            remedy='tidemark.capture(...) records one, tidemark.native("gpt2") makes one of a built-in model, tidemark.Step.load(path) reads one',
        )


def _patterns(place: str, patterns: Sequence[str]) -> list[str]:
    if isinstance(patterns, str):
        return [patterns]
    listed = list(patterns) if isinstance(patterns, Iterable) else [patterns]
    if not all(isinstance(pattern, str) for pattern in listed):
        _core.fail(place, "these are no patterns", expected='texts such as "layers.*.mlp"', got=repr(patterns))
    return listed


def _count(place: str, value: int, least: int, most: int = _MOST_BYTES) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= operator.index(value) <= most:
        _core.fail(place, "this is no count", expected=f"a whole number from {least} " + (f"to {most}" if most < _MOST_BYTES else "on"), got=repr(value))
    return operator.index(value)


def _has_unseen(step: Step, device: Device) -> bool:
    """Whether the step was captured, for a CPU: then its plan is held against what PyTorch's allocator does there."""
    return device.kind == "cpu" and getattr(step, "workspace", None) is not None


def _options(
    step: Step,
    device: Device,
    reserve: str | int | None,
    against: str | None,
    workspace: WorkspaceTable | None,
    early_stop: bool,
    rng: str,
    units: Sequence[str],
    not_units: Sequence[str],
    always_save: Sequence[str],
    never_save: Sequence[str],
    ranks: int,
    ranks_per_node: int,
) -> SearchOptions:
    if not isinstance(rng, str):
        _core.fail("rng", "this is no rule", expected='"when_needed", "always" or "never"', got=repr(rng))
    if workspace is not None and not isinstance(workspace, WorkspaceTable):
        _core.fail("workspace", "this is no table", expected="a tidemark.WorkspaceTable, or None for the step's own", got=repr(workspace))
    if reserve is None:
        reserve = device.overhead_bytes + (UNSEEN_BYTES if _has_unseen(step, device) else 0)
    return SearchOptions(
        reserve_bytes=_core.parse_bytes(reserve, "reserve") if isinstance(reserve, str) else _count("reserve", reserve, 0),
        against=against or ("exact" if device.kind == "cpu" else "rounded"),
        workspace=workspace if workspace is not None else getattr(step, "workspace", None),
        early_stop=early_stop,
        rng=rng.replace("-", "_"),
        units=_patterns("units", units),
        not_units=_patterns("not_units", not_units),
        always_save=_patterns("always_save", always_save),
        never_save=_patterns("never_save", never_save),
        ranks=_count("ranks", ranks, 1),
        ranks_per_node=_count("ranks_per_node", ranks_per_node, 0),
    )
