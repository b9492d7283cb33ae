"""One record per module from the three tools, and the tree of modules that the planner works on."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TypedDict

import numpy as np
import torch
from torch import nn

from ._settings import settings
from .mem_tracker import MemTracker, _MemRefType, _ModState
from .runtime_estimator import RuntimeEstimator
from .sac_estimator import SACEstimator

__all__ = [
    "Graph",
    "ModOrder",
    "ModRuntime",
    "ModStats",
    "ModuleInfo",
    "Node",
    "aggregate_stats",
    "display_bytes",
    "get_peak_memory_runtime_baseline",
    "is_self_or_submodule",
    "is_submodule",
    "parse_module_info",
]


# What a backward adds at its peak may be less than nothing, and a line may cross the axis.
_MAY_BE_NEGATIVE = ("act_grad_per_module", "slopes", "intercepts", "breakpoints", "tradeoff_curve")


class ModOrder(TypedDict):
    """Modules as their forwards and backwards start (pre) and end (post)."""

    fw_pre_order: list[str]
    bw_pre_order: list[str]
    fw_post_order: list[str]
    bw_post_order: list[str]


class ModRuntime(TypedDict):
    """Milliseconds."""

    fw: float
    bw: float


class ModStats(TypedDict):
    """Bytes, milliseconds and the trade-off of a module; docs/module_statistics.md says what each is."""

    fqn: str
    param_per_module: int
    grad_per_module: int
    grad_total: int
    act_fw_per_module: int
    act_bw_per_module: int
    act_grad_per_module: int
    act_total: int
    input_per_module: int
    output_per_module: int
    fw_runtime_per_module: float
    bw_runtime_per_module: float
    is_leaf: bool
    sac_runtime: float
    sac_memory: int
    n_segments: int
    slopes: list[float]
    intercepts: list[float]
    breakpoints: list[float]
    tradeoff_curve: OrderedDict[float, float]


class ModuleInfo(TypedDict):
    """All that the planner is given."""

    mod_order: ModOrder
    mod_stats: list[ModStats]
    optimizer_bytes: int  # of auto-SAC's branch only (`use(cost="reference-b")`)


def aggregate_stats(
    model: nn.Module,
    mem_tracker: MemTracker,
    runtime_estimator: RuntimeEstimator,
    sac_estimator: SACEstimator,
    dev: torch.device,
) -> ModuleInfo:
    """One record for each module that ran, in the order of the first calls; bytes are those on `dev`."""
    sac_estimator.pwlf_sac_tradeoff_curve(n_segments=2, save_tradeoff_graphs=False)
    order = ModOrder(
        fw_pre_order=list(runtime_estimator.mod_fw_pre_order),
        bw_pre_order=list(runtime_estimator.mod_bw_pre_order),
        fw_post_order=list(runtime_estimator.mod_fw_post_order),
        bw_post_order=list(runtime_estimator.mod_bw_post_order),
    )
    position = {name: i for i, name in enumerate(dict.fromkeys(order["fw_pre_order"]))}
    records = []
    for module in model.modules():
        memory = mem_tracker.memory_tracking.get(module)
        if memory is not None:
            records.append(_record(memory, runtime_estimator, sac_estimator, _indexed(dev)))
    records.sort(key=lambda record: position.get(record["fqn"], len(position)))
    info = ModuleInfo(mod_order=order, mod_stats=records)
    if settings().rules == "reference-b":
        info["optimizer_bytes"] = mem_tracker.get_tracker_snapshot("peak").get(_indexed(dev), {}).get(_MemRefType.OPT, 0)
    return info


def _indexed(device: torch.device) -> torch.device:
    """Tensors on "cuda" say "cuda:0"."""
    return torch.device(device.type, 0) if device.type != "cpu" and device.index is None else device


def _record(memory, runtime_estimator, sac_estimator, device: torch.device) -> ModStats:
    def last(state: _ModState, kind: _MemRefType) -> int:
        """Nothing for a state that the module was never in: without gradients, a module has no backward."""
        snapshots = memory.snapshots.get(state)
        return snapshots[-1].get(device, {}).get(kind, 0) if snapshots else 0

    name = memory.mod_fqn
    act, temp = _MemRefType.ACT, _MemRefType.TEMP
    kept = last(_ModState.POST_FW, act) - last(_ModState.PRE_FW, act) - memory.output_mem
    temporary, temporary_before = last(_ModState.PEAK_BW, temp), last(_ModState.PRE_BW, temp)
    is_b = settings().rules == "reference-b"
    times = runtime_estimator.mod_runtimes.get(name, {})
    trade_off = sac_estimator.sac_mod_tradeoff_stats.get(name)
    return ModStats(
        fqn=name,
        param_per_module=memory.parameter_mem,
        grad_per_module=0 if is_b and not memory.snapshots.get(_ModState.PRE_BW) else memory.parameter_mem,
        grad_total=last(_ModState.PRE_BW, _MemRefType.GRAD),
        act_fw_per_module=max(0, kept),
        act_bw_per_module=max(0, last(_ModState.PEAK_BW, act)),
        act_grad_per_module=max(temporary, temporary_before) if is_b else temporary - temporary_before,
        act_total=last(_ModState.POST_FW, act),
        input_per_module=memory.input_mem,
        output_per_module=memory.output_mem,
        fw_runtime_per_module=times.get("fw", 0.0),
        bw_runtime_per_module=times.get("bw", 0.0),
        is_leaf=trade_off is None,
        sac_runtime=trade_off.sac_runtime if trade_off else 0.0,
        sac_memory=trade_off.sac_memory if trade_off else 0,
        n_segments=trade_off.n_segments if trade_off else 0,
        slopes=trade_off.slopes if trade_off else [],
        intercepts=trade_off.intercepts if trade_off else [],
        breakpoints=trade_off.fit_breaks if trade_off else [],
        tradeoff_curve=trade_off.tradeoff_curve if trade_off else OrderedDict(),
    )


class Node(ModStats):
    """A record with its place in the orders."""

    index: int
    pos_fw_post_order: int


class Graph:
    """Modules by number. `ad_matrix[i][j]` is 1 when module j is module i or inside of it."""

    def __init__(self, n: int) -> None:
        self.nodes: list[Node] = []
        self.name2node: dict[str, Node] = {}
        self.ad_matrix = np.zeros((n, n))
        self.fw_post_order: list[str] = []
        self.optimizer_bytes = 0  # of auto-SAC's branch only

    def add_node(self, node: Node) -> None:
        self.nodes.append(node)
        self.name2node[node["fqn"]] = node


def _numbers(value: object) -> list:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _checked(record: ModStats) -> dict:
    """The record without what a parser may have added to it; figures that no module can have are refused."""
    kept = {key: value for key, value in record.items() if key not in ("index", "pos_fw_post_order")}
    if isinstance(kept.get("tradeoff_curve"), dict):  # read from a file, its numbers are words
        kept["tradeoff_curve"] = type(kept["tradeoff_curve"])((float(x), y) for x, y in kept["tradeoff_curve"].items())
    for key, value in kept.items():
        if isinstance(value, (str, bool)):
            continue
        for number in _numbers(value):
            if not math.isfinite(number):
                raise AssertionError(f"{key} of {record['fqn']} is {number}; expected a finite number")
            if number < 0 and key not in _MAY_BE_NEGATIVE:
                raise AssertionError(f"{key} of {record['fqn']} is {number}; expected no less than 0")
    return kept


def parse_module_info(module_info: ModuleInfo) -> Graph:
    """The tree, numbered in the order in which the forwards start, each module once."""
    order = module_info["mod_order"]
    pre = list(dict.fromkeys(order["fw_pre_order"]))
    post = list(dict.fromkeys(order["fw_post_order"]))
    stats: dict[str, dict] = {}
    for record in module_info["mod_stats"]:
        if record["fqn"] in stats:
            raise AssertionError(f"there are two records of {record['fqn']}; expected one for each module")
        stats[record["fqn"]] = _checked(record)
    if set(stats) != set(pre) or set(post) != set(pre):
        different = sorted((set(stats) ^ set(pre)) | (set(post) ^ set(pre)))
        raise AssertionError(f"records and orders are not of the same modules; they differ in {', '.join(different)}")
    position = {name: i for i, name in enumerate(post)}
    graph = Graph(len(pre))
    graph.fw_post_order = post
    graph.optimizer_bytes = module_info.get("optimizer_bytes", 0)
    for index, name in enumerate(pre):
        graph.add_node(Node(**stats[name], index=index, pos_fw_post_order=position[name]))
    for node in graph.nodes:
        for other in graph.nodes:
            if is_self_or_submodule(other["fqn"], node["fqn"]):
                graph.ad_matrix[node["index"]][other["index"]] = 1
    return graph


def is_self_or_submodule(name_descendant: str, name_ancestor: str) -> bool:
    """Whether one name is the other, or below it."""
    return name_descendant == name_ancestor or is_submodule(name_descendant, name_ancestor)


def is_submodule(name_descendant: str, name_ancestor: str) -> bool:
    """Whether one name is below the other: it starts with it and a dot."""
    return name_descendant.startswith(name_ancestor + ".")


def display_bytes(b: int, unit: str = "MiB") -> str:
    """The amount with two digits, in KiB, MiB or GiB, or else in bytes."""
    scale = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}.get(unit)
    return f"{b:.2f} bytes" if scale is None else f"{b / scale:.2f} {unit}"


def get_peak_memory_runtime_baseline(graph: Graph) -> tuple[int, float]:
    """Bytes at the peak and milliseconds, without checkpoints: the largest sum, over modules, of all parameters, the gradients
    so far, the gradients of activations, and activations."""
    root = graph.nodes[0]
    peak = max(
        root["param_per_module"] + node["grad_total"] + node["act_grad_per_module"] + node["act_total"]
        for node in graph.nodes
    )
    return peak, root["fw_runtime_per_module"] + root["bw_runtime_per_module"]
