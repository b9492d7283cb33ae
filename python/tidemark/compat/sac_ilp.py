"""Which modules to checkpoint and how much of each to give up; which operators of one to save.

Both programs are the library's (`tidemark/planner/`): the first is solved to the end by HiGHS, the second exactly, by its own
solver. The reference stops at 5 % from the optimum, and after a time.
"""

from __future__ import annotations

import json
import logging
from enum import IntEnum

from .. import _core, _highs
from ._settings import settings
from .ilp_utils import Graph
from .sac_estimator import SACStats

__all__ = ["SACDecision", "get_optimal_checkpointing_policy_per_module", "sac_milp"]

logger = logging.getLogger(__name__)

_GIB = 1 << 30


def sac_milp(
    graph: Graph,
    memory_budget: float,
    world_size: int = 1,
    ac_units: list[str] | None = None,
    fsdp_units: list[str] | None = None,
) -> tuple[dict[str, float], float, int]:
    """(part of its bytes that each checkpointed module gives up, milliseconds of recomputation, bytes at the peak).

    `memory_budget` is in GiB. Only modules of `ac_units` are checkpointed, if there are any, and none above a module of
    `fsdp_units`. Without a solution the result is ({}, 0, -1), and the log says why. With `use(cost="reference-b", ...)` the
    program is that of auto-SAC's branch: optimizer states count, and what is not sharded is not divided.
    """
    found = _core.solve_modules(
        _as_json(graph),
        int(memory_budget * _GIB),
        _highs.places(),
        world_size=world_size,
        units=ac_units or None,
        fsdp_units=fsdp_units or [],
        rules=settings().rules,
        optimizer_bytes=graph.optimizer_bytes,
    )
    if found["termination"] != "optimal":
        logger.error("no checkpointing keeps the peak within %s GiB: %s", memory_budget, found["termination"])
        return {}, 0, -1
    ratios = {name: round(ratio, 4) for name, ratio in _earlier_give_more(graph, found["ratios"]).items()}
    return ratios, round(found["recompute_ms"], 2), found["peak_bytes"]


def _earlier_give_more(graph: Graph, ratios: dict[str, float]) -> dict[str, float]:
    """Among modules with equal statistics it costs the same whichever gives up more. It is the earlier ones: then everything
    that runs after them has at least as much room as in the solver's answer."""
    alike: dict[tuple, list[str]] = {}
    for name in graph.fw_post_order:
        if name in ratios:
            node = graph.name2node[name]
            fit = (*node["slopes"], *node["intercepts"])
            alike.setdefault((node["sac_memory"], node["sac_runtime"], node["act_fw_per_module"], fit), []).append(name)
    settled = {}
    for names in alike.values():
        settled.update(zip(names, sorted((ratios[name] for name in names), reverse=True)))
    return {name: settled[name] for name in ratios}


def _as_json(graph: Graph) -> str:
    names = [node["fqn"] for node in graph.nodes]
    order = {
        "fw_pre_order": names,
        "fw_post_order": graph.fw_post_order,
        "bw_pre_order": names[::-1],  # nobody asks for these two
        "bw_post_order": names[::-1],
    }
    return json.dumps({"mod_order": order, "mod_stats": graph.nodes})


class SACDecision(IntEnum):
    """What becomes of an operator's result."""

    RECOMPUTE = 0
    SAVE = 1


def find_policy(sac_stats: SACStats, memory_budget: float, method: str) -> dict:
    """What `_core.module_policy` says: "saved", 1 for every operator that is, and whether that is "feasible"; else the log says so."""
    if not 0 <= memory_budget <= 1:
        raise ValueError(f"the budget is a part of the module's memory, from 0 to 1, not {memory_budget}")
    found = _core.module_policy(
        [float(ms) for ms in sac_stats.runtimes],
        [int(size) for size in sac_stats.memory],
        float(memory_budget),
        views=sac_stats.view_like_ops,
        random=sac_stats.rand_ops,
        in_place=sac_stats.inplace_ops,
        must_store_random=sac_stats.force_store_random,
        method=method,
    )
    if not found["feasible"]:
        logger.error("what must be saved takes more than %s of the module's memory", memory_budget)
    return found


def get_optimal_checkpointing_policy_per_module(sac_stats: SACStats, memory_budget: float) -> list[int]:
    """A SACDecision for every operator: the most time saved while `memory_budget`, a part of the module's bytes, is kept. An
    empty list when even what must be saved is more than that; the log says so."""
    found = find_policy(sac_stats, memory_budget, "optimal")
    return [int(bit) for bit in found["saved"]] if found["feasible"] else []
