"""One capture from beginning to end: swap, warm up, record, put back."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections import defaultdict

import torch

from .. import _core
from . import checks, detours, imitate, state, watch, workspace
from .errors import CaptureError
from .fakes import Fakes, not_traced, quiet
from .left_out import left_out, left_out_text
from .modes import DataDependent, FakeRecordMode, FunctionMode, RecordMode
from .readings import Readings
from .recorder import Recorder

_NO_BACKWARD = (
    "the step ran no backward, so there is nothing to checkpoint; expected a whole training step: zero_grad, forward, loss, "
    "backward, optimizer step"
)


class Options:
    __slots__ = ("target", "workspace", "ignore_checkpointing")

    def __init__(self, target: str, workspace: bool, ignore_checkpointing: bool) -> None:
        self.target = imitate.find_target(target)
        self.workspace = workspace
        self.ignore_checkpointing = ignore_checkpointing


def capture(step_fn, model, optimizer, mode: str, options: Options):
    checks.arguments(step_fn, model, optimizer, mode, options.target)
    if mode == "real":
        return _record(Session(model, optimizer, True, options, step_fn), step_fn)
    try:
        return _record(Session(model, optimizer, False, options, step_fn), step_fn)
    except CaptureError:
        raise
    except Exception as error:
        # Only fake tensors can imitate another device.
        if mode == "fake" or options.target.is_imitated or checks.is_meta(model):
            raise_explained(error, options)
            raise
        # Perhaps the program's own error: then it comes again, from real tensors.
        reason = _why_fakes_failed(error) or _in_one_line(error)
    session = Session(model, optimizer, True, options, step_fn)
    session.recorder.note("real", f"recorded with real tensors, since fake ones cannot follow it: {reason}")
    step = _record(session, step_fn)
    warnings.warn(f"the step was recorded with real tensors, since fake ones cannot follow it: {reason}", stacklevel=3)
    return step


def raise_explained(error: Exception, options: Options) -> None:
    """Says what fake tensors could not do and what to do about it; returns when the error is the program's own."""
    reason = _why_fakes_failed(error)
    if reason is None:
        return
    real = "mode='real' with target='cpu'" if options.target.is_imitated else "mode='real'"
    raise CaptureError(
        f"the step cannot be recorded on fake tensors: {reason}; try {real}, which runs the step on real data and puts "
        "everything back afterwards"
    ) from error


def _record(session: Session, step_fn):
    try:
        with session:
            while not session.is_done:
                step_fn()
                session.end_step()
        return session.result()
    except CaptureError:
        raise
    except _core.Error as error:
        raise CaptureError(_why_not_a_step(session.recorder, error)) from error
    except NotImplementedError as error:
        if "Cannot access storage of" not in str(error):
            raise
        raise CaptureError(
            "the step makes sparse tensors, which have no storage to count; make them dense, for example with "
            f"nn.Embedding(sparse=False) ({error})"
        ) from error


def _why_not_a_step(recorder: Recorder, error: _core.Error) -> str:
    """The step ran, but is none that a Step can hold."""
    if recorder.saw_reentrant:
        cause = "the model checkpoints itself in the reentrant way, which runs a backward inside the backward"
        remedy = "use_reentrant=False, or capture the model without its checkpoints"
    elif recorder.saw_graph_in_backward:
        cause = (
            "backward itself is differentiated (create_graph=True), or an autograd.Function runs a forward and a backward of "
            "its own inside it, as reversible layers do"
        )
        remedy = "leave that term out of the captured step, or use torch.utils.checkpoint with use_reentrant=False instead"
    elif recorder.saw_backward_in_call:
        cause = "a module's forward runs backward() itself"
        remedy = "move backward() out of the module, or capture a module below it"
    else:
        cause = "something in it happens in an order that training steps do not have"
        remedy = "modules and parameters must be there before the step; docs/limitations.md lists what is not recorded"
    return f"the step ran, but cannot be recorded: {cause}; try: {remedy} ({error})"


