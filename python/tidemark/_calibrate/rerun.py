"""A recorded step, run again op by op on made-up values.

Each op works on what the ops before it have made, and storages come, change their size and go where the record says: caches
and allocator are then in the state that a real step finds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Generator

import torch

from .op_call import OpCall, make_up_floats

if TYPE_CHECKING:
    from .._core import Step


class Rerun:
    def __init__(self, step: Step, device: str, now: Callable[[], int]) -> None:
        self._device, self._now = device, now
        self._wait = torch.cuda.synchronize if device != "cpu" else None
        self._events = [(event[0], event[1]) for event in step.events]
        self._resizes = list(step.resizes)
        self._tensors = [(t.storage, t.layout, t.offset) for t in step.tensors]
        self._layouts = [(getattr(torch, l.dtype), tuple(l.shape), tuple(l.stride)) for l in step.layouts]
        self._saved = [self._tensors[save.tensor][0] for save in step.saves]
        self._inputs = [list(op.inputs) for op in step.ops]
        self._outputs = [[(tensor, alias == "fresh") for tensor, alias, _ in op.outputs] for op in step.ops]
        self._calls: list[OpCall | None] = []  # None: the op cannot be run
        for op in step.ops:
            try:
                self._calls.append(OpCall(op, device))
            except (AttributeError, TypeError, ValueError):  # an op of a library that is not loaded, or not as recorded
                self._calls.append(None)
        self._dtype_of: dict[int, torch.dtype] = {}  # of a storage: the type of the first tensor in it
        for storage, layout, _ in self._tensors:
            self._dtype_of.setdefault(storage, self._layouts[layout][0])
        self._first_bytes = [s.bytes for s in step.storages]
        made = {operand for kind, operand in self._events if kind == "alloc"}
        self._resident = [i for i in range(len(self._first_bytes)) if i not in made]
        changed = {operand for kind, operand in self._events if kind == "free"} | {s for s, _ in self._resizes}
        self._bytes = list(self._first_bytes)
        self._views: dict[int, torch.Tensor] = {}  # by tensor, while its storage is there
        self._views_of: dict[int, list[int]] = {}
        # From one run to the next.
        self._kept = {i: self._filled(i) for i in self._resident if i not in changed}
        self._storages: dict[int, Any] = dict(self._kept)
        self._holders: dict[int, int] = {}

    def once(self, before: Callable[[int], None] | None = None) -> dict[int, int]:
        """By op, nanoseconds. Ops that could not be run are missing. `before` is called with each op's id, untimed."""
        times: dict[int, int] = {}
        for op in self.walk(times):
            if before:
                before(op)
        return times

    def walk(self, times: dict[int, int]) -> Generator[int, None, None]:
        """The step's ops, each run when the next one is asked for, and its nanoseconds put into `times`. One walk at a time."""
        self._bytes = list(self._first_bytes)
        for i in self._resident:
            if i not in self._kept:
                self._storages[i] = self._filled(i)
        self._holders = dict.fromkeys(self._resident, 1)
        try:
            for kind, operand in self._events:
                if kind == "begin":
                    yield operand
                    self._run(operand, times)
                elif kind == "alloc":
                    self._hold(operand)
                elif kind == "free":
                    self._let_go(operand)
                elif kind in ("pack", "unpack"):
                    self._hold(self._saved[operand])
                elif kind in ("drop", "release"):
                    self._let_go(self._saved[operand])
                elif kind == "resize":
                    self._resize(*self._resizes[operand])
        finally:  # also of a walk that nobody goes on with
            for storage in [s for s in self._storages if s not in self._kept]:
                self._forget(storage)

    @property
    def alive(self) -> set[int]:
        """The storages that somebody held at the end of the last run."""
        return {storage for storage, holders in self._holders.items() if holders}

    def _hold(self, storage: int) -> None:
        self._holders[storage] = self._holders.get(storage, 0) + 1

    def _let_go(self, storage: int) -> None:
        self._holders[storage] -= 1
        if not self._holders[storage]:
            self._forget(storage)

    def _forget(self, storage: int) -> None:
        self._storages.pop(storage, None)
        for tensor in self._views_of.pop(storage, ()):
            self._views.pop(tensor, None)

    def _resize(self, storage: int, count: int) -> None:
        """The op that ran may have done so; a program that resizes a storage by hand has no op for it."""
        self._bytes[storage] = count
        held = self._storages.get(storage)
        if held is not None and held.nbytes() != count:
            held.resize_(count)

    def _filled(self, storage: int) -> Any:
        dtype = self._dtype_of.get(storage, torch.uint8)
        count = -(-self._bytes[storage] // dtype.itemsize)
        flat = torch.zeros(count, dtype=dtype, device=self._device)
        if dtype.is_floating_point:
            make_up_floats(flat)
        return flat.untyped_storage()

    def _tensor(self, tensor: int) -> torch.Tensor:
        found = self._views.get(tensor)
        if found is not None:
            return found
        storage, layout, offset = self._tensors[tensor]
        if storage not in self._storages:
            self._storages[storage] = self._filled(storage)
        dtype, shape, stride = self._layouts[layout]
        found = torch.empty(0, dtype=dtype, device=self._device).set_(self._storages[storage], offset, shape, stride)
        self._remember(tensor, storage, found)
        return found

    def _remember(self, tensor: int, storage: int, found: torch.Tensor) -> None:
        self._views[tensor] = found
        self._views_of.setdefault(storage, []).append(tensor)

    def _run(self, op: int, times: dict[int, int]) -> None:
        call = self._calls[op]
        if call is None:
            return
        now, wait, func = self._now, self._wait, call.func
        try:
            args, kwargs = call.arguments([self._tensor(t) for t in self._inputs[op]])
            start = now()
            out = func(*args, **kwargs)
            if wait:
                wait()
            times[op] = now() - start
        except Exception:  # made-up values do not suit every op
            self._calls[op] = None
            times.pop(op, None)
            return
        self._keep(self._outputs[op], out)

    def _keep(self, outputs: list, out: Any) -> None:
        """What the op has made stands for its outputs; what it should have made and has not is made up when somebody asks
        for it."""
        found: list[torch.Tensor] = []
        for item in out if isinstance(out, (list, tuple)) else (out,):
            found.extend(t for t in (item if isinstance(item, (list, tuple)) else (item,)) if isinstance(t, torch.Tensor))
        # Results come in the order of the schema; changed inputs that are not returned stand among the outputs, too.
        returned = outputs if len(found) == len(outputs) else [o for o in outputs if o[1]]
        if len(found) < len(returned):
            return
        for (tensor, is_fresh), result in zip(returned, found):
            storage, layout, offset = self._tensors[tensor]
            mine = result.untyped_storage()
            if is_fresh and mine.nbytes() >= self._bytes[storage]:
                self._storages[storage] = mine
            elif storage not in self._storages or self._storages[storage]._cdata != mine._cdata:
                continue
            dtype, shape, stride = self._layouts[layout]
            if result.dtype is dtype and result.shape == shape and result.stride() == stride and result.storage_offset() == offset:
                self._remember(tensor, storage, result)
