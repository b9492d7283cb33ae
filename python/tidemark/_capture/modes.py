"""The dispatch mode and the saved-tensor hooks: how the recorder learns of ops and of what autograd keeps."""

from __future__ import annotations

import sys

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .arguments import Described
from .fakes import CURES, Fakes, undispatched
from .memo import NOT_KNOWN, Memo
from .op_facts import facts_of
from .recorder import Handle, Recorder
from .shadows import KEEP_VALUES, Shadows, worth_following
from .sources import place_of

_Tensor = torch.Tensor
_FakeTensor = torch._subclasses.fake_tensor.FakeTensor
_FAKE = torch._C._TorchDispatchModeKey.FAKE
_unset_mode = torch._C._unset_dispatch_mode
_set_mode = torch._C._set_dispatch_mode
# Functions that write some of their intermediate results in place, unless somebody watches.
_WATCHFUL = {
    torch._C._nn.scaled_dot_product_attention,
    torch.nn.functional.linear,
    torch._C._nn.cross_entropy_loss,
    torch.nn.functional.cross_entropy,
    torch.nn.functional.multi_head_attention_forward,
}


class DataDependent(Exception):
    """Fake tensors cannot tell a value or a shape that the program asks for."""


def _is_of(storage, args) -> bool:
    return any(isinstance(a, _Tensor) and a.untyped_storage()._cdata == storage._cdata for a in args)


class RecordMode(TorchDispatchMode):
    """Sees every op."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """The guard against being compiled costs more than the recording; compiled models are not recorded."""
        return False

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        facts = facts_of(func)
        if facts.ignored:
            return func(*args, **kwargs)
        recorder = self.recorder
        if facts.generator is not None:
            recorder.draws(facts, args, kwargs)
        if facts.is_lift and recorder.builder is not None:
            out = func(*args, **kwargs)
            recorder.ran(func, facts, recorder.describe(facts, (), {}), out, sys._getframe(1))
            return out
        if recorder.builder is None:
            out = func(*args, **kwargs)
            self.warm(func, facts, args, out)
            return out
        described = recorder.describe(facts, args, kwargs)
        out = func(*args, **kwargs)
        recorder.ran(func, facts, described, out, sys._getframe(1))
        return out

    def warm(self, func, facts, args, out) -> None:
        """Before the recorded step: only which storages there are."""
        recorder = self.recorder
        if not recorder.saw_backward and torch._C._current_graph_task_id() != -1:
            recorder.saw_backward = True
        for t in out if isinstance(out, (list, tuple)) else (out,):
            if isinstance(t, _Tensor):
                storage = t.untyped_storage()
                if storage._cdata not in recorder.live:
                    ref = recorder.follow(storage, storage.nbytes())
                    if _is_of(storage, args):  # a view of what was there before
                        ref.role = "input"
            elif isinstance(t, (list, tuple)):
                self.warm(func, facts, args, t)
        if args and func not in recorder.number_ops:
            for i in facts.number_slots:
                if i < len(args) and not isinstance(args[i], _Tensor) and args[i] is not None:
                    recorder.number_ops.add(func)

    # -- what autograd saves --

    def pack(self, t):
        recorder = self.recorder
        if recorder.builder is None:
            return t
        handle = recorder.pack(t)
        ref = recorder._ref_of(t)
        if ref.fixed:
            handle.tensor = t
            handle.recipe = None
        else:
            handle.tensor = None
            with undispatched():
                storage = t.untyped_storage()
                kept = torch.empty(storage.nbytes(), dtype=torch.uint8)
                kept.untyped_storage().copy_(storage)
            handle.recipe = (kept, t.dtype, t.storage_offset(), t.size(), t.stride(), ref.sid, ref.version)
        return handle

    def unpack(self, handle):
        if not isinstance(handle, Handle):
            return handle
        recorder = self.recorder
        recording = recorder.builder is not None
        if recording:
            recorder.unpack(handle)
        if handle.recipe is None:
            if recording:
                recorder.given_back(handle, None, None, 0)
            return handle.tensor
        kept, dtype, offset, size, stride, sid, version = handle.recipe
        with undispatched():
            t = torch.empty(0, dtype=dtype)
            t.set_(kept.clone().untyped_storage(), offset, size, stride)
        if recording:
            recorder.given_back(handle, t, sid, version)
        return t


class FunctionMode(TorchFunctionMode):
    """Knows which of PyTorch's Python functions is running, where that decides how an op is done."""

    def __init__(self, recorder: Recorder, choices, others: dict) -> None:
        super().__init__()
        self.recorder = recorder
        self.choices = choices  # of the device that is imitated
        self._special = dict.fromkeys(_WATCHFUL, self._watched) | others

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if self.choices is not None:
            instead = self.choices.of(func)
            if instead is not None:
                func = instead
        special = self._special.get(func)
        if special is None:
            return func(*args, **kwargs) if kwargs else func(*args)
        return special(func, args, kwargs or {})

    def _watched(self, func, args, kwargs):
        self.recorder.watchful += 1
        try:
            return func(*args, **kwargs)
        finally:
            self.recorder.watchful -= 1


