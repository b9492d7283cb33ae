"""Two records of one step, side by side, down to the first difference.

Ids are numbers by first appearance, so the comparison follows the events and says each row in words; what it says is
what a fingerprint covers. Source lines, notes and estimates are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tolerated:
    family: str
    captured: str
    native: str
    reason: str


def tolerated_differences(path: Path = Path(__file__).parent / "tolerated_differences.txt") -> list[Tolerated]:
    """The lines of the file, four parts each."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 4 or not all(parts):
            raise ValueError(f"{path.name}:{number}: expected family | captured | native | reason")
        rows.append(Tolerated(*parts))
    return rows


class Words:
    """A Step as lines of words, one for each event, in which ids are counted by first appearance."""

    def __init__(self, step) -> None:
        self.step = step
        self.strings = list(step.strings)
        self._storages: dict = {}
        self._nodes: dict = {}
        self._saves: dict = {}
        self._fqns: list = []
        for module in step.modules:
            parent = self._fqns[module.parent] if module.parent is not None else ""
            self._fqns.append(".".join(part for part in (parent, module.name) if part))

    def _number(self, table: dict, id: int) -> int:
        return table.setdefault(id, len(table))

    def storage(self, id: int) -> str:
        known = id in self._storages
        name = f"s{self._number(self._storages, id)}"
        if known:
            return name
        row = self.step.storages[id]
        of = f" of {self.storage(row.of)}" if row.of is not None else ""
        return f"{name}({row.bytes} B, {row.device}, {row.role}{of})"

    def tensor(self, id: int) -> str:
        row = self.step.tensors[id]
        view = " view" if row.is_view else ""
        return f"{row.dtype}{list(row.shape)}:{list(row.stride)}+{row.offset}{view} in {self.storage(row.storage)} v{row.version}"

    def tensors(self, ids) -> str:
        return ", ".join(self.tensor(id) for id in ids)

    def node(self, id) -> str:
        if id is None:
            return "-"
        row = self.step.nodes[id]
        return f"n{self._number(self._nodes, id)} {row.name} of {self.pass_(row.pass_)}"

    def pass_(self, id: int) -> str:
        row = self.step.passes[id]
        return f"{row.kind}/{row.micro_batch}/{row.graph_task}"

    def call(self, id) -> str:
        if id is None:
            return "-"
        row = self.step.calls[id]
        return f"{self._fqns[row.module] or '(root)'}#{row.index}"

    def region(self, id) -> str:
        words = []
        while id is not None:
            row = self.step.regions[id]
            words.append(f"{row.kind}{self._region_args(row)} in {self.call(row.call)}")
            id = row.parent
        return " < ".join(words) or "-"

    def _region_args(self, row) -> str:
        return "" if row.args_id is None else str(dict(self.step.args[row.args_id]))

    def op(self, id: int) -> str:
        row = self.step.ops[id]
        outputs = ", ".join(f"{self.tensor(t)} {alias}{'' if i is None else i}" for t, alias, i in row.outputs)
        return (
            f"{row.name}({self.tensors(row.inputs)}) -> {outputs} {row.args} [{' '.join(sorted(row.flags))}] "
            f"node {self.node(row.node)} call {self.call(row.call)} region {self.region(row.region)} pass {self.pass_(row.pass_)}"
        )

    def save(self, id: int) -> str:
        row = self.step.saves[id]
        return (
            f"v{self._number(self._saves, id)} {self.tensor(row.tensor)} for {self.node(row.node)} slot {row.slot}"
            f"{'' if row.hooked else ' unhooked'}"
        )

    def lines(self):
        step = self.step
        for i, module in enumerate(step.modules):
            yield f"module {self._fqns[i] or '(root)'}: {module.type}"
        for row in step.bindings:
            yield f"{row.kind} {self._fqns[row.module]}.{row.name}: {self.tensor(row.tensor)} trainable={row.trainable}"
        say = {
            "phase": self.pass_,
            "enter": lambda id: f"{self.call(id)}({self.tensors(step.calls[id].inputs)})",
            "exit": lambda id: f"{self.call(id)} -> {self.tensors(step.calls[id].outputs)}",
            "begin": self.op,
            "end": lambda id: step.ops[id].name,
            "alloc": self.storage,
            "free": self.storage,
            "resize": lambda id: str(step.resizes[id]),
            "node": self.node,
            "done": self.node,
        }
        for kind, id in step.events:
            yield f"{kind} {say.get(kind, self.save)(id)}"


def first_difference(native, captured, family: str = "", tolerated: list[Tolerated] | None = None, context: int = 6) -> str:
    """Where two records part, with the lines before; empty when they agree.

    `family` is a name of families.py, whose first word is the model's; what `tolerated` says of it counts as equal.
    """
    rows = tolerated_differences() if tolerated is None else tolerated
    rows = [row for row in rows if family and family.replace(",", " ").split()[0] == row.family]

    def is_tolerated(a: str, b: str) -> bool:
        return any(a.replace(row.native, row.captured) == b for row in rows)

    ours, theirs = list(Words(native).lines()), list(Words(captured).lines())
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a != b and not is_tolerated(a, b):
            before = "\n".join(f"    {line[:240]}" for line in ours[max(0, i - context) : i])
            after = "\n".join(f"    {line[:240]}" for line in theirs[i + 1 : i + 3])
            return f"line {i} of {len(ours)} and {len(theirs)}\n{before}\n  - captured: {b}\n  + native:   {a}\n  captured goes on:\n{after}"
    if len(ours) != len(theirs):
        longer, which = (ours, "native") if len(ours) > len(theirs) else (theirs, "captured")
        rest = "\n".join(f"    {line[:240]}" for line in longer[min(len(ours), len(theirs)) :][:5])
        return f"equal up to line {min(len(ours), len(theirs))}; {which} goes on:\n{rest}"
    if not rows and native.fingerprint != captured.fingerprint:
        return "every line agrees, but the fingerprints differ"
    return ""
