"""Counting what really runs in the units of a plan, while an audit lasts."""

from __future__ import annotations

from dataclasses import dataclass

from .words import UnitWords

_COLLECTIVES = ("c10d.", "_c10d_functional.", "c10d_functional.", "_dtensor.")


@dataclass
class Tally:
    """One unit."""

    unit: UnitWords
    forwards: int = 0
    recomputes: int = 0
    forward_ops: int = 0
    recomputed_ops: int = 0
    taken_ops: int = 0  # saved ops whose result was taken instead of running them again
    collectives: int = 0
    recomputed_collectives: int = 0

    def forward_op(self, func) -> None:
        self.forward_ops += 1
        self.collectives += str(func).startswith(_COLLECTIVES)

    def recompute(self) -> None:
        self.recomputes += 1

    def recomputed_op(self, func) -> None:
        self.recomputed_ops += 1
        self.recomputed_collectives += str(func).startswith(_COLLECTIVES)

    def taken_op(self, func) -> None:
        self.taken_ops += 1

    def reset(self) -> None:
        self.forwards = self.recomputes = self.forward_ops = self.recomputed_ops = self.taken_ops = 0
        self.collectives = self.recomputed_collectives = 0


class Tallies:
    def __init__(self, units: tuple[UnitWords, ...]) -> None:
        self.by_unit = {(unit.module, unit.micro_batch, unit.call): Tally(unit) for unit in units}

    def begin(self, unit: UnitWords) -> Tally:
        tally = self.by_unit[unit.module, unit.micro_batch, unit.call]
        tally.forwards += 1
        return tally

    def reset(self) -> None:
        for tally in self.by_unit.values():
            tally.reset()
