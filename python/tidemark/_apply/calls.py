"""Which call of a module this is: by micro-batch, and by how often the module was called in it before.

As in a capture, a micro-batch begins with the first call after a backward. That a backward has run is known by its recomputes; of
a micro-batch without checkpointed calls, by a module that is called more often than planned. When a micro-batch has
checkpointed calls and none of them was recomputed, its forward was given up, by an exception or since nobody wanted its
gradients, and what follows is the same micro-batch again. The step is over when an optimizer of the model's parameters has stepped,
other than after a micro-batch where one stepped in the middle of the captured step (adversaries in turn), or inside a backward. Every thread counts for itself.
"""

from __future__ import annotations

import threading
import warnings
import weakref

import torch
from torch.optim import optimizer as optimizer_module

from .errors import drift


class Position:
    """Where one thread is in its step."""

    __slots__ = ("micro_batch", "counts", "made", "recomputed", "rounds", "is_after_backward", "has_units", "is_in_model")

    def __init__(self) -> None:
        self.is_in_model = False
        self.begin_step()

    def begin_step(self) -> None:
        self.micro_batch = 0
        self.counts: dict = {}  # calls by module, in this micro-batch
        self.made: dict = {}  # in all of the step
        self.recomputed: dict = {}  # of those, the checkpointed ones that were recomputed
        self.rounds = 0  # micro-batches that are over
        self.is_after_backward = False
        self.has_units = False  # a checkpointed call was made in this micro-batch

    def begin_micro_batch(self, count: int) -> None:
        self.micro_batch = (self.micro_batch + 1) % count
        self.rounds += 1
        self.begin_again()

    def begin_again(self) -> None:
        self.counts = {}
        self.is_after_backward = self.has_units = False

    def was_recomputed(self, module: str) -> None:
        self.is_after_backward = True
        self.recomputed[module] = self.recomputed.get(module, 0) + 1

    def mark(self) -> tuple:
        return self.micro_batch, dict(self.counts), dict(self.made), self.rounds, self.is_after_backward, self.has_units

    def go_back(self, mark: tuple) -> None:
        """What was called since then does not count."""
        self.micro_batch, self.counts, self.made, self.rounds, self.is_after_backward, self.has_units = mark


class _Local(threading.local):
    def __init__(self) -> None:
        self.position = Position()


class Calls:
    def __init__(
        self, counts: dict[str, tuple[int, ...]], units: dict[str, tuple[int, ...]], early_steps: frozenset = frozenset()
    ) -> None:
        """By module, for each micro-batch: how often it is called, and how many of these calls are checkpointed. And after which
        micro-batches an optimizer steps without ending the step."""
        self._counts = counts
        self._units = units
        self._early_steps = early_steps
        self._local = _Local()
        self.serial = 0  # of the calls of all threads

    def here(self) -> Position:
        return self._local.position

    def next(self, module: str) -> tuple[int, int]:
        """(micro-batch, calls of the module before this one in it)."""
        position = self._local.position
        self.serial += 1
        known = self._counts[module]
        if position.is_after_backward:
            position.begin_micro_batch(len(known))
        count = position.counts.get(module, 0)
        if count >= known[position.micro_batch]:
            if position.has_units and known[position.micro_batch]:
                position.begin_again()
            else:
                position.begin_micro_batch(len(known))
                while not known[position.micro_batch]:
                    position.micro_batch = (position.micro_batch + 1) % len(known)
            count = 0
        position.counts[module] = count + 1
        position.made[module] = position.made.get(module, 0) + 1
        return position.micro_batch, count

    def failed(self) -> None:
        """A call raised. When the model's own call does, too, that goes back to where it began; without one, the micro-batch
        begins again."""
        position = self._local.position
        if not position.is_in_model:
            position.begin_again()

    def optimizer_steps(self) -> None:
        if self._local.position.micro_batch not in self._early_steps:
            self.end_step()

    def end_step(self) -> None:
        position = self._local.position
        rounds = position.rounds
        if position.is_after_backward or (position.counts and not position.has_units):
            rounds += 1
        made, recomputed = position.made, position.recomputed
        position.begin_step()
        if rounds == 0:
            return
        for module, known in self._counts.items():
            count = made.get(module, 0)
            expected = sum(known[i % len(known)] for i in range(rounds))
            if count == expected:
                continue
            # More calls, of which just as many as planned had a backward: the others were given up.
            units = self._units[module]
            if count > expected and recomputed.get(module, 0) == sum(units[i % len(units)] for i in range(rounds)):
                continue
            raise drift(
                module,
                f"the module was called {count} times in the {rounds} micro-batches of this step",
                expected=f"{expected} times",
                cause="a part of the model that is not always run, or that is run more often than when the step was captured",
            )


def watch_optimizers(calls: Calls, model: torch.nn.Module):
    """Tells `calls` when an optimizer of the model's parameters steps. Returns a handle with `remove()`."""
    calls_ref = weakref.ref(calls)
    model_ref = weakref.ref(model)
    own: set = set()  # of the model's parameters, by id; looked up anew when an optimizer seems to be another model's
    serials: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by optimizer: calls made until its last step
    warned: list = []

    def has_own(optimizer) -> bool:
        return any(id(p) in own for group in optimizer.param_groups for p in group["params"])

    def before(optimizer, args, kwargs) -> None:
        calls, model = calls_ref(), model_ref()
        if calls is None or model is None:
            return
        if torch._C._current_graph_task_id() != -1:
            return  # a hook steps it as soon as a gradient is complete: other gradients of the same backward are not
        if not has_own(optimizer):
            own.clear()
            own.update(id(parameter) for parameter in model.parameters())
            if not has_own(optimizer):
                return
        is_idle = serials.get(optimizer) == calls.serial
        serials[optimizer] = calls.serial
        if is_idle and calls._counts and not warned:
            warned.append(True)
            warnings.warn(
                "tidemark: an optimizer of the model has stepped, and since its last step no module of the plan was called for training: "
                "the model is in eval(), its forward ran without gradients, or the plan is of a part that is no longer used.",
                stacklevel=4,
            )
        calls.optimizer_steps()

    return optimizer_module.register_optimizer_step_pre_hook(before)
