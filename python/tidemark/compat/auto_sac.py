"""Auto-SAC's driver, from the branch of PyTorch that it stayed in: statistics, decisions per module, policies, wrappers.

With the names and parameters of that branch. The program is that of `sac_milp` by the rules "reference-b"; `tidemark.plan` and
`plan.apply` do the same job exactly, and without wrapping modules.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import torch
from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers
from torch.utils.checkpoint import SAC_IGNORED_OPS, CheckpointPolicy, create_selective_checkpoint_contexts

from ._settings import settings, use
from .ilp_utils import aggregate_stats, parse_module_info
from .mem_tracker import MemTracker
from .runtime_estimator import RuntimeEstimator
from .sac_estimator import SACEstimator, SACGreedyOrderMeta, SACStats
from .sac_ilp import find_policy, get_optimal_checkpointing_policy_per_module, sac_milp

__all__ = [
    "AutoSACResult",
    "SACAlgorithm",
    "apply_auto_sac_policies",
    "get_auto_sac_policies",
    "get_greedy_checkpointing_policy_per_module",
]


_COST_MODEL = "operator-level-cost-model"


class SACAlgorithm(Enum):
    """How a module's part of the bytes becomes a decision per operator."""

    GREEDY = auto()
    OPTIMAL = auto()


@dataclass
class AutoSACResult:
    """Without a solution everything is empty, and `peak_mem` is -1."""

    sac_policies: dict[str, tuple[list[str], list[int]]] = field(default_factory=dict)  # operators, and 1 for those that are saved
    ac_decisions: dict[str, float] = field(default_factory=dict)  # part of a module's bytes that is given up
    recomputation_time: float = 0.0  # ms
    peak_mem: int = -1  # bytes


def get_greedy_checkpointing_policy_per_module(
    sac_stats: SACStats, sac_greedy_order_meta: SACGreedyOrderMeta, memory_budget: float
) -> list[int]:
    """1 for every operator that is saved: operators are given up in greedy order until the rest is within `memory_budget`, a part
    of the module's bytes. The order follows from the statistics; `sac_greedy_order_meta` is there for those who have it."""
    found = find_policy(sac_stats, memory_budget, "greedy")
    return [int(bit) for bit in found["saved"]]


def get_auto_sac_policies(
    train_step: Callable,
    models: list[torch.nn.Module],
    optimizers: list[torch.optim.Optimizer],
    inputs: Any,
    dev: torch.device,
    memory_budget: float,
    sac_algo: SACAlgorithm = SACAlgorithm.GREEDY,
    shard_degree: int = 1,
    ac_units: set[str] | None = None,
    fsdp_units: set[str] | None = None,
    mp_policies: dict | None = None,
    runtime_kwargs: dict[str, Any] | None = None,
) -> AutoSACResult:
    """Which modules to checkpoint within `memory_budget` GiB, and which of their operators to save.

    `train_step(models, optimizers, inputs)` is one step, inside a FakeTensorMode; it runs four times. One model, without
    `mp_policies`. Of `runtime_kwargs`, "estimate_mode" says where times come from; the device is that of `tidemark.compat.use`.
    """
    if len(models) != 1:
        raise ValueError(f"{len(models)} models were given; expected one")
    if mp_policies:
        raise ValueError("mp_policies are not supported; train_step may use the precision it wants")
    mode = (runtime_kwargs or {}).get("estimate_mode", _COST_MODEL)
    rules = contextlib.nullcontext() if settings().rules == "reference-b" else use(cost="reference-b", device="h100-sxm")
    with rules:
        memory, times, operators = _collect(lambda: train_step(models, optimizers, inputs), models, optimizers, mode)
        graph = parse_module_info(aggregate_stats(models[0], memory, times, operators, torch.device(dev)))
        units = sorted(ac_units) if ac_units else None
        ratios, recompute_ms, peak_bytes = sac_milp(graph, memory_budget, shard_degree, units, sorted(fsdp_units or ()))
    if peak_bytes == -1:
        return AutoSACResult()
    policies = {}
    for name, ratio in ratios.items():
        stats = operators.sac_mod_stats[name]
        if sac_algo is SACAlgorithm.GREEDY:
            bits = get_greedy_checkpointing_policy_per_module(stats, operators.sac_mod_greedy_order_meta[name], 1 - ratio)
        else:
            bits = get_optimal_checkpointing_policy_per_module(stats, 1 - ratio)
        policies[name] = (stats.func_names, bits)
    return AutoSACResult(policies, ratios, recompute_ms, peak_bytes)


def _collect(step: Callable, models, optimizers, mode: str) -> tuple[MemTracker, RuntimeEstimator, SACEstimator]:
    memory = MemTracker()
    memory.track_external(*models, *optimizers)
    with memory:
        step()  # in which optimizers make their states
        memory.reset_mod_stats()
        step()
    times = RuntimeEstimator()
    with times(estimate_mode_type=mode):
        step()
    operators = SACEstimator()
    with operators(estimate_mode_type=mode):
        step()
    return memory, times, operators


def apply_auto_sac_policies(
    model: torch.nn.Module,
    sac_policies: dict[str, tuple[list[str], list[int]]],
    checkpoint_impl: wrappers.CheckpointImpl = wrappers.CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable | None = None,
    **checkpoint_fn_kwargs: Any,
) -> None:
    """Wraps the modules that have a policy. Names start with the model's class."""
    if "context_fn" in checkpoint_fn_kwargs:
        raise ValueError("context_fn is what the policies are applied with; leave it out")
    root = type(model).__name__
    chosen = {id(module): sac_policies[name] for path, module in model.named_modules() if (name := f"{root}.{path}") in sac_policies}

    def wrapped(module):
        if id(module) not in chosen:
            return None
        names, bits = chosen[id(module)]
        return wrappers.checkpoint_wrapper(
            module,
            checkpoint_impl=checkpoint_impl,
            checkpoint_fn=checkpoint_fn,
            context_fn=lambda: create_selective_checkpoint_contexts(_Policy(names, bits)),
            **checkpoint_fn_kwargs,
        )

    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if (instead := wrapped(child)) is not None:
                setattr(parent, name, instead)


class _Policy:
    """One forward of one module. An operator that is not the next of the list is recomputed, and the list waits for it."""

    def __init__(self, names: list[str], bits: list[int]) -> None:
        self._names = names
        self._bits = bits
        self._at = 0

    def __call__(self, context, func, *args, **kwargs) -> CheckpointPolicy:
        at = self._at
        if func in SAC_IGNORED_OPS or at == len(self._names) or func._overloadpacket.__name__ != self._names[at]:
            return CheckpointPolicy.MUST_RECOMPUTE
        self._at = at + 1
        return CheckpointPolicy.PREFER_SAVE if self._bits[at] else CheckpointPolicy.MUST_RECOMPUTE
