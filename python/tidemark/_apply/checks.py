"""Whether a plan suits a model, before anything is changed."""

from __future__ import annotations

import sys

import torch

from .. import _core
from .rehearsal import CHECKPOINTS
from .sizes import dtype_name
from .words import PlanWords

_COMPILED = "either a plan or torch.compile: a plan decides about the ops of eager PyTorch, in either order of the two (docs/apply.md)"
_REPLAN = "tidemark.capture and tidemark.plan this model"


def check_kind(model) -> None:
    """Raises Error for what is no model, or a wrapper around one."""
    if not isinstance(model, torch.nn.Module):
        _core.fail("apply", "this is no model", expected="a torch.nn.Module", got=type(model).__name__)
    _check_wrappers(model)


def check(model: torch.nn.Module, words: PlanWords) -> None:
    """Raises Error when the plan cannot be applied to the model."""
    _check_modules(model, words)
    _check_parameters(model, words)
    _check_own_checkpoints(model)
    _check_recorded_checkpoints(words)
    modules = dict(model.named_modules())
    for unit in words.units:
        _check_around(unit.module, modules)
        _check_inside(unit.module, modules[unit.module])


def _check_wrappers(model) -> None:
    kind = type(model).__name__
    if _is_compiled(model):
        _core.fail("apply", "the model is compiled", expected="a model that runs eagerly", remedy=_COMPILED)
    if isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        _core.fail("apply", f"the model is inside a {kind}", expected="the model itself", remedy="plan.apply(model.module)")


def _class_name(module) -> str:
    """A module that is sharded by fully_shard has a class of its own, derived from the model's."""
    cls = type(module)
    if _is_sharded(module):
        cls = next((base for base in cls.__mro__[1:] if not base.__name__.startswith("FSDP")), cls)
    return cls.__name__


def _is_sharded(module) -> bool:
    return any(base.__name__ == "FSDPModule" for base in type(module).__mro__)


def _check_modules(model, words: PlanWords) -> None:
    found = {name: _class_name(module) for name, module in model.named_modules()}
    for name, kind in words.modules:
        got = found.pop(name, None)
        where = name or "(root)"
        if got is None:
            _core.fail(where, "the model has no such module", expected=f"a {kind}", got=_nearest(name, model),
                       remedy=f"the plan is of another model, or the module was renamed; {_REPLAN}")
        if got != kind:
            _core.fail(where, "the module is of another class", expected=kind, got=got,
                       remedy=f"the plan is of another model; {_REPLAN}")
    for name, kind in found.items():
        _core.fail(name, "the plan does not know this module", expected="the modules that were captured", got=f"a {kind}",
                   remedy=f"it was added or renamed; {_REPLAN}")


def _nearest(name: str, model) -> str:
    parent, _, _ = name.rpartition(".")
    try:
        around = model.get_submodule(parent)
    except AttributeError:
        return "nothing of that name"
    children = [child for child, _ in around.named_children()]
    return f"{parent or 'a root'} with {', '.join(children[:6]) or 'no children'}{', ...' if len(children) > 6 else ''}"


def _check_parameters(model, words: PlanWords) -> None:
    found = {
        f"{name}.{attribute}" if name else attribute: parameter
        for name, module in model.named_modules()
        for attribute, parameter in module._parameters.items()
        if parameter is not None
    }
    for name, dtype, sizes, trainable in words.parameters:
        parameter = found.pop(name, None)
        if parameter is None:
            _core.fail(name, "the model has no such parameter", expected=f"{dtype} {list(sizes)}", remedy=_REPLAN)
        if tuple(parameter.shape) != sizes:
            _core.fail(name, "the parameter has another shape", expected=str(list(sizes)), got=str(list(parameter.shape)),
                       remedy=f"the plan is of a model of another size; {_REPLAN}")
        if dtype_name(parameter.dtype) != dtype:
            _core.fail(name, "the parameter has another type", expected=dtype, got=dtype_name(parameter.dtype), remedy=_REPLAN)
        if parameter.requires_grad != trainable:
            words_ = ("frozen", "trainable")
            _core.fail(name, f"the parameter is {words_[parameter.requires_grad]}", expected=f"a {words_[trainable]} one",
                       remedy=f"requires_grad as it was when the step was captured, or {_REPLAN}")
    for name in found:
        _core.fail(name, "the plan does not know this parameter", expected="the parameters that were captured", remedy=_REPLAN)


