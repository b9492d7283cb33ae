"""Turns what happens during a step into the rows and events of a Step.

The recorder is told by others (modes, watch) and knows nothing of how they found out. Two rules run through it:

* A storage is known by the address of its C++ object while it lives; a weak reference on its Python object says when it
  dies. That moment, not a guess, is the `free` event.
* What autograd saves is taken out of the program's hands: `pack` keeps a description, `unpack` makes another tensor. So
  the death of a storage is the death of the *program's* last reference.
"""

from __future__ import annotations

import contextlib
import weakref
from dataclasses import fields, is_dataclass

import torch

from .. import _core
from . import amounts
from .arguments import Described, SavedNumber, described, plain
from .in_place import IN_PLACE, IN_PLACE_IN, Pending, is_engine_sum, is_made_by, may_add_in_place
from .op_facts import OpFacts
from .sources import user_line
from .workspace import NumberSpecimen, specimen

_graph_task = torch._C._current_graph_task_id
_current_node = torch._C._current_autograd_node
_sequence = torch._C._autograd._get_sequence_nr
_Tensor = torch.Tensor

_DTYPE_WORDS = {getattr(torch, word): word for word in _core.DTYPES if hasattr(torch, word)}
_NUMBER_BYTES = {float: 8, int: 8, bool: 1, complex: 16}


class StorageRef(weakref.ref):
    """A storage that the program holds, and what is known of it."""

    __slots__ = ("key", "sid", "version", "bytes", "role", "of", "save", "fixed", "node")

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


class Handle:
    """What autograd keeps in place of a saved tensor. Its death is the release of the save."""

    __slots__ = ("recorder", "save", "tensor", "recipe")

    def __del__(self) -> None:
        self.recorder.released(self.save)


