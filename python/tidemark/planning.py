"""The cheapest plan under a budget.

    result = tidemark.plan(step, budget="8GB", device="cpu")
    result.plan.apply(model)
"""

from __future__ import annotations

from typing import Sequence

from . import _core
from ._core import Device, PlanResult, Step, WorkspaceTable


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
) -> PlanResult:
    """Finds the cheapest plan whose peak stays within `budget`: "8GB", "70GiB", "90%" of the device's memory, or bytes.

    device: whose times count, by name, by the path of a device file, or as a Device. "cpu" stands for a machine like this
    one, with modelled times; `tidemark.calibrate` writes a file with measured ones.
    reserve: of the budget, not for tensors; by default the device's overhead.
    against: which bytes the budget is about: "exact" (default on a CPU), "rounded" (default elsewhere) or "reserved".
    workspace: by default the step's own; an empty WorkspaceTable() stands for none.
    early_stop: end a recompute at the last tensor that is needed. rng: keep the random state "when_needed", "always" or
    "never".
    units, not_units: patterns over module names ("layers.*.mlp"): only, or never, checkpoint these.
    always_save, never_save: patterns "MODULE::OP" or "OP": never, or always, recompute these where their module is
    checkpointed.
    max_work: when the search stops, in entries; twenty million take about a second.

    What the search concluded is data: see `PlanResult.termination`. Plans are checked before they are returned.
    """
    if isinstance(device, str):
        device = _core.find_device(device)
    if isinstance(budget, bool) or not isinstance(budget, (str, int)):
        _core.fail("budget", "this is no budget", expected='a number of bytes, or a text such as "8GB" or "90%"', got=repr(budget))
    if reserve is None:
        reserve_bytes = device.overhead_bytes
    else:
        reserve_bytes = _core.parse_bytes(reserve, "reserve") if isinstance(reserve, str) else reserve
    return _core.plan_step(
        step,
        _core.parse_budget(budget, "budget").bytes_on(device.memory_bytes),
        device,
        reserve_bytes=reserve_bytes,
        against=against or ("exact" if device.kind == "cpu" else "rounded"),
        workspace=workspace if workspace is not None else getattr(step, "workspace", None),
        early_stop=early_stop,
        rng=rng.replace("-", "_"),
        units=list(units),
        not_units=list(not_units),
        always_save=list(always_save),
        never_save=list(never_save),
        max_work=max_work,
        ranks=ranks,
    )
