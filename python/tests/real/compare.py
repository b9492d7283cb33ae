"""Replayed timelines against those of PyTorch's own allocator."""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import tidemark

HERE = os.path.dirname(os.path.abspath(__file__))
LARGE = 1024  # bytes: positions below are not compared one by one; their bytes are in the running totals


@dataclass
class Comparison:
    """Bytes are relative to what is there when the step begins."""

    measured_peak: int
    replayed_peak: int
    positions: int  # allocations of at least LARGE on either side; one that the other side lacks is a position of its own
    equal: int  # of these, matched with an equal running total
    same_start: bool
    unequal: list = field(default_factory=list)  # the first few, for people

    @property
    def error(self) -> float:
        return (self.replayed_peak - self.measured_peak) / self.measured_peak

    @property
    def share(self) -> float:
        return self.equal / self.positions

    def line(self, name: str) -> str:
        return (
            f"{name:40} peak {self.measured_peak:>11,} replayed {self.replayed_peak:>11,} error {100 * self.error:8.4f} % "
            f"timeline {self.equal}/{self.positions} = {100 * self.share:6.2f} %{'' if self.same_start else ' START DIFFERS'}"
        )


def measure(model: str, plan: dict | None = None) -> dict:
    """The allocator's events in a real step, from a process of its own."""
    command = [sys.executable, os.path.join(HERE, "allocator.py"), model]
    with tempfile.TemporaryDirectory() as folder:
        if plan is not None:
            path = os.path.join(folder, "plan.json")
            with open(path, "w") as file:
                json.dump(plan, file)
            command.append(path)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def compare(step, truth: dict, plan=None, early_stop: bool = True, preserve_rng: bool = True) -> Comparison:
    timeline = tidemark.simulate(step, plan, early_stop=early_stop, preserve_rng=preserve_rng, events=True)
    events = timeline.events
    replayed = [
        (bytes, total - timeline.start_bytes, op)
        for kind, bytes, total, op in zip(events["kind"], events["bytes"], events["total_bytes"], events["op"])
        if kind == "alloc" and bytes >= LARGE
    ]
    measured, total, peak = [], 0, 0
    for bytes in truth["events"]:
        total += bytes
        peak = max(peak, total)
        if bytes >= LARGE:
            measured.append((bytes, total))
    matcher = difflib.SequenceMatcher(None, [m[0] for m in measured], [r[0] for r in replayed], autojunk=False)
    equal = matched = 0
    unequal = []
    for a, b, length in matcher.get_matching_blocks():
        for i in range(length):
            matched += 1
            if measured[a + i][1] == replayed[b + i][1]:
                equal += 1
            else:
                op = replayed[b + i][2]
                unequal.append((measured[a + i], replayed[b + i][:2], step.ops[op].name if op is not None else None))
    return Comparison(
        measured_peak=peak,
        replayed_peak=timeline.peak_bytes - timeline.start_bytes,
        positions=len(measured) + len(replayed) - matched,
        equal=equal,
        same_start=truth["start"] == timeline.start_bytes,
        unequal=unequal[:5],
    )


def fqn(step, module: int) -> str:
    parts = []
    while module is not None:
        parts.append(step.modules[module].name)
        module = step.modules[module].parent
    return ".".join(part for part in reversed(parts) if part)


def runnable(step, plan, early_stop: bool, preserve_rng: bool) -> dict:
    """The plan as allocator.py takes it: ops by name and occurrence in the call, as selective checkpointing counts."""
    saved = {call: set(ops) for call, ops in plan.units}
    calls_of: dict = {}
    for i, call in enumerate(step.calls):
        if step.passes[call.pass_].kind == "forward":
            calls_of.setdefault(call.module, []).append(i)
    root_unit: dict = {}  # call: the unit it is in
    for i, call in enumerate(step.calls):
        root_unit[i] = i if i in saved else root_unit.get(call.parent)
    counts: dict = {}
    listed: dict = {unit: [] for unit in saved}
    for i, op in enumerate(step.ops):
        unit = root_unit.get(op.call) if step.passes[op.pass_].kind == "forward" else None
        if unit is None:
            continue
        occurrence = counts[unit, op.name] = counts.get((unit, op.name), -1) + 1
        if i in saved[unit]:
            listed[unit].append([op.name, occurrence])
    units = {
        fqn(step, module): [listed.get(call) for call in calls]
        for module, calls in calls_of.items()
        if any(call in saved for call in calls)
    }
    return {"units": units, "early_stop": early_stop, "preserve_rng": preserve_rng}


def random_plan(step, random, blocks):
    """Some of the blocks, and in each a random choice of what is saved."""
    units = []
    for call, _ in blocks.units:
        if random.random() < 0.2:
            continue
        saved: list = []
        for group in tidemark.groups(step, call):
            if group.must_save or (group.can_save and random.random() < 0.4):
                saved += group.savers
        units.append((call, sorted(saved)))
    return tidemark.Plan(units)
