"""One capture from beginning to end: swap, warm up, record, put back."""

from __future__ import annotations

import contextlib
from collections import defaultdict

import torch

from .. import _core
from . import state, watch
from .fakes import Fakes, not_traced
from .modes import DataDependent, FakeRecordMode, FunctionMode, RecordMode
from .recorder import Recorder


def capture(step_fn, model, optimizer, *, mode: str, target: str):
    if mode == "fake":
        return _fake(step_fn, model, optimizer, target)
    if mode == "real":
        return _real(step_fn, model, optimizer, target)
    try:
        return _fake(step_fn, model, optimizer, target)
    except Exception as error:
        return _real(step_fn, model, optimizer, target, because=str(error))


def _fake(step_fn, model, optimizer, target):
    recorder = Recorder("cpu")
    fakes = Fakes()
    mode = FakeRecordMode(recorder, fakes)
    with contextlib.ExitStack() as stack:
        random_state = state.RandomState()
        stack.callback(random_state.put_back)
        objects = state.Objects()
        for module in model.modules():
            objects.keep(module)
        for helper in state.reachable_helpers(step_fn):
            objects.keep(helper)
        stack.callback(objects.put_back)
        optimizers = state.Optimizers()
        if optimizer is not None:
            objects.keep(optimizer)
            optimizers.keep(optimizer)
        stack.callback(optimizers.put_back)
        stack.enter_context(state.NoCollection())
        leaves = _Leaves()
        stack.callback(leaves.put_back, fakes)
        parameters = _swap_model(model, fakes)
        if optimizer is not None:
            _swap_optimizer(optimizer, fakes, parameters, mode)
        return _run(step_fn, model, optimizer, recorder, mode, fakes.mode, list(parameters.values()))


def _real(step_fn, model, optimizer, target, because=None):
    recorder = Recorder("cpu")
    mode = RecordMode(recorder)
    with contextlib.ExitStack() as stack:
        random_state = state.RandomState()
        stack.callback(random_state.put_back)
        objects = state.Objects()
        for module in model.modules():
            objects.keep(module)
        for helper in state.reachable_helpers(step_fn):
            objects.keep(helper)
        stack.callback(objects.put_back)
        values = state.Values()
        parameters = list(dict.fromkeys(model.parameters()))
        for parameter in parameters:
            values.keep(parameter)
            values.keep_gradient(parameter)
        for buffer in model.buffers():
            values.keep(buffer)
        optimizers = state.Optimizers()
        if optimizer is not None:
            objects.keep(optimizer)
            optimizers.keep(optimizer)
            kept = [(entries, dict(entries)) for entries in optimizer.state.values()]
            for entries, _ in kept:
                for value in entries.values():
                    if isinstance(value, torch.Tensor):
                        values.keep(value)
        stack.callback(optimizers.put_back)
        stack.callback(values.put_back)
        stack.enter_context(state.NoCollection())
        if because is not None:
            recorder.note("real", f"recorded with real tensors, because fake ones could not follow: {because}")
        return _run(step_fn, model, optimizer, recorder, mode, contextlib.nullcontext(), parameters)


class _Leaves:
    """Real tensors that the program made part of the step: a gradient that reached them is fake."""

    def put_back(self, fakes: Fakes) -> None:
        for real in fakes.real_leaves():
            if real.is_leaf and real.grad is not None and fakes.is_fake(real.grad):
                real.grad = None


def _swap_model(model, fakes: Fakes) -> dict:
    """Fake parameters and buffers in place of the real ones; ties stay ties."""
    parameters: dict = {}
    buffers: dict = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            fake = parameters.get(parameter)
            if fake is None:
                fake = torch.nn.Parameter(fakes.of(parameter.data), requires_grad=parameter.requires_grad)
                fake.__dict__.update(parameter.__dict__)
                if parameter.grad is not None:
                    fake.grad = fakes.of(parameter.grad)
                parameters[parameter] = fake
            module._parameters[name] = fake
        for name, buffer in module._buffers.items():
            if buffer is None:
                continue
            fake = buffers.get(buffer)
            if fake is None:
                fake = buffers[buffer] = fakes.of(buffer)
            module._buffers[name] = fake
    return parameters


