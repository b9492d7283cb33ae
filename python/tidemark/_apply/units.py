"""A plan at work on one model: what happens when a module that it knows is called."""

from __future__ import annotations

import sys
import threading
import warnings
import weakref

import torch

from .. import _core
from . import attributes, chance, forwards, region
from .attributes import Attributes
from .buffers import Snapshot, places_of
from .caches import Caches, take_out
from .calls import Calls, Position, watch_optimizers
from .containers import copied
from .errors import DriftError, drift
from .modes import AligningMode, ForwardMode, Left, RecomputeMode
from .rehearsal import Rehearsal, is_autocast_caching
from .sizes import are_alike, growth, growth_of, signature_of, tensors_in
from .unchanged import Unchanged
from .words import PlanWords, UnitWords, unit_counts


class _Now(threading.local):
    running: tuple = ()  # modules of plans that are being called, by id
    is_inside: bool = False  # a call is under a checkpoint
    recomputing: bool = False


_now = _Now()
_OUR_FILES = frozenset((__file__, forwards.__file__))
_MODULE_FILE = torch.nn.Module._call_impl.__code__.co_filename


class Applied:
    """Everything about a plan that is applied to a model. Refers to modules weakly, so that nothing lives longer for it."""

    def __init__(self, model: torch.nn.Module, words: PlanWords) -> None:
        self.words = words
        self.model = weakref.ref(model)
        self.calls = Calls(words.calls, unit_counts(words), words.early_steps)
        self.audit = None  # who counts what runs, while an audit lasts
        self._places = {unit.buffers: places_of(model, unit.buffers) for unit in words.units if unit.buffers}
        self._rehearsed: dict = {}  # by call and sizes of inputs: whether it uses weights that autocast had cast before
        self._packed: dict = {}  # likewise, and by which inputs have gradients: how many tensors its checkpoint stands for
        self._aligned: dict = {}  # likewise, for other sizes than planned: the unit's words as such inputs have them
        self._has_warned = False
        self._optimizers = watch_optimizers(self.calls, model)

    def close(self) -> None:
        self._optimizers.remove()

    def root(self, name: str, forward, module: torch.nn.Module, args: tuple, kwargs: dict):
        """A call of the model itself."""
        position = self.calls.here()
        if (
            position.is_in_model
            or _now.recomputing
            or not torch.is_grad_enabled()
            or not module.training
            or torch.compiler.is_compiling()
        ):
            return self._in_root(name, forward, module, args, kwargs)
        if self.words.inputs and not self._has_warned:
            given: list = []
            tensors_in((args, kwargs), given)
            signature = signature_of(given)
            del given
            if signature != self.words.inputs and are_alike(signature, self.words.inputs):
                self._warn_of_growth(name, growth_of(signature, self.words.inputs))
        mark = position.mark()
        position.is_in_model = True
        try:
            return self._in_root(name, forward, module, args, kwargs)
        except BaseException:
            position.go_back(mark)
            raise
        finally:
            position.is_in_model = False

    def _in_root(self, name: str, forward, module, args, kwargs):
        if name in self.words.calls:
            return self.call(name, forward, module, args, kwargs)
        return forward(module, *args, **kwargs)

    def call(self, name: str, forward, module: torch.nn.Module, args: tuple, kwargs: dict):
        """A call of the module of that name; `forward` is its own."""
        if not torch.is_grad_enabled() or _now.recomputing:
            return forward(module, *args, **kwargs)
        model = self.model()
        if model is None or not model.training:
            return forward(module, *args, **kwargs)
        outside = _now.running
        if id(module) in outside and not _is_called():
            return forward(module, *args, **kwargs)  # its forward calls itself: no call of the module
        micro_batch, index = self.calls.next(name)
        unit = self.words.by_call.get((name, micro_batch, index))
        _now.running = (*outside, id(module))
        try:
            if unit is None or _now.is_inside:
                return self._plain(forward, module, args, kwargs)
            return self._checkpointed(unit, forward, module, args, kwargs)
        finally:
            _now.running = outside

    def _plain(self, forward, module, args, kwargs):
        try:
            return forward(module, *args, **kwargs)
        except BaseException:
            self.calls.failed()
            raise

    def _checkpointed(self, unit: UnitWords, forward, module, args, kwargs):
        if torch._C._get_tracing_state() is not None:
            _core.fail(unit.module or "(root)", "a model with a plan is being traced", expected="the model alone",
                       remedy="tidemark.remove(model) first")
        given: list = []
        tensors_in((args, kwargs), given)
        signature = signature_of(given)
        key = (unit.module, unit.micro_batch, unit.call, signature)
        packed_key = key, tuple([tensor.requires_grad for tensor in given])
        del given
        is_aligned = True
        if signature != unit.inputs:
            self._compare(unit, signature)
            is_aligned = key in self._aligned
            unit = self._aligned.get(key, unit)
        tally = self.audit.begin(unit) if self.audit is not None else None
        # An op that nobody expects is looked for whenever something is saved. Where nothing is, watching would cost time and
        # decide nothing: there it is done in the first call with inputs of these sizes, and in its recompute. After it, the number of
        # tensors that autograd saves is compared, which costs nothing.
        uses_casts = self._rehearsed.get(key)
        is_rehearsed = uses_casts is not None
        before = None if is_rehearsed else chance.state()
        args, kwargs, caches = take_out(args, kwargs)
        held, held_kwargs = copied(args, kwargs)
        position = self.calls.here()
        position.has_units = True
        run = _Call(unit, forward, module, kwargs, held_kwargs, self._places.get(unit.buffers), tally, caches, position)
        run.is_aligned = is_aligned
        is_watched = (
            bool(unit.saved)
            or tally is not None
            or packed_key not in self._packed
            or uses_casts
            or not is_aligned
            or run.attributes.reads is not None
        )
        if not is_rehearsed or uses_casts:
            run.watch = Rehearsal(unit.module, _CALLER, is_autocast_caching(), not is_rehearsed)
        try:
            result, packed = region.run(
                run,
                args,
                held,
                preserve_rng=unit.preserve_rng,
                early_stop=unit.early_stop,
                context_fn=run.contexts if is_watched else None,
                worded=_Worded(unit),
            )
            if run.forward_mode is not None:
                run.forward_mode.done()
            if not is_aligned:
                self._aligned[key] = run.left.unit
            if not is_rehearsed:
                chance.check(unit, before)
                self._rehearsed[key] = bool(run.left.weights)
            if packed != self._packed.setdefault(packed_key, packed) and not is_watched:
                raise _other_tensors(unit, packed, self._packed[packed_key])
        except BaseException:
            self.calls.failed()
            raise
        finally:
            run.end_forward(held)
        return result

    def _compare(self, unit: UnitWords, signature: tuple) -> None:
        self._warn_of_growth(unit.module, growth(unit, signature))

    def _warn_of_growth(self, module: str, ratio: float) -> None:
        if ratio <= 1 or self._has_warned:
            return
        self._has_warned = True
        words = self.words
        predicted = words.start_bytes + round((words.peak_bytes - words.start_bytes) * ratio)
        over = f", above the budget of {_core.format_bytes(words.budget_bytes)}" if predicted > words.budget_bytes else ""
        warnings.warn(
            f"tidemark: module {module or '(root)'} gets inputs that may need {ratio:.2f} times the memory planned for; the step's peak "
            f"is now estimated at {_core.format_bytes(predicted)} instead of {_core.format_bytes(words.peak_bytes)}{over}. "
            "Capture and plan again with the largest batch.",
            stacklevel=6,
        )


