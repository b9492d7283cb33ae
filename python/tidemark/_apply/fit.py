"""Capture, plan, verify and apply in one go."""

from __future__ import annotations

import sys

import torch

from .. import _core
from .._capture.workspace import unmeasured_text
from ..planning import find_device
from ..planning import plan as find_plan
from ..recording import capture
from .apply import apply, find
from .words import listed


def fit(step_fn, model, optimizer, budget, device, progress, options):
    if not isinstance(model, torch.nn.Module) or not callable(step_fn):
        _core.fail("fit", "the second argument is no model" if callable(step_fn) else "the first argument is no step",
                   expected="fit(step_fn, model, optimizer): a function that runs one step, and a torch.nn.Module",
                   got=f"fit({type(step_fn).__name__}, {type(model).__name__})")
    if find(model) is not None:
        _core.fail("fit", "the model has a plan already", expected="a model without one", remedy="tidemark.remove(model) first")
    if device is None:
        device = _device_of(model)
    known = find_device(device)
    say = _Progress(sys.stderr.isatty() if progress is None else progress)
    say("capturing one step")
    step = capture(step_fn, model, optimizer, target="cpu" if known.kind == "cpu" else known.name)
    say("planning")
    result = find_plan(step, budget, known, **options)
    if result.plan is None:
        _refuse(result)
    say("applying")
    apply(result.plan, model)
    say(None)
    print(summary(result, step) + ("" if model.training else " The model is in eval() now: the plan begins with model.train()."))
    return result


def _device_of(model) -> str:
    parameter = next(model.parameters(), None)
    if parameter is None or parameter.device.type != "cuda":
        return "cpu"
    name = torch.cuda.get_device_name(parameter.device)
    try:
        return _core.find_device(name).name  # the names that drivers give are among those of the devices
    except _core.Error:
        _core.fail("device", "the model is on a GPU that Tidemark has no times of", got=name, expected="a device",
                   remedy="device=... with one of tidemark.devices(), or with a file of tidemark.calibrate")


def _refuse(result) -> None:
    smallest = result.smallest_peak_bytes + result.reserve_bytes
    if result.termination == "limit":
        _core.fail("budget", "the search for a plan reached its limit", expected="more work or a larger budget",
                   got=_core.format_bytes_exact(result.budget_bytes), remedy="max_work=... with more than 60,000,000")
    known = "" if result.is_smallest_proved else " that is known"
    _core.fail("budget", "no plan fits", expected=f"at least {_core.format_bytes_exact(smallest)}, the smallest reachable budget{known}",
               got=_core.format_bytes_exact(result.budget_bytes), remedy=f"budget={smallest}, a smaller batch, or a shorter sequence")


def summary(result, step) -> str:
    """One paragraph for people."""
    return _decisions(result, step) + (f" Note: {unmeasured_text(step.unmeasured)}." if step.unmeasured else "")


def _decisions(result, step) -> str:
    bytes_ = _core.format_bytes
    if not len(result.plan):
        return (
            f"Tidemark: the step needs {bytes_(result.peak_bytes)} and fits the budget of {bytes_(result.budget_bytes)}{_reserved(result)} as it "
            f"is; nothing is checkpointed.{_unpriced(result)} `tidemark.remove(model)` is not needed, but does no harm."
        )
    modules = {step.modules[step.calls[call].module].fqn for call, _ in result.plan.units}
    saved = sum(len(ops) for _, ops in result.plan.units)
    sure = "no plan that fits is cheaper" if result.termination == "optimal" else f"no plan that fits costs less than {result.bound_ms:.3g} ms"
    return (
        f"Tidemark: {len(result.plan)} module calls of {len(modules)} modules now run under checkpoints, with {saved} ops in them saved "
        f"rather than recomputed. The step's peak is predicted to be {bytes_(result.peak_bytes)} instead of "
        f"{bytes_(result.unplanned_peak_bytes)}, within the budget of {bytes_(result.budget_bytes)}{_reserved(result)}; recomputing adds "
        f"{_ms(result.recompute)} to the {_ms(result.step_ops)} of the step's ops, by the times of {result.device}; {sure}.{_unpriced(result)} Train as before; "
        "`tidemark.remove(model)` undoes it."
    )


def _ms(total) -> str:
    return f"{total['ms']:.3g} ms ({total['low_ms']:.3g} to {total['high_ms']:.3g})"


def _unpriced(result) -> str:
    """Ops that count as nothing, never in silence."""
    if not result.unpriced:
        return ""
    return f" Without a price, and counted as nothing: {listed(result.unpriced)}.{_unpriced_again(result.recompute)}"


def _unpriced_again(total) -> str:
    ops, bytes_ = int(total["unpriced_ops"]), int(total["unpriced_bytes"])
    if not ops:
        return ""
    return f" The plan recomputes {ops} op{'' if ops == 1 else 's'} of {_core.format_bytes(bytes_)} without a price."


def _reserved(result) -> str:
    if not result.reserve_bytes:
        return ""
    return f" (of which {_core.format_bytes(result.reserve_bytes)} are left for what no hook sees)"


class _Progress:
    """One line on stderr that is overwritten."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown

    def __call__(self, text: str | None) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K" + (f"tidemark: {text} ..." if text else ""))
            sys.stderr.flush()