class FakeRecordMode(RecordMode):
    """The same over fake tensors: real tensors are replaced, known values followed, cures applied."""

    def __init__(self, recorder: Recorder, fakes: Fakes) -> None:
        super().__init__(recorder)
        self.fakes = fakes
        self.memo = Memo(fakes)
        self.shadows = Shadows()
        self.stand_ins: dict = {}  # by id of a real parameter: the fake in its place
        self._fake_class = _FakeTensor
        recorder.on_adopt = self.faked

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        facts = facts_of(func)
        if facts.is_device:
            return args[0].device if type(args[0]) is not self._fake_class else args[0].fake_device
        kwargs = kwargs or {}
        if facts.is_lift:
            return self._lift(func, facts, args, sys._getframe(1))
        if self._has_real(args) or (kwargs and self._has_real(kwargs.values())):
            args = [self._all_faked(a) for a in args]
            kwargs = {k: self._all_faked(v) for k, v in kwargs.items()}
        recorder = self.recorder
        if facts.generator is not None:
            recorder.draws(facts, args, kwargs)
        if facts.ignored:
            if facts.is_layout_only:
                return self._run(func, facts, recorder.describe(facts, args, kwargs, recording=False))
            out = func(*args, **kwargs)
            self._follow_values(func, facts, args, kwargs, out)
            return out
        described = recorder.describe(facts, args, kwargs, recorder.builder is not None)
        if facts.is_item:
            out = self._item(facts, args)
            if recorder.builder is not None:
                recorder.ran(func, facts, described, out, sys._getframe(1))
            return out
        out = self._run(func, facts, described)
        if recorder.builder is None:
            self.warm(func, facts, args, out)
        else:
            recorder.ran(func, facts, described, out, sys._getframe(1))
        return out

    def _lift(self, func, facts, args, frame):
        """A tensor that Python made from numbers: no dispatcher saw its allocation, so it counts as made here."""
        real = args[0]
        out = func(real)
        if worth_following(real.dtype, real.numel()) and not isinstance(real, self._fake_class):
            with undispatched():
                out._tidemark_shadow = real.clone()
            out.constant = None  # the fake mode's own way to follow values, for single numbers: a second one is not needed
        recorder = self.recorder
        if recorder.builder is None:
            self.warm(func, facts, (), out)
        else:
            recorder.ran(func, facts, recorder.describe(facts, (), {}), out, frame)
        return out

    def _has_real(self, values) -> bool:
        fake_class = self._fake_class
        for value in values:
            if isinstance(value, _Tensor):
                if not isinstance(value, fake_class):
                    return True
            elif type(value) in (list, tuple) and value and self._has_real(value):
                return True
        return False

    def faked(self, t):
        return t if isinstance(t, self._fake_class) else self._adopt(t)

    def _adopt(self, real):
        stand_in = self.stand_ins.get(id(real))  # a parameter that the program kept for itself
        if stand_in is not None:
            return stand_in
        fake = self.fakes.of(real)
        recorder = self.recorder
        storage = fake.untyped_storage()
        if storage._cdata not in recorder.live:
            recorder.know(fake, "input")
        if getattr(fake, "_tidemark_shadow", None) is None:
            self.give_shadow(fake, real)
        return fake

    def give_shadow(self, fake, real) -> None:
        if real.device.type == "cpu" and worth_following(real.dtype, real.numel()):
            with undispatched(), torch.no_grad():
                fake._tidemark_shadow = real.detach().clone()

    def _all_faked(self, value):
        if isinstance(value, _Tensor):
            return self.faked(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self._all_faked(item) for item in value)
        return value

    def _run(self, func, facts, d: Described):
        args, kwargs = d.args, d.kwargs
        memo = self.memo
        key = None if d.numbers else memo.key(facts, d.args_key, d.tensors, d.layouts)
        if key is not None:
            out = memo.result(key, d.tensors)
            if out is not NOT_KNOWN:
                self._follow_values(func, facts, args, kwargs, out)
                return out
        cure = CURES.get(func)
        try:
            out = self._fake(func, args, kwargs) if cure is None else cure(func, args, kwargs)
        except (
            torch._subclasses.fake_tensor.DataDependentOutputException,
            torch._subclasses.fake_tensor.DynamicOutputShapeException,
        ):
            return self._from_values(func, facts, args, kwargs)
        if key is not None:
            memo.keep(key, func, d.tensors, d.layouts, out)
        self._follow_values(func, facts, args, kwargs, out)
        return out

    def _fake(self, func, args, kwargs):
        """What `func(*args, **kwargs)` comes to under the fake mode, without the way through the dispatcher. The mode
        expects to be off while it works."""
        mode = _unset_mode(_FAKE)
        if mode is None:
            return func(*args, **kwargs)
        try:
            return mode.dispatch(func, (self._fake_class,), args, kwargs)
        finally:
            _set_mode(mode)

    def _follow_values(self, func, facts, args, kwargs, out) -> None:
        shadows = self.shadows
        if facts.name in KEEP_VALUES:
            self.recorder.note("assumed", "gradients are finite: the gradient scaler lets the optimizer step")
            return
        first = next((a for a in args if isinstance(a, _Tensor)), None)
        if first is not None and getattr(first, "_tidemark_shadow", None) is None:
            if facts.mutated:
                shadows.spoil(facts, args, kwargs)
            return  # the usual case, found out cheaply
        if isinstance(out, _Tensor):
            if not worth_following(out.dtype, out.numel()):
                if facts.mutated:
                    shadows.spoil(facts, args, kwargs)
                return
        known = shadows.arguments(args, kwargs)
        if known is None:
            if facts.mutated:
                shadows.spoil(facts, args, kwargs)
            return
        with undispatched():
            try:
                value = func(*known[0], **known[1])
            except Exception:
                if facts.mutated:
                    shadows.spoil(facts, args, kwargs)
                return
        shadows.attach(out, value)

    def _from_values(self, func, facts, args, kwargs):
        """An op whose result or shape depends on values: from the values, where they are known."""
        known = self.shadows.arguments(args, kwargs)
        if known is None and func is torch.ops.aten.index.Tensor:
            positions = self._positions(args[1])
            if positions is not None:
                return func(args[0], positions)
        if known is None and func is torch.ops.aten.masked_select.default:
            tensor, mask = args[0], self.shadows.get(args[1])
            if mask is not None:
                with undispatched():
                    count = int(mask.expand(torch.broadcast_shapes(tensor.size(), mask.size())).sum())
                return self.fakes.fresh(count * tensor.itemsize, tensor.dtype, 0, (count,), (1,))
        if known is None and func is torch.ops.aten._ctc_loss.Tensor:
            lengths = self.shadows.get(args[3])
            if lengths is not None and args[0].dim() == 3:
                return self._ctc_loss(args[0], lengths)
        if known is None:
            raise DataDependent(
                f"the result of {facts.name} depends on values that fake tensors do not have, "
                f"at {place_of(sys._getframe(2))}{self._in_module()}"
            )
        with undispatched():
            value = func(*known[0], **known[1])
        return self._fakes_of(value)

    def _ctc_loss(self, log_probs, target_lengths):
        """What the kernel returns: the losses, and for every position of every target, with blanks between, a number for each
        point in time."""
        with undispatched():
            longest = int(target_lengths.max()) if target_lengths.numel() else 0
        times, batch, _ = log_probs.size()
        states = 2 * longest + 1
        shapes = (((batch,), (1,)), ((batch, times, states), (times * states, states, 1)))
        dtype = log_probs.dtype
        return tuple(
            self.fakes.fresh(size[0] * stride[0] * dtype.itemsize, dtype, 0, size, stride) for size, stride in shapes
        )

    def _positions(self, indices):
        """Masks whose values are known, as the positions they select: then the shape is known, whatever is indexed."""
        found = []
        for index in indices:
            if isinstance(index, _Tensor) and index.dtype in (torch.bool, torch.uint8):
                shadow = self.shadows.get(index)
                if shadow is None:
                    return None
                with undispatched():
                    selected = shadow.nonzero(as_tuple=True)
                found += [self._fakes_of(position) for position in selected]
            else:
                found.append(index)
        return found

    def _fakes_of(self, value):
        if isinstance(value, _Tensor):
            fake = self.fakes.fresh(
                value.untyped_storage().nbytes(), value.dtype, value.storage_offset(), value.size(), value.stride()
            )
            fake._tidemark_shadow = value
            return fake
        if isinstance(value, (list, tuple)):
            return type(value)(self._fakes_of(item) for item in value)
        return value

    def _item(self, facts, args):
        t = args[0]
        shadow = self.shadows.get(t)
        if shadow is not None:
            with undispatched():
                return shadow.item()
        constant = getattr(t, "constant", None)
        if constant is not None:
            with undispatched():
                return constant.item()
        self.placeholder(t, place_of(sys._getframe(2)))
        return 1.0

    def placeholder(self, t, place: str) -> None:
        """Says that 1.0 stands for what the program reads there; only numbers that steer nothing may be read so."""
        if t.dtype.is_floating_point:
            self.recorder.note("placeholder", f"a number read at {place} depends on data; 1.0 was used instead")
            return
        kind = str(t.dtype).removeprefix("torch.")
        raise DataDependent(
            f"the program reads a value of type {kind} (aten._local_scalar_dense) that depends on data, at {place}"
            f"{self._in_module()}"
        )

    def _in_module(self) -> str:
        stack = self.recorder.module_stack
        return f", in module {stack[-1] or '(root)'}" if stack else ", outside of the model"

    # -- what autograd saves --

    def pack(self, t):
        recorder = self.recorder
        if recorder.builder is None:
            return t
        fake = self.faked(t)
        handle = recorder.pack(fake)
        ref = recorder._ref_of(fake)
        if ref.fixed:
            handle.tensor = t
            handle.recipe = None
        else:
            handle.tensor = None
            shadow = self.shadows.get(fake)
            handle.recipe = (ref.bytes, t.dtype, t.storage_offset(), t.size(), t.stride(), ref.sid, ref.version, shadow)
        return handle

    def unpack(self, handle):
        if not isinstance(handle, Handle):
            return handle
        recorder = self.recorder
        recording = recorder.builder is not None
        if recording:
            recorder.unpack(handle)
        recipe = handle.recipe
        if recipe is None:
            if recording:
                recorder.given_back(handle, None, None, 0)
            return handle.tensor
        bytes, dtype, offset, size, stride, sid, version, shadow = recipe
        t = self.fakes.fresh(bytes, dtype, offset, size, stride)
        if shadow is not None:
            t._tidemark_shadow = shadow
        if recording:
            recorder.given_back(handle, t, sid, version)
        return t
