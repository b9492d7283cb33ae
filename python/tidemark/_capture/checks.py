"""What a capture is given, looked at before anything is touched: each problem is its own sentence."""

from __future__ import annotations

import sys

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .errors import CaptureError

MODES = ("auto", "fake", "real")


def arguments(step_fn, model, optimizer, mode: str, target) -> None:
    if not callable(step_fn):
        raise CaptureError(
            f"step_fn is not callable; expected a function without arguments that runs one training step, got a "
            f"{type(step_fn).__name__}"
        )
    if not isinstance(model, torch.nn.Module):
        raise CaptureError(f"the model is not a torch.nn.Module; got a {type(model).__name__}")
    if mode not in MODES:
        raise CaptureError(f"unknown mode {mode!r}; expected one of {', '.join(MODES)}")
    if target.is_imitated and mode == "real":
        raise CaptureError(f"target {target.name!r} is imitated on fake tensors; use mode='fake' or 'auto'")
    own = {id(p) for p in model.parameters()}
    for one in optimizers(optimizer):
        if not isinstance(one, torch.optim.Optimizer):
            raise CaptureError(f"the optimizer is not a torch.optim.Optimizer; got a {type(one).__name__}")
        if not any(id(p) in own for group in one.param_groups for p in group["params"]):
            raise CaptureError(
                "the optimizer is not this model's: none of its parameters belongs to the model; was it made before the "
                "model was moved, wrapped or rebuilt?"
            )


def optimizers(given) -> list:
    """None, an optimizer or several of them, as a list."""
    if given is None:
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]


def steps(listed) -> None:
    """Of the optimizers, whether one step of theirs is like the next."""
    for one in listed:
        if isinstance(one, torch.optim.LBFGS):
            raise CaptureError(
                "the optimizer is an LBFGS, which calls its closure as often as values ask for and keeps a history that grows for "
                f"{one.param_groups[0]['history_size']} iterations, so that no one step tells the memory of the others; capture a "
                "step with another optimizer"
            )


def is_meta(model) -> bool:
    return any(p.is_meta for p in model.parameters())


def _modules(model) -> None:
    compiled = getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", ())
    for name, module in model.named_modules():
        where = f"module '{name}'" if name else "the model"
        if isinstance(module, torch.jit.ScriptModule):
            raise CaptureError(
                f"{where} is a ScriptModule, which runs where no hook sees it; capture the model before it is scripted or "
                "traced"
            )
        if isinstance(module, compiled):
            raise CaptureError(
                f"{where} is compiled, so that its ops are no longer PyTorch's own; capture the model before "
                "torch.compile, and compile it after the plan is applied"
            )


def model(model, real: bool) -> None:
    _modules(model)
    devices: dict = {}
    for name, tensor in list(model.named_parameters()) + list(model.named_buffers()):
        if isinstance(tensor, FakeTensor):
            raise CaptureError(
                f"the model is already on fake tensors ('{name}' is one); give capture the model as built, real or on the "
                "meta device"
            )
        if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
            raise CaptureError(f"'{name}' has no shape yet (a lazy module); run the model once before the capture")
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
            raise CaptureError(
                f"'{name}' is a {type(tensor).__name__}, a tensor subclass that capture does not know; expected plain "
                "parameters and buffers; capture the model before it is wrapped or quantized"
            )
        if tensor.layout != torch.strided:
            raise CaptureError(f"'{name}' has layout {tensor.layout}; only strided tensors can be recorded")
        devices.setdefault(tensor.device, name)
    if len(devices) > 1:
        listed = ", ".join(f"'{name}' on {device}" for device, name in devices.items())
        raise CaptureError(f"the model is on several devices ({listed}); capture one device at a time")
    if real and is_meta(model):
        raise CaptureError("the model is on the meta device, so its step cannot run for real; use mode='fake'")
