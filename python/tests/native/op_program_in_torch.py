"""A program of op_programs.py in PyTorch: its step as the capture records it."""

from __future__ import annotations

import torch

import tidemark

from .op_programs import is_parameter


def _value(dtype: str, sizes):
    if dtype in ("int64", "bool"):
        return torch.zeros(sizes, dtype=getattr(torch, dtype))
    return torch.rand(sizes, dtype=getattr(torch, dtype))


def _argument(value, tensors: dict):
    if isinstance(value, str):
        if value.startswith("$"):
            return tensors[value[1:]]
        return getattr(torch, value.removeprefix("torch.")) if value.startswith("torch.") else value
    return [_argument(item, tensors) for item in value] if isinstance(value, list) else value


def _op(name: str):
    _, op, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, op), overload)


class Program(torch.nn.Module):
    def __init__(self, program, style: str) -> None:
        super().__init__()
        values, self.calls = program
        self.style = style
        for name, (dtype, sizes) in values.items():
            if is_parameter(name, dtype):
                setattr(self, name, torch.nn.Parameter(_value(dtype, sizes)))

    def forward(self, inputs: dict):
        tensors = dict(inputs)
        for name in self._parameters:
            parameter = self._parameters[name]
            tensors[name] = torch.ops.aten.sin.default(parameter) if self.style == "inside" else parameter
        counted = []
        for op, arguments, results in self.calls:
            made = _op(op)(**{key: _argument(value, tensors) for key, value in arguments.items()})
            made = [made] if isinstance(made, torch.Tensor) else list(made)
            counted = [t for name, t in zip(results, made) if not name.startswith("_") and t.is_floating_point()]
            tensors.update(zip(results, made))
            del made
        for name in list(tensors):  # in the order in which they were made
            del tensors[name]
        return counted


def captured(program, style: str, mode: str = "fake"):
    torch.manual_seed(0)
    model = Program(program, style)
    inputs = {name: _value(*value) for name, value in program[0].items() if not is_parameter(name, value[0])}
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)

    def step_fn():
        optimizer.zero_grad()
        total = None
        results = model(inputs)
        while results:
            result = results.pop(0)
            if style == "inside":
                result = torch.ops.aten.sigmoid.default(result)
            part = torch.ops.aten.sum.default(result)
            del result
            total = part if total is None else torch.ops.aten.add.Tensor(total, part)
            del part
        total.backward()
        optimizer.step()

    return tidemark.capture(step_fn, model, optimizer, mode=mode, workspace=False)
