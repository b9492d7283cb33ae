"""What PyTorch's own planning tools (torch.distributed._tools) see of a model, from one recorded step."""

from __future__ import annotations

import json
import re
from collections import OrderedDict

from ._core import Error, Step, module_info_json, price, reference_times, reference_tracker

_COSTS = ("tidemark", "reference-m", "reference-b", "reference-n")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class ReferenceTracker:
    """What the tracker would have seen of a step, with its conventions, under its method names.

    >>> tracker = tidemark.ReferenceTracker(step)
    >>> tracker.get_tracker_snapshot("peak")["cuda"]["Total"]

    `counts_stale`: what the program still holds from the step before counts as activation, as it does for a tracker
    that watched that step, too.
    """

    def __init__(self, step: Step, *, counts_stale: bool = False) -> None:
        devices = dict.fromkeys(storage.device for storage in step.storages)
        self._records = {device: reference_tracker(step, device, counts_stale=counts_stale) for device in devices}

    def get_tracker_snapshot(self, type: str = "current") -> dict[str, dict[str, int]]:  # noqa: A002 (its name there)
        """Bytes by device and category, after the step ("current") or at its peak ("peak")."""
        if type not in ("current", "peak"):
            raise ValueError(f'the snapshot is "current" or "peak", not {type!r}')
        return {device: dict(record[type]) for device, record in self._records.items() if record[type]["Total"] > 0}

    def display_snapshot(self, type: str = "current", units: str = "B") -> None:  # noqa: A002
        """Prints a snapshot, one block per device."""
        scale = _scale(units)
        for device, snapshot in self.get_tracker_snapshot(type).items():
            print(f"Device: {device}")
            for line in _lines(snapshot, units, scale):
                print(f"  {line}")

    def display_modulewise_snapshots(self, depth: int = 2, units: str = "B") -> None:
        """Prints what each module's states held, for modules at most `depth` names deep (1: the root and its children)."""
        scale = _scale(units)
        for device, record in self._records.items():
            for module in sorted(record["modules"], key=lambda m: _natural(m["fqn"])):
                if module["fqn"].count(".") + 1 > depth:
                    continue
                print(f"Module: {module['fqn'] or 'root'} on {device}")
                for name in ("parameter_bytes", "buffer_bytes", "input_bytes", "output_bytes"):
                    print(f"  {name.removesuffix('_bytes')}: {_amount(module[name], units, scale)}")
                for state, snapshots in module["snapshots"].items():
                    for number, snapshot in enumerate(snapshots, 1):
                        print(f"  {state} #{number}: " + ", ".join(_lines(snapshot, units, scale)))

    @property
    def modules(self) -> dict[str, list[dict]]:
        """By device, the records of all modules that were called: bytes, and the snapshots of their states."""
        return {device: record["modules"] for device, record in self._records.items()}


def module_info(
    step: Step,
    *,
    cost: str = "reference-m",
    device: str = "a100-80-pcie",
    on: str = "",
    counts_stale: bool = False,
    ranks: int = 1,
    ranks_per_node: int = 0,
) -> dict:
    """The `ModuleInfo` of torch.distributed._tools.ilp_utils: what its `parse_module_info` and `sac_milp` take.

    `cost` is one of PyTorch's estimators ("reference-m", "reference-b", "reference-n") and `device` one that it knows,
    or any other by name, alias or the path of a device file, whose own figures are then put into its formula; its rules for operators and trade-offs are taken with it. "tidemark" is the cost model of `tidemark.price`, with rules of its own: `ranks` and `ranks_per_node` as there, and ops
    without a price are kept. Only storages on the device `on` count, unless it is empty.

    >>> graph = torch.distributed._tools.ilp_utils.parse_module_info(tidemark.module_info(step))
    """
    if cost not in _COSTS:
        raise Error(f"cost: there is no such model; expected one of {', '.join(_COSTS)}, got {cost!r}")
    unpriced: list[bool] = []
    if cost == "tidemark":
        ops = price(step, device, ranks=ranks, ranks_per_node=ranks_per_node).ops
        times, unpriced = ops["ms"], [source == "unpriced" for source in ops["source"]]
    else:
        times = reference_times(step, cost, device)
    rules = {"tidemark": "tidemark", "reference-b": "reference-b"}.get(cost, "reference-m")
    info = json.loads(module_info_json(step, times, rules, on, counts_stale, unpriced))
    for stats in info["mod_stats"]:
        stats["tradeoff_curve"] = OrderedDict((float(x), y) for x, y in stats["tradeoff_curve"].items())
    return info


def _scale(units: str) -> int:
    if units not in _UNITS:
        raise ValueError(f"units are one of {', '.join(_UNITS)}, not {units!r}")
    return _UNITS[units]


def _amount(size: int, units: str, scale: int) -> str:
    return f"{size} B" if scale == 1 else f"{size / scale:.2f} {units}"


def _lines(snapshot: dict[str, int], units: str, scale: int) -> list[str]:
    return [f"{category}: {_amount(size, units, scale)}" for category, size in snapshot.items()]


def _natural(text: str) -> list:
    """Sorts layers.2 before layers.10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", text)]
