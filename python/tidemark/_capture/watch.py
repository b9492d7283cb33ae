"""Hooks on modules, optimizers and autograd, for as long as a capture lasts."""

from __future__ import annotations

import contextlib

import torch
import torch.nn.modules.module as module_hooks
import torch.utils.checkpoint
from torch.optim import optimizer as optimizer_module
from torch.utils.hooks import BackwardHook

from .recorder import Recorder


def _wraps_arguments(module) -> bool:
    """Whether the module has full backward hooks, or backward pre-hooks: PyTorch then passes its arguments through a node of its own,
    after the hooks before forward and outside of a checkpoint."""
    if module._backward_pre_hooks or module_hooks._global_backward_pre_hooks:
        return True
    if module_hooks._global_backward_hooks and module_hooks._global_is_full_backward_hook is True:
        return True
    return bool(module._backward_hooks) and module._is_full_backward_hook is True


@contextlib.contextmanager
def module_calls(model, recorder: Recorder):
    """Tells the recorder when a module's forward starts and ends. The hooks stand innermost: what other hooks do is
    outside the call, as it will be outside a checkpoint."""
    handles = []
    names = {module: name for name, module in model.named_modules()}
    stack = recorder.module_stack = []

    deferred: list = []  # (module, keyword arguments) of a call whose arguments a backward hook is about to wrap

    def before(module, args, kwargs):
        if module not in names:
            return  # a copy that the step made of a module, with its hooks
        if _wraps_arguments(module):
            deferred.append((module, kwargs))
        else:
            begin(module, args, kwargs)

    def begin(module, args, kwargs):
        stack.append(names[module])
        if recorder.builder is not None:
            recorder.enter(module, (args, kwargs))

    def after(module, args, kwargs, result):
        if module not in names:
            return
        if stack:
            stack.pop()
        if recorder.builder is not None:
            recorder.leave(result)

    wrap = BackwardHook.setup_input_hook

    def wrapped(self, args):
        args = wrap(self, args)
        if deferred and deferred[-1][0] is self.module:
            module, kwargs = deferred.pop()
            begin(module, args, kwargs)
        return args

    try:
        for module in names:
            handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            handles.append(module.register_forward_hook(after, with_kwargs=True, prepend=True, always_call=True))
        with _replaced(BackwardHook, "setup_input_hook", wrapped):
            yield
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def optimizer_steps(recorder: Recorder, seen: list):
    """Tells the recorder when any optimizer steps; `seen` gets those that did."""

    def before(optimizer, args, kwargs):
        if not any(optimizer is known for known in seen):
            seen.append(optimizer)
        if recorder.builder is not None:
            recorder.optimizer_starts()

    def after(optimizer, args, kwargs):
        if recorder.builder is not None:
            recorder.optimizer_ends()

    first = optimizer_module.register_optimizer_step_pre_hook(before)
    second = optimizer_module.register_optimizer_step_post_hook(after)
    try:
        yield
    finally:
        first.remove()
        second.remove()


@contextlib.contextmanager
def _replaced(owner, name: str, value):
    kept = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)


@contextlib.contextmanager
def autocasts(recorder: Recorder):
    """Which autocast is open cannot be asked from inside an op: autocast switches itself off while it casts."""
    cls = torch.amp.autocast_mode.autocast
    enter, leave = cls.__enter__, cls.__exit__

    def entered(self):
        result = enter(self)
        recorder.autocasts.append(str(self.fast_dtype).removeprefix("torch.") if self._enabled else None)
        return result

    def left(self, *error):
        if recorder.autocasts:
            recorder.autocasts.pop()
        with recorder.deaths_together():  # the casts of weights live in a table ordered by address
            return leave(self, *error)

    with _replaced(cls, "__enter__", entered), _replaced(cls, "__exit__", left):
        yield


@contextlib.contextmanager
def undetoured_functions():
    """PyTorch's Python functions, asked whether somebody overrides them, take a detour when a function mode is open, and
    the detour holds their arguments until they return. A function that lets go of an argument before that (it rebinds the
    name) would free it too late. What they call in turn is seen anyway."""
    with contextlib.ExitStack() as stack:
        for module in (torch.nn.functional, torch.functional):
            for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
                if name in module.__dict__:
                    stack.enter_context(_replaced(module, name, _only_of_subclasses(module.__dict__[name], name)))
        yield


def _only_of_subclasses(asked, name: str):
    plain = (torch.Tensor, torch.nn.Parameter, torch._subclasses.fake_tensor.FakeTensor, type(None))
    if name == "has_torch_function":
        return lambda values: any(type(value) not in plain for value in values) and asked(values)
    return lambda *values: any(type(value) not in plain for value in values) and asked(*values)


@contextlib.contextmanager
def functions(recorder: Recorder):
    """What runs inside an autograd.Function is an atom."""
    cls = torch.autograd.Function
    apply = cls.__dict__["apply"]

    def applied(self, *args, **kwargs):
        if self is torch.utils.checkpoint.CheckpointFunction:
            where = recorder.module_stack[-1] if recorder.module_stack else ""
            recorder.saw_reentrant = True
            recorder.note("checkpointing", f"module {where or '(root)'} checkpoints itself, in the reentrant way")
        recorder.functions.append(self.__name__)
        try:
            return apply.__get__(None, self)(*args, **kwargs)
        finally:
            recorder.functions.pop()

    with _replaced(cls, "apply", classmethod(applied)):
        yield


@contextlib.contextmanager
def checkpoints(recorder: Recorder, ignore: bool):
    """Notices a model that checkpoints itself; with `ignore`, it does not."""
    module = torch.utils.checkpoint
    name = "_checkpoint_without_reentrant_generator"
    if not hasattr(module, name):
        yield
        return
    generator = getattr(module, name)

    def noticed(function, *args, **kwargs):
        where = recorder.module_stack[-1] if recorder.module_stack else ""
        did = "ignored, as asked" if ignore else "recorded as it ran; ignore_checkpointing=True records the step without it"
        recorder.note("checkpointing", f"module {where or '(root)'} checkpoints itself: {did}")
        if ignore:
            yield
            return
        recorder.saw_checkpoint = True
        recorder.checkpoint_depth += 1
        try:
            yield from generator(again(function), *args, **kwargs)
        finally:
            recorder.checkpoint_depth -= 1

    def again(function):
        """The function as its recompute runs it: below a backward there are no function modes, and it has to find what its forward found."""

        def recomputed(*args, **kwargs):
            mode = recorder.function_mode
            with contextlib.nullcontext() if mode is None else mode:
                return function(*args, **kwargs)

        return recomputed

    setattr(module, name, noticed)
    try:
        yield
    finally:
        setattr(module, name, generator)
