"""Layers that did not run in a recorded step, although layers of the same kind beside them did: layer drop, experts without tokens.

A plan holds for what ran. A later step whose coins fall otherwise runs more, and needs more.
"""

from __future__ import annotations

import torch

_LISTED = 3


def left_out(model: torch.nn.Module, called: set) -> list[str]:
    """Names of modules with trained weights that are not among `called`, in containers where others of their class are."""
    names = {module: name for name, module in model.named_modules()}
    found: list = []
    for parent in model.modules():
        if not isinstance(parent, (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)):
            continue
        ran = {type(child) for child in parent.children() if _has_run(child, called)}
        found += [
            names[child]
            for child in parent.children()
            if type(child) in ran and not _has_run(child, called) and any(p.requires_grad for p in child.parameters())
        ]
    return found


def _has_run(module: torch.nn.Module, called: set) -> bool:
    return any(inner in called for inner in module.modules())


def left_out_text(names: list[str]) -> str:
    listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
    return (
        f"in the recorded step {listed} did not run, and others of the same kind beside {'it' if len(names) == 1 else 'them'} did (layer drop, "
        "or experts without tokens): a plan holds for what ran, and steps that run more need more than it says; try: record with all of "
        "them running (layer drop of 0), or leave room with reserve="
    )
