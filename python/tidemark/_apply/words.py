"""A plan in the form in which it is applied: its file's content, with ops by position."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field

from torch.utils.checkpoint import SAC_IGNORED_OPS

from .. import _core

# A selective checkpoint does not see these, so they do not count.
IGNORED_NAMES = frozenset(str(op) for op in SAC_IGNORED_OPS)


@dataclass(frozen=True)
class UnitWords:
    """One module call under a checkpoint."""

    module: str
    call: int
    micro_batch: int
    preserve_rng: bool
    early_stop: bool
    ops: tuple[str, ...]  # what the call runs, without what no selective checkpoint sees
    saved: frozenset[int]  # positions in `ops`
    reach: int  # how many of `ops` a recompute gets to
    inputs: tuple[tuple[str, tuple[int, ...]], ...]  # (dtype, sizes) of the tensors in its arguments
    buffers: tuple[str, ...]  # that the call changes
    found: list = field(default_factory=list, compare=False, repr=False)  # of `ops`, those that were met, and one place more

    @property
    def recomputed(self) -> int:
        """How many ops a recompute runs."""
        return self.reach - sum(1 for position in self.saved if position < self.reach)


@dataclass(frozen=True)
class PlanWords:
    hash: str
    device: str
    start_bytes: int
    peak_bytes: int
    budget_bytes: int
    units: tuple[UnitWords, ...]
    calls: dict[str, tuple[int, ...]]  # by module: how often it is called in each micro-batch
    modules: tuple[tuple[str, str], ...]  # (name, class)
    parameters: tuple[tuple[str, str, tuple[int, ...], bool], ...]  # (name, dtype, sizes, trainable)
    inputs: tuple[tuple[str, tuple[int, ...]], ...]  # (dtype, largest sizes) of the tensors that the model is given; empty: unknown
    checkpointed: tuple[str, ...]  # modules that ran under checkpoints of the model's own
    unpriced: tuple[tuple[str, int, int], ...]  # (name, count, bytes) of ops that run again and nobody knows the time of
    early_steps: frozenset[int]  # micro-batches, but for the last, after which an optimizer steps
    by_call: dict[tuple[str, int, int], UnitWords] = field(default_factory=dict)


def listed(unpriced) -> str:
    """Ops without a price, as reports list them: (name, count, bytes)."""
    return ", ".join(f"{count} x {name} of {_core.format_bytes(bytes_)}" for name, count, bytes_ in unpriced)


def unit_counts(words: PlanWords) -> dict[str, tuple[int, ...]]:
    """By module, how many checkpointed calls each micro-batch has."""
    counts = {module: [0] * len(known) for module, known in words.calls.items()}
    for unit in words.units:
        counts[unit.module][unit.micro_batch] += 1
    return {module: tuple(list_) for module, list_ in counts.items()}


def read(text: str) -> PlanWords:
    content = json.loads(text)
    units = tuple(_unit(unit, content["bodies"]) for unit in content["units"])
    return PlanWords(
        hash=content["hash"],
        device=content["device"],
        start_bytes=content["predicted"]["start_bytes"],
        peak_bytes=content["predicted"]["peak_bytes"],
        budget_bytes=content["budget_bytes"],
        units=units,
        calls={module: tuple(counts) for module, counts in content["calls"].items()},
        modules=tuple((name, type_) for name, type_ in content["model"]["modules"]),
        parameters=tuple((name, dtype, tuple(sizes), trainable) for name, dtype, sizes, trainable in content["model"]["parameters"]),
        inputs=tuple((dtype, tuple(sizes)) for dtype, sizes in content["model"].get("inputs", ())),
        checkpointed=tuple(content["model"].get("checkpointed", ())),
        unpriced=tuple((name, count, bytes_) for name, count, bytes_ in content.get("unpriced", ())),
        early_steps=frozenset(content.get("early_steps", ())),
        by_call={(unit.module, unit.micro_batch, unit.call): unit for unit in units},
    )


def _unit(unit: dict, bodies: list) -> UnitWords:
    body = bodies[unit["body"]]
    occurrences: dict[str, int] = {}
    wanted = {(name, occurrence) for name, list_ in unit["saved"].items() for occurrence in list_}
    ops: list[str] = []
    saved: set[int] = set()
    reach = 0
    for position, name in enumerate(body["ops"]):
        occurrence = occurrences.get(name, 0)
        occurrences[name] = occurrence + 1
        if name in IGNORED_NAMES:
            continue
        if (name, occurrence) in wanted:
            saved.add(len(ops))
        ops.append(sys.intern(name))
        if position < unit["reach"]:
            reach = len(ops)
    return UnitWords(
        module=unit["module"],
        call=unit["call"],
        micro_batch=unit["micro_batch"],
        preserve_rng=unit["preserve_rng"],
        early_stop=unit["early_stop"],
        ops=tuple(ops),
        saved=frozenset(saved),
        reach=reach,
        inputs=tuple((dtype, tuple(sizes)) for dtype, sizes in body["inputs"]),
        buffers=tuple(unit["buffers"]),
        found=[None] * (len(ops) + 1),
    )
