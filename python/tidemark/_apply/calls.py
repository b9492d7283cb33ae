"""Which call of a module this is: by micro-batch, and by how often the module was called in it before.

A micro-batch is over when a module is called more often than the plan knows for it; the step is over when an optimizer of
the model's parameters has stepped. Every thread counts for itself.
"""

from __future__ import annotations

import threading
import weakref

import torch
from torch.optim import optimizer as optimizer_module

from .errors import drift


class _Position(threading.local):
    generation = -1
    micro_batch = 0
    counts: dict = {}


class Calls:
    def __init__(self, counts: dict[str, tuple[int, ...]]) -> None:
        self._counts = counts
        self._position = _Position()
        self._generation = 0

    def next(self, module: str) -> tuple[int, int]:
        """(micro-batch, calls of the module before this one in it)."""
        position = self._here()
        known = self._counts[module]
        count = position.counts.get(module, 0)
        while count >= known[position.micro_batch]:
            position.micro_batch = (position.micro_batch + 1) % len(known)
            position.counts = {}
            count = 0
        position.counts[module] = count + 1
        return position.micro_batch, count

    def restart(self) -> None:
        """A forward failed: its micro-batch begins again."""
        self._here().counts = {}

    def end_step(self) -> None:
        position = self._here()
        self._generation += 1
        for module, count in position.counts.items():
            known = self._counts[module][position.micro_batch]
            if count != known:
                raise drift(
                    module,
                    f"the module was called {count} times in micro-batch {position.micro_batch} of this step",
                    expected=f"{known} times",
                    cause="a part of the model that is not always run",
                )

    def _here(self) -> _Position:
        position = self._position
        if position.generation != self._generation:
            position.generation = self._generation
            position.micro_batch = 0
            position.counts = {}
        return position


def watch_optimizers(calls: Calls, model: torch.nn.Module):
    """Ends the step when an optimizer of the model's parameters has stepped. Returns a handle with `remove()`."""
    calls_ref = weakref.ref(calls)
    model_ref = weakref.ref(model)
    own: set = set()  # of the model's parameters, by id; looked up anew when an optimizer seems to be another model's

    def has_own(optimizer) -> bool:
        return any(id(p) in own for group in optimizer.param_groups for p in group["params"])

    def before(optimizer, args, kwargs) -> None:
        calls, model = calls_ref(), model_ref()
        if calls is None or model is None:
            return
        if not has_own(optimizer):
            own.clear()
            own.update(id(parameter) for parameter in model.parameters())
            if not has_own(optimizer):
                return
        calls.end_step()

    return optimizer_module.register_optimizer_step_pre_hook(before)