def _swap_optimizer(optimizer, fakes: Fakes, parameters: dict, mode: FakeRecordMode) -> None:
    for group in optimizer.param_groups:
        group["params"] = [parameters.get(p, p) for p in group["params"]]
    swapped = defaultdict(dict)
    for parameter, entries in optimizer.state.items():
        fake_entries = {}
        for name, value in entries.items():
            if isinstance(value, torch.Tensor):
                fake = fakes.of(value)
                if value.numel() == 1:
                    mode.shadows.set(fake, value.detach().clone())
                value = fake
            fake_entries[name] = value
        swapped[parameters.get(parameter, parameter)] = fake_entries
    optimizer.state = swapped


LAST = None


def _run(step_fn, model, optimizer, recorder: Recorder, mode: RecordMode, around, parameters: list):
    global LAST
    LAST = recorder
    steppers: list = []
    with (
        not_traced(),
        watch.module_calls(model, recorder),
        watch.optimizer_steps(recorder, steppers),
        watch.autocasts(recorder),
        watch.functions(recorder),
    ):
        for parameter in parameters:
            recorder.know(parameter, "parameter", fixed=True)
        for buffer in model.buffers():
            recorder.know(buffer, "buffer", fixed=True)
        functions = FunctionMode(recorder)
        with functions, around, mode:
            step_fn()
        for func in recorder.number_ops:
            recorder.saved_numbers[func] = _saves_number(func)
        builder, module_ids, starting = _prepare(model, optimizer or (steppers[0] if steppers else None), recorder, parameters)
        with functions, around, mode, torch.autograd.graph.saved_tensors_hooks(mode.pack, mode.unpack):
            _begin(recorder, builder, module_ids, starting, model, parameters)
            step_fn()
            recorder.end()
    return builder.finish()


def _saves_number(func) -> bool:
    """Whether autograd keeps the tensor that a number in a tensor's place becomes: tried on one element."""
    x = torch.ones(1, requires_grad=True)
    try:
        out = func(x, 0.5)
    except Exception:
        return False
    node = out.grad_fn
    for name in dir(node):
        if name.startswith("_saved_"):
            value = getattr(node, name)
            if isinstance(value, torch.Tensor) and value.dim() == 0:
                return True
    return False


def _prepare(model, optimizer, recorder: Recorder, parameters: list):
    builder = _core.StepBuilder()
    module_ids: dict = {}
    names = {module: name for name, module in model.named_modules()}
    for name, module in model.named_modules():
        parent_name, _, attribute = name.rpartition(".")
        parent = module_ids[model.get_submodule(parent_name)] if module is not model else None
        module_ids[module] = builder.add_module(parent, attribute, type(module).__name__)
    starting: list = []
    by_parameter = {}
    for parameter in parameters:
        ref = recorder.know(parameter, "parameter", fixed=True)
        by_parameter[parameter] = ref
        starting.append(ref)
    for buffer in model.buffers():
        starting.append(recorder.know(buffer, "buffer", fixed=True))
    if optimizer is not None:
        for parameter, entries in optimizer.state.items():
            for value in entries.values():
                if isinstance(value, torch.Tensor):
                    starting.append(recorder.know(value, "optimizer_state", by_parameter.get(parameter), fixed=True))
    for parameter in parameters:
        if parameter.grad is not None:
            recorder.is_gradient(by_parameter[parameter], parameter.grad)
            ref = recorder._ref_of(parameter.grad)
            starting.append(ref)
    return builder, module_ids, starting


def _begin(recorder: Recorder, builder, module_ids, starting, model, parameters) -> None:
    recorder.begin(builder, module_ids, starting)
    for module, module_id in module_ids.items():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                builder.add_binding(
                    module_id, name, recorder.tensor(parameter), kind="parameter", trainable=parameter.requires_grad
                )
        for name, buffer in module._buffers.items():
            if buffer is not None:
                builder.add_binding(module_id, name, recorder.tensor(buffer), kind="buffer", trainable=False)

    def gradients() -> None:
        for parameter in parameters:
            gradient = parameter.grad
            if gradient is not None:
                recorder.is_gradient(recorder._ref_of(parameter), gradient)

    recorder.gradients_of = gradients