def _other_tensors(unit: UnitWords, packed: int, expected: int) -> DriftError:
    return drift(
        unit.module,
        f"the call left {packed} tensors for backward",
        expected=f"{expected}, as when its ops were last compared with the plan's",
        cause="code that changed, a part that is switched on or off (dropout, a branch, a hook), or routing that differs from call to call",
    )


def _is_called() -> bool:
    """Whether the forward at hand was reached through the module's `__call__`, as what a capture counts, rather than by `.forward(...)`."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in _OUR_FILES:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == _MODULE_FILE


class _Worded:
    """PyTorch found that a recompute saved something else."""

    def __init__(self, unit: UnitWords) -> None:
        self.unit = unit

    def __call__(self, error: Exception) -> DriftError:
        return drift(
            self.unit.module,
            "the recompute of the call did not make what its forward did",
            got=" ".join(str(error).split("\n\nTip:")[0].split("\nTip:")[0].split()),
            cause="the module does something else each time: choices by chance or by counters (routing, layer drop)",
        )


class _Call:
    """The function that a checkpoint runs: first as the forward, later as its recompute."""

    def __init__(
        self, unit: UnitWords, forward, module, kwargs: dict, held_kwargs: dict, places, tally, caches: Caches | None, position: Position
    ) -> None:
        self.unit = unit
        self.forward = forward
        self.module = module
        self.kwargs = kwargs
        self.held_kwargs = held_kwargs
        self.places = places
        self.tally = tally
        self.caches = caches
        self.position = position
        self.is_first = True
        self.is_aligned = True
        self.is_counted = False
        self.before = Snapshot(places) if places else None
        self.attributes = Attributes(module)
        self.reads = None  # set when the forward has ended
        self.watch = None  # who looks at the forward more closely
        self.left = None
        self.forward_mode = None

    def contexts(self):
        self.left = Left()
        mode = ForwardMode if self.is_aligned else AligningMode
        self.forward_mode = mode(self.unit, self.left, self.tally, self.watch)
        self.forward_mode.reads = self.attributes.reads
        return self.forward_mode, RecomputeMode(self.unit, self.left, self.tally)

    def end_forward(self, held: tuple) -> None:
        self.is_first = False
        self.kwargs = self.held_kwargs
        self.attributes.reads = None
        if self.caches is not None:
            self.caches.end_forward()
        restored = frozenset((id(ref()), name) for ref, name in self.places or ())
        self.reads = Unchanged(self.module, held, self.kwargs, restored)
        self.forward_mode = self.watch = self.left = None  # the recompute's mode has what it needs

    def __call__(self, *args):
        kwargs = self.kwargs
        if not self.is_first:
            args, kwargs = copied(args, kwargs)
        if self.caches is not None:
            args, kwargs = self.caches.put_into(args, kwargs)
        outside = _now.is_inside, _now.recomputing
        _now.is_inside = True
        if self.is_first:
            try:
                return self.forward(self.module, *args, **kwargs)
            finally:
                _now.is_inside = outside[0]
        _now.recomputing = True
        if not self.is_counted:
            self.is_counted = True
            self.position.was_recomputed(self.unit.module)
        if self.tally is not None:
            self.tally.recompute()
        after = found = None
        try:
            self.reads.check(self.module, self.unit.module)
            if self.before is not None:
                after = Snapshot(self.places)
                self.before.put_back()
            found = self.attributes.exchange()
            return self.forward(self.module, *args, **kwargs)
        except torch.utils.checkpoint.CheckpointError as error:
            raise _Worded(self.unit)(error) from error
        finally:
            if after is not None:
                after.put_back()
            if found is not None:
                attributes.restore(found)
            _now.is_inside, _now.recomputing = outside


_CALLER = _Call.__call__.__code__