class Recorder:
    def __init__(self, device: str) -> None:
        self.device = device
        self.live: dict[int, StorageRef] = {}
        self.builder = None
        self.running: int | None = None
        self.number_ops: set = set()  # (overload, arguments) with a number in a tensor's place, seen while warming up
        self.saved_numbers: dict = {}  # overload: whether autograd saves that number
        self.checkpoint_depth = 0  # open checkpoints of the model's own
        self.saw_backward = False
        self.saw_checkpoint = False
        self.saw_reentrant = False  # these three: what a Step cannot hold
        self.saw_graph_in_backward = False
        self.saw_backward_in_call = False
        self.watchful = 0  # inside functions that write in place when nobody watches
        self.autocasts: list[str] = []  # open autocast regions
        self.dying: list[int] | None = None  # storages that die together, in an order that means nothing
        self.functions: list[str] = []  # open autograd.Function.apply calls
        self.samples: dict = {}  # (arguments, layouts): (overload, arguments, op), one op of each kind
        self.amounts: dict = {}  # by kind: FLOPs, bytes read and written
        self.notes: list[tuple] = []
        self.function_mode = None  # which a recompute takes up again
        self.on_adopt = None
        self.on_generator = None  # told of every generator of the program's own, before an op draws from it
        self.module_stack: list[str] = []

    # -- storages --

    def follow(self, storage, bytes: int) -> StorageRef:
        ref = StorageRef(storage, self._died)
        ref.key = storage._cdata
        ref.bytes = bytes
        ref.version = 0
        ref.sid = None
        ref.role = "plain"
        ref.of = None
        ref.save = None
        ref.fixed = False
        ref.node = self.running
        self.live[ref.key] = ref
        return ref

    def _died(self, ref: StorageRef) -> None:
        if self.live.get(ref.key) is ref:
            del self.live[ref.key]
        builder = self.builder
        if builder is None or ref.sid is None:
            return
        pending = self.pending
        if pending is not None:
            if pending.first is ref:
                self._settle(in_place=True)
                return
            self._flush()
        if ref.save is not None:
            builder.drop(ref.save)
        elif self.dying is not None:
            self.dying.append(ref.sid)
        else:
            builder.free(ref.sid)

    @contextlib.contextmanager
    def deaths_together(self):
        """Storages that die meanwhile are written down in the order of their making."""
        self.dying = []
        try:
            yield
        finally:
            dying, self.dying = self.dying, None
            for sid in sorted(dying):
                self.builder.free(sid)

    def know(self, tensor, role: str, of: StorageRef | None = None, fixed: bool = False) -> StorageRef:
        """A storage that is there before the step, and what it is for."""
        storage = tensor.untyped_storage()
        ref = self.live.get(storage._cdata)
        if ref is None:
            ref = self.follow(storage, storage.nbytes())
        if ref.role in ("plain", "input"):
            ref.role = role
            ref.of = of
        ref.fixed = ref.fixed or fixed
        if self.builder is not None and ref.sid is None:
            self._add_storage(ref)
        return ref

    def _ref_of(self, tensor) -> StorageRef:
        storage = tensor.untyped_storage()
        ref = self.live.get(storage._cdata)
        if ref is None:  # made where no dispatcher saw it, or before the capture: it counts as there from the start
            ref = self.follow(storage, storage.nbytes())
            ref.role = "input"
            if self.builder is not None:
                self._add_storage(ref)
        return ref

    def _add_storage(self, ref: StorageRef) -> int:
        of = ref.of.sid if ref.of is not None else None
        ref.sid = self.builder.add_storage(ref.bytes, self.device, ref.role, of)
        return ref.sid

    # -- starting and ending --

    def begin(self, builder, module_ids: dict, starting: list[StorageRef]) -> None:
        """From here on everything is written down. `starting` are the storages that get the first ids."""
        self.builder = builder
        self.module_ids = module_ids
        self.pending: Pending | None = None
        self.tensors: dict = {}
        self.layouts: dict = {}
        self.touched: dict = {}  # layout: bytes of its elements, each once
        self.shapes: dict = {}  # by layout
        self.layout_of: list = []  # by tensor
        self.args: dict = {}
        self.sources: dict = {}
        self.regions: dict = {}
        self.passes: dict = {}
        self.saves: list = []  # [node, slot, tensor, hooked], written at the end: the node is known for sure only then
        self.nodes: list = []  # [name, sequence, pass, call, source]
        self.node_ids: dict = {}
        self.slots: dict = {}
        self.open_saves: dict = {}  # node: how many of its saves are not released
        self.unhooked: dict = {}  # node: saves that no hook sees
        self.number_values: dict = {}  # save: the number
        self.op_count = 0
        self.kinds: list = []
        self.node_count = 0
        self.calls: list = []  # open calls: (call, module)
        self.call_counts: dict = {}
        self.running: int | None = None
        self.last_node: int | None = None
        self.finished: int | None = None  # a node that has run and whose saves the engine has not let go of yet
        self.pass_kind = ""
        self.pass_id: int | None = None
        self.micro_batch = 0
        self.backwards = 0
        self.left_module = False
        self.after_backward = False
        self.in_optimizer = False
        self.saw_backward = False
        self.saw_optimizer = False
        self.gradients_of = None
        self.last_sequence = _sequence()
        for ref in starting:
            if ref.sid is None:
                self._add_storage(ref)
        for ref in list(self.live.values()):
            if ref.sid is None:
                if ref.role == "plain":
                    ref.role = "input" if ref.fixed else "plain"
                self._add_storage(ref)
        self._set_pass("forward")

    def end(self) -> None:
        self._flush()
        self._leave_backward_if_left()
        self._release_unhooked(None)
        for node, saves in sorted(self.unhooked.items()):  # of nodes that never ran
            for save in saves:
                self.builder.release(save)
        builder = self.builder
        self.builder = None
        for name, sequence, pass_id, _, _ in self.nodes:
            builder.add_node(name, sequence=sequence, pass_=pass_id)
        for node, slot, tensor, hooked in self.saves:
            builder.add_save(node, slot, tensor, hooked=hooked)

    def write_notes(self, builder) -> None:
        for kind, text, op in self.notes:
            builder.add_note(kind, text, op)

    def note(self, kind: str, text: str, op: int | None = None) -> None:
        entry = (kind, text, op)
        if entry not in self.notes:
            self.notes.append(entry)

    # -- passes --

    def _set_pass(self, kind: str) -> None:
        if kind == self.pass_kind:
            return
        self.pass_kind = kind
        key = (kind, self.micro_batch, self.backwards if kind in ("backward", "recompute") else 0)
        pass_id = self.passes.get(key)
        if pass_id is None:
            pass_id = self.builder.add_pass(kind, micro_batch=self.micro_batch, graph_task=key[2])
            self.passes[key] = pass_id
        self.pass_id = pass_id
        self.builder.phase(pass_id)

    def _locate(self) -> bool:
        """Says in which pass we are; whether in backward."""
        if _graph_task() != -1:
            if not self.saw_in_task:
                self.saw_in_task = True
                self.saw_backward = True
                self.pass_kind = ""
            recomputing = torch.is_grad_enabled()
            if recomputing and self.checkpoint_depth == 0 and not self.saw_checkpoint:
                self.saw_graph_in_backward = True
            if self.calls and not recomputing:
                self.saw_backward_in_call = True
            self._set_pass("recompute" if recomputing else "backward")
            return not recomputing
        if self.saw_in_task:
            self._leave_backward()
        if self.in_optimizer:
            kind = "optimizer"
        elif self.calls:
            kind = "forward"
        elif self.after_backward:
            kind = "optimizer"
        else:
            kind = "loss" if self.left_module else "forward"
        self._set_pass(kind)
        return False

    saw_in_task = False

    def _leave_backward_if_left(self) -> None:
        if self.saw_in_task and _graph_task() == -1:
            self._leave_backward()

    def _leave_backward(self) -> None:
        self._run_node(None)
        self._release_unhooked(None)
        self.saw_in_task = False
        self.after_backward = True
        self.backwards += 1
        self.pass_kind = ""
        if self.gradients_of is not None:
            self.gradients_of()

    def is_gradient(self, parameter_ref: StorageRef, gradient) -> None:
        ref = self.live.get(gradient.untyped_storage()._cdata)
        if ref is None or ref.role not in ("plain", "gradient"):
            return
        ref.role = "gradient"
        ref.of = parameter_ref
        if self.builder is not None and ref.sid is not None:
            self.builder.set_storage_role(ref.sid, "gradient", parameter_ref.sid)

    # -- modules --

    def enter(self, module, given) -> None:
        self._flush()
        in_task = _graph_task() != -1
        if not in_task and not self.calls:
            self._leave_backward_if_left()
            if self.after_backward:
                self.micro_batch += 1
                self.after_backward = False
                self.pass_kind = ""
            self.left_module = False
            self._set_pass("forward")
        else:
            if in_task:
                self.saw_in_task = True
                self.saw_backward = True
            self._set_pass("recompute" if in_task else "forward")
        module_id = self.module_ids[module]
        count_key = (module_id, self.pass_id)
        index = self.call_counts.get(count_key, 0)
        self.call_counts[count_key] = index + 1
        inputs: list = []
        self._tensors_in(given, inputs, 0)
        parent = self.calls[-1] if self.calls else None
        call = self.builder.add_call(module_id, parent=parent, index=index, pass_=self.pass_id, inputs=inputs)
        self.calls.append(call)
        self.builder.enter(call)

    def leave(self, result) -> None:
        self._flush()
        call = self.calls.pop()
        outputs: list = []
        self._tensors_in(result, outputs, 0)
        self.builder.set_call_outputs(call, outputs)
        self.builder.exit(call)
        if not self.calls:
            self.left_module = True

    def abandon_calls(self) -> None:
        """A checkpoint's recompute stopped early: the calls it was in never return."""
        self._flush()
        while self.calls:
            self.builder.exit(self.calls.pop())

    def _tensors_in(self, value, into: list, depth: int) -> None:
        if isinstance(value, _Tensor):
            into.append(self.tensor(value))
        elif depth > 8:
            return
        elif isinstance(value, (list, tuple)):
            for item in value:
                self._tensors_in(item, into, depth + 1)
        elif isinstance(value, dict):
            for item in value.values():
                self._tensors_in(item, into, depth + 1)
        elif is_dataclass(value) and not isinstance(value, type):
            for field in fields(value):
                self._tensors_in(getattr(value, field.name, None), into, depth + 1)

    # -- the optimizer --

    def optimizer_starts(self) -> None:
        self._flush()
        self._leave_backward_if_left()
        self.in_optimizer = True
        self.saw_optimizer = True
        self._set_pass("optimizer")

    def optimizer_ends(self) -> None:
        self._flush()
        self.in_optimizer = False
        self.after_backward = True

    # -- tensors --

    def tensor(self, t) -> int:
        if self.on_adopt is not None:
            t = self.on_adopt(t)
        return self._tensor(self._ref_of(t), t, False)

    def _tensor(self, ref: StorageRef, t, is_view: bool) -> int:
        return self._tensor_of(ref, (t.dtype, t.size(), t.stride(), t.storage_offset()), is_view)

    def _tensor_of(self, ref: StorageRef, layout: tuple, is_view: bool) -> int:
        key = (ref.sid, ref.version, layout)
        found = self.tensors.get(key)
        if found is None:
            dtype, size, stride, offset = layout
            layout_id = self._layout(dtype, size, stride)
            found = self.tensors[key] = self.builder.add_tensor(
                ref.sid, layout_id, version=ref.version, offset=offset, is_view=is_view
            )
            self.layout_of.append(layout_id)
        return found

    def _layout(self, dtype, size, stride) -> int:
        key = (dtype, size, stride)
        layout = self.layouts.get(key)
        if layout is None:
            word = _DTYPE_WORDS.get(dtype)
            if word is None:
                raise _core.Error(f"a tensor has element type {dtype}, which a Step cannot hold")
            layout = self.layouts[key] = self.builder.intern_layout(word, size, stride)
            self.touched[layout] = amounts.touched(dtype, size, stride)
            self.shapes[layout] = size
        return layout

    # -- nodes --

    def _node_id(self, key, name: str, sequence: int) -> int:
        node = self.node_ids.get(key)
        if node is None:
            node = self.node_ids[key] = len(self.nodes)
            self.nodes.append([name, node, self.pass_id, None, None])
        return node

    def _made_node(self) -> int | None:
        """The node that the op about to run has just made, if any."""
        sequence = _sequence()
        if sequence == self.last_sequence:
            return None
        self.last_sequence = sequence
        return self._node_id(sequence - 1, "", sequence - 1)

    def _running_node(self) -> int | None:
        node = _current_node()
        if node is None:
            return None
        name = node.name()
        if name.endswith("AccumulateGrad"):
            variable = node.variable
            found = self._node_id(("accumulate", id(variable)), "AccumulateGrad", 0)
        else:
            sequence = node._sequence_nr()
            found = self._node_id(sequence, name, sequence)
        self.nodes[found][0] = name
        return found

    def _run_node(self, node: int | None) -> None:
        running = self.running
        if node == running:
            return
        if running is not None:
            self.builder.done(running)
            self._release_unhooked(running)
            self.finished = running
        if node is not None:
            self._release_unhooked(None)
            self.builder.node(node)
        self.running = node
        if node is not None:
            self.last_node = node

    def _release_unhooked(self, _node: int | None) -> None:
        finished = self.finished
        if finished is None or _node is not None:
            return
        self.finished = None
        for save in self.unhooked.pop(finished, ()):
            self.builder.release(save)

    # -- what autograd saves --

    def pack(self, t) -> Handle:
        self._flush()
        self._locate()
        ref = self._ref_of(t)
        sequence = _sequence() - 1
        node = self._node_id(sequence, "", sequence)
        if self.nodes[node][3] is None and self.calls:
            self.nodes[node][3] = self.calls[-1]
        slot = self.slots.get(node, 0)
        self.slots[node] = slot + 1
        handle = Handle()
        handle.recorder = self
        handle.save = save = len(self.saves)
        self.saves.append([node, slot, self._tensor(ref, t, False), True])
        self.open_saves[node] = self.open_saves.get(node, 0) + 1
        self.builder.pack(save)
        return handle

    def unpack(self, handle: Handle) -> None:
        self._flush()
        if _graph_task() != -1:
            self._locate()
            node = self._running_node()
            if node is not None:
                self._run_node(node)
                row = self.saves[handle.save]
                if row[0] != node:  # made inside something that made other nodes meanwhile
                    self.open_saves[row[0]] -= 1
                    self.open_saves[node] = self.open_saves.get(node, 0) + 1
                    row[0] = node
                    row[1] = self.slots.get(node, 0)
                    self.slots[node] = row[1] + 1
        self.builder.unpack(handle.save)

    def given_back(self, handle: Handle, t, sid: int | None, version: int) -> None:
        """`t` stands for the saved tensor until it dies; without a storage of its own it is dropped at once."""
        if sid is None:
            self.builder.drop(handle.save)
            return
        ref = self.follow(t.untyped_storage(), 0)
        ref.sid = sid
        ref.version = version
        ref.save = handle.save

    def released(self, save: int) -> None:
        if self.builder is None:
            return
        self._flush()
        self.open_saves[self.saves[save][0]] -= 1
        self.builder.release(save)

    # -- ops --

    def draws(self, facts: OpFacts, args, kwargs) -> None:
        """An op that may draw from a generator is about to run."""
        generator = facts.own_generator(args, kwargs)
        if generator is not None and self.on_generator is not None:
            self.on_generator(generator)

    def describe(self, facts: OpFacts, args, kwargs, recording: bool = True) -> Described:
        """What the op is given; when recording also which tensors of the Step that is, before the op runs: afterwards they
        may have another version."""
        if not recording:
            return described(facts, args, kwargs, ())
        if self.pending is not None:
            self._flush()
        numbers = self._numbers_given_back(facts, args) if self.unhooked and facts.number_slots else ()
        d = described(facts, args, kwargs, numbers)
        refs = d.refs = []
        inputs = d.inputs = []
        layouts = d.layouts
        at = 0
        for t in d.tensors:
            if type(t) is SavedNumber:
                refs.append(None)
                inputs.append(t.tensor)
                continue
            ref = self._ref_of(t)
            refs.append(ref)
            inputs.append(self._tensor(ref, t, False) if numbers else self._tensor_of(ref, layouts[at : at + 4], False))
            at += 4
        return d

    def _numbers_given_back(self, facts: OpFacts, args) -> dict:
        """Positions of numbers that are what the running node saved of its forward op."""
        if _graph_task() == -1 or torch.is_grad_enabled():
            return {}
        node = self._running_node()
        saves = self.unhooked.get(node)
        if saves is None:
            return {}
        found = {}
        for i in facts.number_slots:
            if i < len(args) and type(args[i]) in _NUMBER_BYTES:
                for save in saves:
                    if self.number_values[save] == args[i]:
                        found[i] = SavedNumber(self.saves[save][2])
        return found

    def ran(self, func, facts: OpFacts, d: Described, out, frame) -> None:
        """The op has run."""
        builder = self.builder
        in_backward = self._locate()
        node = None
        call = None
        source = None
        in_place = False
        surely = False
        rules = IN_PLACE
        if in_backward:
            node = self._running_node()
            if node is not None and facts.name == "aten.add.Tensor" and is_engine_sum(d, node, self.open_saves.get(node, 0) > 0):
                node = None
            self._run_node(node)
            of = node if node is not None else self.last_node
            if of is not None:
                _, _, _, call, source = self.nodes[of]
            if node is not None:
                rules = IN_PLACE_IN.get(self.nodes[node][0], IN_PLACE)
            if func in rules:
                if node is None:
                    self._release_unhooked(None)
                    in_place = may_add_in_place(d)
                else:
                    in_place = facts.name != "aten.add.Tensor" and is_made_by(d, node)
                    if rules is not IN_PLACE:
                        surely = in_place = in_place and d.tensors[0].size() == out.size()  # unless it broadcasts
        else:
            if self.calls:
                call = self.calls[-1]
            source = self._source(frame)
            if torch.is_grad_enabled():
                node = self._made_node()
                if node is not None:
                    row = self.nodes[node]
                    row[3] = call
                    row[4] = source
            in_place = self.watchful > 0 and func in IN_PLACE and bool(d.refs) and not d.refs[0].fixed
        if in_place:
            first = d.refs[0]
            self._hold(func, facts, d, out, call, node, source, in_backward)
            self.pending.instead = rules[func]
            if surely:  # what was the first operand lives to the end of its statement, without a storage of its own
                self._settle(in_place=True)
                first.sid = None
        else:
            self._write(func, facts, d, out, call, node, source, in_backward)
        if not in_backward:
            self.last_sequence = _sequence()

    def _source(self, frame) -> int | None:
        found = user_line(frame)
        if found is None:
            return None
        source = self.sources.get(found)
        if source is None:
            code, line = found
            source = self.sources[found] = self.builder.add_source(code.co_filename, line, code.co_name)
        return source

    def _write(self, func, facts: OpFacts, d: Described, out, call, node, source, in_backward: bool) -> None:
        builder = self.builder
        op = self.op_count
        builder.begin(op)
        outputs = self._outputs(facts, d, out)
        for sid in self.fresh:
            builder.alloc(sid)
        numbers = self._saved_number(func, facts, d) if node is not None and not in_backward else ()
        for sid, _, _ in numbers:
            builder.alloc(sid)
        self._add_op(func, facts, d, outputs, call, node, source, in_backward, out=out)
        builder.end(op)
        for sid, tensor, value in numbers:
            save = len(self.saves)
            slot = self.slots.get(node, 0)
            self.slots[node] = slot + 1
            self.saves.append([node, slot, tensor, False])
            builder.pack(save)
            builder.free(sid)
            self.unhooked.setdefault(node, []).append(save)
            self.number_values[save] = value
        for ref, bytes in self.resized.items():
            ref.bytes = bytes
            builder.resize(ref.sid, bytes)

    resized: dict = {}

    def _outputs(self, facts: OpFacts, d: Described, out) -> list:
        """(tensor, alias, input) for everything the op makes; storages that it allocates are left in `fresh`."""
        outputs: list = []
        fresh = self.fresh = []
        refs = d.refs
        mutated: dict = {}
        self.resized = {}
        names = [name for _, name in facts.mutated]
        if facts.undeclared and d.given.get("training", True):
            names += facts.undeclared
        if names:
            for name in names:
                given = d.given.get(name)
                if type(given) is range:
                    for i in given:
                        mutated.setdefault(refs[i], i)
            for ref, i in mutated.items():
                ref.version += 1
                storage = d.tensors[i].untyped_storage()
                if ref.save is None and storage.nbytes() != ref.bytes:
                    self.resized[ref] = storage.nbytes()
        told: set = set()
        live = self.live
        for t in _tensors_of(out):
            storage = t.untyped_storage()
            ref = live.get(storage._cdata)
            if ref is None:
                ref = self.follow(storage, storage.nbytes())
                fresh.append(self._add_storage(ref))
                outputs.append((self._tensor(ref, t, False), "fresh", None))
            elif ref in mutated:
                told.add(ref)
                outputs.append((self._tensor(ref, t, False), "mutates", mutated[ref]))
            elif ref.sid in fresh:
                outputs.append((self._tensor(ref, t, True), "fresh", None))
            else:
                for i, input_ref in enumerate(refs):
                    if input_ref is ref:
                        outputs.append((self._tensor(ref, t, True), "view", i))
                        break
                else:
                    outputs.append((self._tensor(ref, t, True), "existing", None))
        for ref, i in mutated.items():
            if ref not in told:
                outputs.append((self._tensor(ref, d.tensors[i], False), "mutates", i))
        return outputs

    def _add_op(self, func, facts: OpFacts, d: Described, outputs, call, node, source, in_backward: bool, unwatched: bool = False, out=None) -> None:
        kind = (d.args_key, unwatched, tuple([self.layout_of[i] for i in d.inputs]))
        if kind not in self.samples:  # ops of a kind have the same arguments and layouts; one of each is kept, to be measured
            args = [specimen(a) for a in d.args]
            for i in d.numbers:
                args[i] = NumberSpecimen(d.args[i])
            self.samples[kind] = (func, args, {k: specimen(v) for k, v in d.kwargs.items()}, self.op_count)
            self.amounts[kind] = self._amounts(func, d, outputs, out)
        flops, read, written = self.amounts[kind]
        self.kinds.append(kind)
        key = d.args_key
        args = self.args.get(key, -1)
        if args == -1:
            args = self.args[key] = self.builder.intern_args({n: plain(v) for n, v in d.given.items()})
        flags = facts.flags
        if facts.random and facts.is_random(d.given):
            # No checkpoint puts a generator of the program's own back: what was drawn from it is saved.
            is_own = facts.own_generator(d.args, d.kwargs) is not None
            flags = flags + (("must_save",) if is_own else ("random",))
        if unwatched:
            flags = flags + ("unwatched",)
        if self.functions and not in_backward:
            flags = flags + ("opaque",)
        self.builder.add_op(
            facts.name,
            pass_=self.pass_id,
            call=call,
            node=node,
            region=None if in_backward else self._region(call),
            inputs=d.inputs,
            outputs=outputs,
            args=args,
            source=source,
            group=str(d.given.get(facts.group, "")) if facts.group is not None else "",
            flags=flags,
            flops=flops,
            read_bytes=read,
            written_bytes=written,
        )
        self.op_count += 1

    def _amounts(self, func, d: Described, outputs: list, out) -> tuple:
        """(FLOPs, bytes read, bytes written); None where nobody knows."""
        sizes = [self.touched[self.layout_of[i]] for i in d.inputs]
        made = [self.touched[self.layout_of[tensor]] for tensor, alias, _ in outputs if alias == "fresh"]
        changed = [i for _, alias, i in outputs if alias == "mutates"]
        # A pending op's tensors are gone by now; none of those computes anything but sums.
        flops = amounts.flops(func, d.args, d.kwargs, out) if out is not None else 0
        shapes = [self.shapes[self.layout_of[i]] for i in d.inputs]
        return (flops, *amounts.traffic(func, sizes, made, changed, shapes))

    def _region(self, call) -> int | None:
        grad = torch.is_grad_enabled() or self.pass_kind == "optimizer"
        autocast = self.autocasts[-1] if self.autocasts else None
        if grad and autocast is None and self.checkpoint_depth == 0:
            return None
        key = (call, grad, autocast, self.checkpoint_depth)
        region = self.regions.get(key)
        if region is None:
            for _ in range(self.checkpoint_depth):
                region = self.builder.add_region("checkpoint", parent=region, call=call)
            if autocast is not None:
                args = self.builder.intern_args({"dtype": autocast})
                region = self.builder.add_region("autocast", parent=region, call=call, args=args)
            if not grad:
                region = self.builder.add_region("no_grad", parent=region, call=call)
            self.regions[key] = region
        return region

    def _saved_number(self, func, facts: OpFacts, d: Described) -> list:
        """A Python number in a tensor's place becomes a tensor that autograd may keep, out of the hooks' sight."""
        if not self.saved_numbers.get(func):
            return []
        made = []
        for i in facts.number_slots:
            value = d.given.get(facts.names[i])
            bytes = _NUMBER_BYTES.get(type(value))
            if bytes is None:
                continue
            sid = self.builder.add_storage(bytes, self.device, "plain")
            dtype = {float: torch.float64, int: torch.int64, bool: torch.bool, complex: torch.complex128}[type(value)]
            layout = self._layout(dtype, (), ())
            made.append((sid, self.builder.add_tensor(sid, layout), value))
            self.layout_of.append(layout)
        return made

    # -- what is done in place when nobody watches --

    def _hold(self, func, facts: OpFacts, d: Described, out, call, node, source, in_backward: bool) -> None:
        pending = Pending()
        pending.func = func
        pending.facts = facts
        pending.described = d
        pending.call = call
        pending.node = node
        pending.source = source
        pending.in_backward = in_backward
        pending.first = d.refs[0]
        # The result gets its own reference now, and a storage id once it is known whose storage it is.
        storage = out.untyped_storage()
        pending.out_ref = self.follow(storage, storage.nbytes())
        pending.out = (out.dtype, out.size(), out.stride(), out.storage_offset())
        d.tensors = ()  # or they would not die
        d.args = [specimen(a) for a in d.args]
        d.kwargs = {k: specimen(v) for k, v in d.kwargs.items()}
        self.pending = pending

    def _flush(self) -> None:
        """The first operand did not die at once: the result has a storage of its own."""
        if self.pending is not None:
            self._settle(in_place=False)

    def _settle(self, in_place: bool) -> None:
        pending = self.pending
        self.pending = None
        d = pending.described
        builder = self.builder
        ref = pending.out_ref
        func, facts = pending.func, pending.facts
        op = self.op_count
        builder.begin(op)
        if in_place:
            func, more = pending.instead
            d.kwargs.update(more)
            ref.sid = pending.first.sid
            ref.version = pending.first.version + 1
            ref.role = pending.first.role
            ref.of = pending.first.of
        else:
            builder.alloc(self._add_storage(ref))
        dtype, size, stride, offset = pending.out
        layout = self._layout(dtype, size, stride)
        tensor = builder.add_tensor(ref.sid, layout, version=ref.version, offset=offset)
        self.layout_of.append(layout)
        self.tensors[(ref.sid, ref.version, pending.out)] = tensor
        outputs = [(tensor, "mutates", 0) if in_place else (tensor, "fresh", None)]
        self._add_op(func, facts, d, outputs, pending.call, pending.node, pending.source, pending.in_backward, in_place)
        builder.end(op)


def _tensors_of(out):
    if isinstance(out, _Tensor):
        return (out,)
    if isinstance(out, (list, tuple)):
        found = []
        for item in out:
            if isinstance(item, _Tensor):
                found.append(item)
            elif isinstance(item, (list, tuple)):
                found.extend(_tensors_of(item))
        return found
    return ()
