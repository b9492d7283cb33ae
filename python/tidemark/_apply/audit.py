"""Running a step and comparing it with its plan."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from .. import _core
from . import measured
from .apply import apply, find, remove
from .tally import Tallies
from .words import listed

_A_FEW_NUMBERS = 4096  # bytes: scalars that no hook sees


@dataclass(frozen=True)
class UnitAudit:
    """One checkpointed module call: what ran, and what the plan says."""

    module: str
    micro_batch: int
    call: int
    forwards: int
    recomputes: int
    ops: int
    planned_ops: int
    recomputed_ops: int
    planned_recomputed_ops: int
    saved_ops: int  # whose results the recompute took
    planned_saved_ops: int
    collectives: int
    recomputed_collectives: int

    @property
    def agrees(self) -> bool:
        return (
            self.forwards == 1
            and self.recomputes == 1
            and self.ops == self.planned_ops
            and self.recomputed_ops == self.planned_recomputed_ops
            and self.saved_ops == self.planned_saved_ops
        )


@dataclass(frozen=True)
class Audit:
    """What a step did under a plan; `str()` is a table, `to_json()` the same for programs."""

    units: list[UnitAudit] = field(default_factory=list)
    device: str = "cpu"
    budget_bytes: int = 0
    start_bytes: int = 0  # predicted
    predicted_peak_bytes: int = 0
    measured_start_bytes: int = 0  # what was there when the step began
    measured_growth_bytes: int = 0  # the peak less that
    unpriced: tuple[tuple[str, int, int], ...] = ()  # (name, count, bytes): planned to run again, and in no time that was predicted

    @property
    def predicted_growth_bytes(self) -> int:
        return self.predicted_peak_bytes - self.start_bytes

    @property
    def measured_peak_bytes(self) -> int:
        return self.measured_start_bytes + self.measured_growth_bytes

    @property
    def is_start_above(self) -> bool:
        """More is there when the step begins than the plan counts with, by more than a few numbers."""
        return self.measured_start_bytes > self.start_bytes + _A_FEW_NUMBERS

    @property
    def agrees(self) -> bool:
        """Every unit ran as planned, within the budget."""
        return all(unit.agrees for unit in self.units) and self.measured_peak_bytes <= self.budget_bytes

    def to_json(self) -> str:
        content = asdict(self)
        for row, unit in zip(content["units"], self.units):
            row["agrees"] = unit.agrees
        content["predicted_growth_bytes"] = self.predicted_growth_bytes
        content["measured_peak_bytes"] = self.measured_peak_bytes
        content["is_start_above"] = self.is_start_above
        content["agrees"] = self.agrees
        return json.dumps(content, indent=1)

    def __str__(self) -> str:
        head = ("unit", "call", "forwards", "recomputes", "ops", "run again", "planned", "saved", "planned", "collectives")
        rows = [
            (
                unit.module or "(root)",
                f"{unit.micro_batch}/{unit.call}",
                str(unit.forwards),
                str(unit.recomputes),
                str(unit.ops),
                str(unit.recomputed_ops),
                str(unit.planned_recomputed_ops),
                str(unit.saved_ops),
                str(unit.planned_saved_ops),
                f"{unit.collectives} + {unit.recomputed_collectives}" + ("" if unit.agrees else "   differs"),
            )
            for unit in self.units
        ]
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths)))
            for row in [head, *rows]
        ]
        exact = _core.format_bytes_exact
        above = ": more than the plan counts with, such as what an earlier step left" if self.is_start_above else ""
        lines.append(f"at the step's start: measured {exact(self.measured_start_bytes)}, predicted {exact(self.start_bytes)}{above}")
        lines.append(
            f"peak above the step's start: measured {exact(self.measured_growth_bytes)}, predicted {exact(self.predicted_growth_bytes)}"
        )
        lines.append(f"peak: {exact(self.measured_peak_bytes)} of {exact(self.budget_bytes)}: " + ("as planned" if self.agrees else "NOT as planned"))
        if self.unpriced:
            lines.append(f"run again without a price, in no time that the plan predicts: {listed(self.unpriced)}")
        return "\n".join(lines)


def audit(step_fn, model, plan=None) -> Audit:
    was_applied = find(model) is not None
    if plan is not None and not was_applied:
        apply(plan, model)
    state = find(model)
    if state is None:
        _core.fail("audit", "the model has no plan", expected="a model that a plan is applied to, or a plan", remedy="audit(step_fn, model, plan)")
    if plan is not None and plan.hash != state.words.hash:
        _core.fail("audit", "another plan is applied to the model", expected=plan.hash, got=state.words.hash, remedy="tidemark.remove(model) first")
    try:
        on_cuda = any(p.device.type == "cuda" for p in model.parameters())
        tallies = Tallies(state.words.units)

        def watched() -> None:
            state.audit = tallies
            try:
                step_fn()
            finally:
                state.audit = None

        found = measured.on_cuda(step_fn, watched) if on_cuda else measured.on_cpu(step_fn, watched, model)
    finally:
        if not was_applied:
            remove(model)
    return Audit(
        units=[_row(tally) for tally in tallies.by_unit.values()],
        device="cuda" if on_cuda else "cpu",
        budget_bytes=state.words.budget_bytes,
        start_bytes=state.words.start_bytes,
        predicted_peak_bytes=state.words.peak_bytes,
        measured_start_bytes=found.start_bytes,
        measured_growth_bytes=found.growth_bytes,
        unpriced=state.words.unpriced,
    )


def _row(tally) -> UnitAudit:
    unit = tally.unit
    return UnitAudit(
        module=unit.module,
        micro_batch=unit.micro_batch,
        call=unit.call,
        forwards=tally.forwards,
        recomputes=tally.recomputes,
        ops=tally.forward_ops,
        planned_ops=len(unit.ops),
        recomputed_ops=tally.recomputed_ops,
        planned_recomputed_ops=unit.recomputed,
        saved_ops=tally.taken_ops,
        planned_saved_ops=sum(1 for position in unit.saved if position < unit.reach),
        collectives=tally.collectives,
        recomputed_collectives=tally.recomputed_collectives,
    )