def _why_fakes_failed(error: Exception) -> str | None:
    """What fake tensors could not do, or None when the error is the program's own."""
    if isinstance(error, DataDependent):
        return str(error)
    if isinstance(error, (CaptureError, KeyboardInterrupt)):
        return None
    from torch._subclasses import fake_tensor

    kinds = tuple(
        kind
        for kind in (
            getattr(fake_tensor, "UnsupportedFakeTensorException", None),
            getattr(fake_tensor, "UnsupportedOperatorException", None),
            getattr(fake_tensor, "DynamicOutputShapeException", None),
            getattr(fake_tensor, "DataDependentOutputException", None),
            getattr(fake_tensor, "UnsupportedMutationAliasingException", None),
        )
        if kind is not None
    )
    words = ("FakeTensor", "fake tensor", "meta device", "Meta tensors", "tensor subclass")
    if isinstance(error, kinds) or any(word in str(error) for word in words):
        return _in_one_line(error)
    return None


def _in_one_line(error: Exception) -> str:
    first, _, _ = str(error).partition("\n")
    return f"{type(error).__name__}: {first}"


class Session:
    """Records the second of the steps that run while it is open."""

    def __init__(self, model, optimizer, real: bool, options: Options, step_fn=None) -> None:
        checks.model(model, real)
        self.model = model
        self.optimizers = checks.optimizers(optimizer) or state.reachable_optimizers(step_fn, model)
        checks.steps(self.optimizers)
        self.real = real
        self.options = options
        self.step_fn = step_fn
        self.recorder = Recorder(options.target.label)
        self.is_done = False
        self._steps = 0
        self._left_out: list = []
        self._builder = None
        self._step = None
        self._steppers: list = []

    # -- open and close --

    def __enter__(self) -> Session:
        self._stack = contextlib.ExitStack()
        try:
            self._open(self._stack)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *error) -> None:
        self.recorder.builder = None
        self.recorder.gradients_of = None
        if not self.is_done:
            self._builder = None
        self._stack.close()

    def _open(self, stack: contextlib.ExitStack) -> None:
        self._keep_state(stack)
        stack.enter_context(state.NoCollection())
        if self.real:
            self.parameters = list(dict.fromkeys(self.model.parameters()))
            around = contextlib.nullcontext()
            self.mode = RecordMode(self.recorder)
        else:
            fakes = Fakes()
            stack.enter_context(quiet())
            stack.callback(_clear_fake_gradients, fakes)
            self.mode = FakeRecordMode(self.recorder, fakes)
            swapped = _swap_model(self.model, fakes, self.mode)
            self.parameters = list(swapped.values())
            for optimizer in self.optimizers:
                _swap_optimizer(optimizer, fakes, swapped, self.mode)
            around = fakes.mode
        for parameter in self.parameters:
            self.recorder.know(parameter, "parameter", fixed=True)
        for buffer in self.model.buffers():
            self.recorder.know(buffer, "buffer", fixed=True)
        stack.enter_context(not_traced())
        stack.enter_context(watch.module_calls(self.model, self.recorder))
        stack.enter_context(watch.optimizer_steps(self.recorder, self._steppers))
        stack.enter_context(watch.autocasts(self.recorder))
        stack.enter_context(watch.functions(self.recorder))
        stack.enter_context(watch.checkpoints(self.recorder, self.options.ignore_checkpointing))
        choices = None
        if self.options.target.is_imitated:
            choices = imitate.Choices(self.recorder, self.options.target)
            for optimizer in self.optimizers:
                imitate.choose_multi_tensor(optimizer, self.recorder)
        stack.enter_context(watch.undetoured_functions())
        others: dict = {}
        if not self.real:
            readings = Readings(self.mode)
            stack.enter_context(readings.of_fakes())
            stack.enter_context(detours.conversions())
            others = readings.functions | detours.Detours(self.mode, self.options.target.is_imitated).functions
        self.recorder.function_mode = stack.enter_context(FunctionMode(self.recorder, choices, others))
        stack.enter_context(around)
        stack.enter_context(self.mode)
        # Until the recorded step begins, pack returns the tensor itself.
        stack.enter_context(torch.autograd.graph.saved_tensors_hooks(self.mode.pack, self.mode.unpack))
        self._began = time.perf_counter()

    def _keep_state(self, stack: contextlib.ExitStack) -> None:
        random_state = state.RandomState(state.reachable_generators(self.step_fn, self.model))
        stack.callback(random_state.put_back)
        self.recorder.on_generator = random_state.keep
        objects = state.Objects()
        for module in self.model.modules():
            objects.keep(module)
        helpers = state.reachable_helpers(self.step_fn)
        others = [inner for module in state.reachable_modules(self.step_fn, self.model) for inner in module.modules()]
        for thing in helpers + others:
            objects.keep(thing)
        stack.callback(objects.put_back)
        optimizers = state.Optimizers()
        stack.callback(optimizers.put_back)
        if self.real:
            values = state.Values()
            stack.callback(values.put_back)
            for parameter in self.model.parameters():
                values.keep(parameter)
                values.keep_gradient(parameter)
            for thing in [*self.model.modules(), *helpers, *others]:
                for tensor in state.own_tensors(thing):
                    values.keep(tensor)
        known = {id(optimizer) for optimizer in self.optimizers}
        more = [one for one in state.reachable_optimizers(self.step_fn) if id(one) not in known]
        for optimizer in self.optimizers + more:
            objects.keep(optimizer)
            optimizers.keep(optimizer)
            if self.real:
                for value in _tensors_in(list(optimizer.state.values())):
                    values.keep(value)

    # -- steps --

    def end_step(self) -> bool:
        """Says that a step has ended; whether the recording is complete."""
        if self.is_done:
            return True
        self._steps += 1
        recorder = self.recorder
        if self._steps == 1:
            if not recorder.saw_backward:
                raise CaptureError(_NO_BACKWARD)
            for stepper in self._steppers:
                if not any(stepper is known for known in self.optimizers):
                    raise CaptureError(
                        f"the step uses an optimizer that capture was not given, a {type(stepper).__name__}; pass all that "
                        "step, as optimizer=[first, second]"
                    )
            self.warm_seconds = time.perf_counter() - self._began
            self._begin()
            self._began = time.perf_counter()
        else:
            recorder.end()
            if not recorder.saw_backward:
                raise CaptureError(_NO_BACKWARD + " (the first call of step_fn ran one, the second did not)")
            self.recorded_seconds = time.perf_counter() - self._began
            self.is_done = True
            self._note_changes()
            self._builder.add_meta("recorded by", f"tidemark {_core.__version__}")
            self._builder.add_meta("torch", torch.__version__)
            self._builder.add_meta("mode", "real" if self.real else "fake")
            self._builder.add_meta("target", self.options.target.name)
            ran = {module_id for module_id, _ in recorder.call_counts}
            called = {module for module, module_id in recorder.module_ids.items() if module_id in ran}
            self._left_out = left_out(self.model, called)
            if self._left_out:
                recorder.note("left out", left_out_text(self._left_out))
            recorder.write_notes(self._builder)
        return self.is_done

    def result(self):
        """The recorded Step; the session is closed."""
        if self._step is None:
            if not self.is_done:
                raise CaptureError("nothing is recorded yet: two steps have to run, and end_step() be called after each")
            self._step = self._builder.finish()
            self._builder = None
            self._step.workspace = None
            self._step.unmeasured = []
            if self._left_out:
                warnings.warn(f"tidemark: {left_out_text(self._left_out)}", stacklevel=5)
            if self.options.workspace:
                began = time.perf_counter()
                flops = {kind: amount[0] for kind, amount in self.recorder.amounts.items()}
                table, skipped = workspace.table(self._step, self.recorder.samples, flops, self.options.target)
                self._step.workspace = table
                self._step.unmeasured = sorted(set(skipped))
                self.workspace_seconds = time.perf_counter() - began
                if self._step.unmeasured:
                    warnings.warn(f"tidemark: {workspace.unmeasured_text(self._step.unmeasured)}", stacklevel=5)
        return self._step

    def _begin(self) -> None:
        recorder = self.recorder
        with self._paused():
            for func in recorder.number_ops:
                recorder.saved_numbers[func] = _saves_number(func)
        builder = self._builder = _core.StepBuilder()
        module_ids: dict = {}
        for name, module in self.model.named_modules():
            parent_name, _, attribute = name.rpartition(".")
            parent = None if module is self.model else module_ids[self.model.get_submodule(parent_name)]
            module_ids[module] = builder.add_module(parent, attribute, type(module).__name__)
        starting: list = []
        owners = {}
        for parameter in self.parameters:
            owners[parameter] = recorder.know(parameter, "parameter", fixed=True)
            starting.append(owners[parameter])
        for buffer in self.model.buffers():
            starting.append(recorder.know(buffer, "buffer", fixed=True))
        for optimizer in self.optimizers:
            for parameter, entries in optimizer.state.items():
                for value in _tensors_in(entries):
                    starting.append(recorder.know(value, "optimizer_state", owners.get(parameter), fixed=True))
        for parameter in self.parameters:
            if parameter.grad is not None:
                recorder.is_gradient(owners[parameter], parameter.grad)
                starting.append(recorder._ref_of(parameter.grad))
        self._during = state.Changes()
        for module in self.model.modules():
            self._during.keep(module)
        recorder.begin(builder, module_ids, starting)
        for module, module_id in module_ids.items():
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    tensor = recorder.tensor(parameter)
                    builder.add_binding(module_id, name, tensor, kind="parameter", trainable=parameter.requires_grad)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    builder.add_binding(module_id, name, recorder.tensor(buffer), kind="buffer", trainable=False)

        def gradients() -> None:
            for parameter in self.parameters:
                gradient = parameter.grad
                if gradient is not None:
                    recorder.is_gradient(owners[parameter], gradient)

        recorder.gradients_of = gradients

    @contextlib.contextmanager
    def _paused(self):
        """Work of our own on real tensors, with autograd as it is outside."""
        with torch.utils._mode_utils.no_dispatch(), torch._C.DisableTorchFunction():
            yield

    def _note_changes(self) -> None:
        names = {id(module): name for name, module in self.model.named_modules()}
        hidden = ("_forward_hooks", "_forward_pre_hooks", "_parameters", "_buffers", "_modules")
        for thing, attribute in self._during.found():
            if id(thing) in names and not attribute.startswith(hidden):
                where = names[id(thing)] or "(root)"
                self.recorder.note("changed", f"module {where} changed its attribute '{attribute}' during the step")


