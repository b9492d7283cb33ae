"""Plans at work: `plan.apply(model)`, and taking it back, auditing, and all in one line.

    result = tidemark.plan(step, budget="8GB", device="cpu")
    result.plan.apply(model)                # train as before, under the budget
    print(tidemark.audit(step_fn, model))   # what ran, against the plan
    tidemark.remove(model)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    import torch

    from ._apply.audit import Audit
    from ._core import Device, Plan, PlanResult


def remove(model: torch.nn.Module) -> bool:
    """Takes a plan back: the model runs as it did before. Whether there was one."""
    from ._apply.apply import remove

    return remove(model)


def audit(step_fn: Callable[[], Any], model: torch.nn.Module, plan: Plan | None = None) -> Audit:
    """Runs real steps under the plan and reports, unit by unit, what ran against what was planned, and the measured peak
    against the predicted one. `str()` of the result is a table; it also has `units`, `agrees` and `to_json()`.

    step_fn: one whole training step; it is called three times, twice to measure memory and once to count ops.
    plan: may be left out when it is applied to the model already; otherwise it is applied for as long as the audit lasts.
    """
    from ._apply.audit import audit

    return audit(step_fn, model, plan)


def fit(
    step_fn: Callable[[], Any],
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    budget: str | int = "90%",
    device: str | Device | None = None,
    *,
    progress: bool | None = None,
    **options: Any,
) -> PlanResult:
    """Captures a step, finds the cheapest plan within `budget`, checks it, applies it, and prints what it did.

    Raises Error with the smallest reachable budget when no plan fits. device: by default the machine at hand. progress: say
    on stderr what is going on; by default when it is a terminal. Other options are those of `tidemark.plan`.
    """
    from ._apply.fit import fit

    return fit(step_fn, model, optimizer, budget, device, progress, options)


def check_ranks(plan: Plan, group: Any = None) -> None:
    """Raises Error unless all ranks of torch.distributed (or of `group`) hold the same plan. `plan.apply` does this by
    itself for the default group."""
    from ._apply.ranks import check_if_distributed

    check_if_distributed(plan.hash, group)