# How libraries say that a module checkpoints itself, and how it is told not to.
_SWITCHES = {
    "gradient_checkpointing": "model.gradient_checkpointing_disable()",
    "grad_checkpointing": "model.set_grad_checkpointing(False)",
    "use_gradient_checkpointing": "",
    "activation_checkpointing": "",
    "use_activation_checkpointing": "",
    "use_checkpoint": "",
    "use_checkpointing": "",
    "checkpoint_activations": "",
}


def _check_own_checkpoints(model) -> None:
    for name, module in model.named_modules():
        how, remedy = _own_checkpoint(module)
        if how:
            _core.fail(name or "(root)", "the model checkpoints itself", expected="a model that leaves that to the plan", got=how,
                       remedy=remedy or "build the model without it")


def _check_recorded_checkpoints(words: PlanWords) -> None:
    if words.checkpointed:
        outermost = min(words.checkpointed, key=lambda name: len(name.split(".")) if name else 0)
        _core.fail(outermost or "(root)", "the model checkpoints itself", expected="a model that leaves that to the plan",
                   got="a call under a checkpoint of the model's own in the captured step",
                   remedy="take its calls of torch.utils.checkpoint out and capture again, or capture with ignore_checkpointing=True if that is off by now")


def _own_checkpoint(module) -> tuple[str, str]:
    """How the module checkpoints itself, and what to do about it. What its forward calls is seen when it runs."""
    for switch, remedy in _SWITCHES.items():
        if getattr(module, switch, False) is True:
            return f"{switch} is on", remedy or f"{switch} = False"
    kind = type(module).__name__
    if kind in ("CheckpointWrapper", "CheckpointedModule", "ActivationCheckpointWrapper"):
        return f"a {kind}", ""
    own = module.__dict__.get("forward")  # wrappers that exchange it
    own = getattr(own, "func", own)
    name = getattr(own, "__name__", "")
    if "checkpoint" in name or getattr(own, "__module__", "") in CHECKPOINTS:
        return f"its forward is {name}", ""
    contract = sys.modules.get("torch.distributed._composable.contract")
    if contract is not None and "checkpoint" in (contract._get_registry(module) or {}):
        return "torch.distributed._composable.checkpoint", ""
    return "", ""


def _is_compiled(module) -> bool:
    return getattr(module, "_compiled_call_impl", None) is not None or type(module).__name__ == "OptimizedModule"


def _check_around(name: str, modules: dict) -> None:
    """Whoever compiles a module compiles those in it."""
    outer = name
    while outer:
        outer, _, _ = outer.rpartition(".")
        if outer in modules and _is_compiled(modules[outer]):
            _core.fail(outer or "(root)", "the module is compiled, and with it the checkpointed ones inside", expected="modules that run eagerly",
                       got=f"a plan for {name}", remedy=_COMPILED)


def _check_inside(name: str, unit) -> None:
    where = name or "(root)"
    for inner_name, inner in unit.named_modules():
        if isinstance(inner, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
            _core.fail(where, f"{inner_name or 'the module'} is a ScriptModule, whose ops cannot be followed",
                       remedy="not_units=[...] when planning, or the module without torch.jit")
        if _is_compiled(inner):
            _core.fail(where, f"{inner_name or 'the module'} is compiled, so that its ops cannot be followed",
                       expected="modules that run eagerly inside a checkpointed one", remedy=_COMPILED)
        if inner is not unit and _is_sharded(inner):
            _core.fail(where, f"{inner_name} is sharded by fully_shard inside a checkpointed module",
                       expected="sharded modules that are checkpointed themselves, or contain checkpointed ones",
                       remedy="fully_shard the checkpointed module instead, or plan with units=[...] that match sharded ones")