def _tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for item in value.values() for t in _tensors_in(item)]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in _tensors_in(item)]
    return []


def _clear_fake_gradients(fakes: Fakes) -> None:
    """Real tensors that the program made part of the step: a gradient that reached them is fake."""
    for real in fakes.real_leaves():
        if real.is_leaf and real.grad is not None and fakes.is_fake(real.grad):
            real.grad = None


def _swap_model(model, fakes: Fakes, mode: FakeRecordMode) -> dict:
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
                _copy_hooks(parameter, fake)
                parameters[parameter] = fake
                mode.stand_ins[id(parameter)] = fake
            module._parameters[name] = fake
        for name, buffer in module._buffers.items():
            if buffer is None:
                continue
            fake = buffers.get(buffer)
            if fake is None:
                fake = buffers[buffer] = fakes.of(buffer)
                mode.give_shadow(fake, buffer)
            module._buffers[name] = fake
    return parameters


def _copy_hooks(parameter, fake) -> None:
    """What the program does with gradients, it does with fake ones. A hook that runs when a gradient is complete often looks its
    parameter up somewhere (the optimizer of that one), so it is given the real one, with the fake gradient."""

    if not parameter.requires_grad:
        return  # hooks of a parameter that was frozen later have nothing to wait for

    def complete(hook):
        def run(_):
            kept = parameter.grad
            parameter.grad = given = fake.grad
            try:
                hook(parameter)
                if parameter.grad is not given:
                    fake.grad = parameter.grad
            finally:
                parameter.grad = kept

        return run

    for hook in (parameter._backward_hooks or {}).values():
        fake.register_hook(hook)
    for hook in (parameter._post_accumulate_grad_hooks or {}).values():
        fake.register_post_accumulate_grad_hook(complete(hook))


def _swap_optimizer(optimizer, fakes: Fakes, parameters: dict, mode: FakeRecordMode) -> None:
    def faked(value):
        if isinstance(value, torch.Tensor):
            fake = fakes.of(value)
            if value.numel() == 1:
                mode.give_shadow(fake, value)
            return fake
        if isinstance(value, dict):
            return {k: faked(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(faked(v) for v in value)
        return value

    for group in optimizer.param_groups:
        group["params"] = [parameters.get(p, p) for p in group["params"]]
    swapped = defaultdict(dict)
    for parameter, entries in optimizer.state.items():
        swapped[parameters.get(parameter, parameter)] = faked(entries)
    optimizer.state = swapped


def _saves_number(func) -> bool:
    """Whether autograd keeps the tensor that a number in a tensor's place becomes: tried on one element."""
    leaf = torch.ones(1, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t), torch.enable_grad():
        try:
            out = func(leaf.clone(), 0.5)  # a clone, since a leaf cannot be written in place
        except Exception:
            return False
    node = out.grad_fn if isinstance(out, torch.Tensor) else None
    for name in dir(node):
        if name.startswith("_saved_"):
            value = getattr(node, name)
            if isinstance(value, torch.Tensor) and value.dim() == 0:
                return True
    return False
