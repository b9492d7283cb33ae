"""Whether all ranks hold the same plan."""

from __future__ import annotations

from .. import _core


def check_if_distributed(hash_: str, group=None) -> None:
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size(group) < 2:
        return
    found: list = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, hash_, group=group)
    if len(set(found)) == 1:
        return
    ranks: dict = {}
    for rank, value in enumerate(found):
        if group is not None:
            rank = dist.get_global_rank(group, rank)
        ranks.setdefault(value, []).append(rank)
    _core.fail(
        "apply",
        "the ranks hold different plans",
        expected=f"the plan {found[0]} on every rank",
        got="; ".join(f"{value} on {_listed(list_)}" for value, list_ in ranks.items()),
        remedy="plan on one rank, save the plan and load the file on all of them",
    )


def _listed(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
    return ("rank " if len(ranks) == 1 else "ranks ") + shown
