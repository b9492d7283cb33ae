"""The step that examples/build_a_step.cpp records by hand, against the same step of real PyTorch.

The model runs twice; the second step is compared. A recorder made of a dispatch mode, saved-tensor hooks and weak
references gives the ops and what happens between them. The allocator's own events, from the profiler in a process of
its own, give the bytes.
"""

import contextlib
import functools
import json
import subprocess
import sys
import weakref

import pytest

LEFT_OUT = ("aten.detach.", "profiler.")  # by the example, as its header says


class Training:
    """Two-layer perceptron, SGD, one batch; run() is one step, and on_loss may look at the loss before backward."""

    def __init__(self):
        import torch

        nn = torch.nn
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.x = torch.randn(2, 8)
        self.y = torch.randn(2, 4)

    def run(self, on_loss=lambda loss: None):
        import torch

        self.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(self.model(self.x), self.y)
        on_loss(loss)
        loss.backward()
        self.optimizer.step()


def resident_name(role: str, name: str) -> str:
    return f"{role} {name}"


def plain_args(function, args, kwargs) -> dict:
    import torch

    named = dict(zip((argument.name for argument in function._schema.arguments), args)) | kwargs
    return {name: value for name, value in named.items() if not isinstance(value, torch.Tensor)}


class Recorder:
    """Writes `log`, one tuple for everything that happens while `recording()`.

    Storages are named: those that are there at the start by what they are, others by their number in order of
    allocation. Pack keeps a copy and unpack gives another one, so that the recorder itself holds nothing alive, and the
    death of the second copy tells when the node let go of what it got.
    """

    def __init__(self, training: Training):
        self.log = []
        self.args = []  # of each op, those that are no tensors
        self.is_recording = False
        self.bytes = {}
        self.names = {}
        self.count = 0
        self.node_names = {"MseLossBackward0", "AddmmBackward0", "ReluBackward0"}
        for name, parameter in training.model.named_parameters():
            self.watch(parameter.untyped_storage(), resident_name("parameter", name))
            self.watch(parameter.grad.untyped_storage(), resident_name("gradient", name))
        self.watch(training.x.untyped_storage(), resident_name("input", "0"))
        self.watch(training.y.untyped_storage(), resident_name("input", "1"))

    def watch(self, storage, name) -> None:
        key = storage._cdata
        self.names[key] = name
        self.bytes[name] = storage.nbytes()
        weakref.finalize(storage, self.on_death, key, name)

    def on_death(self, key, name) -> None:
        del self.names[key]
        self.note("free", name)

    def note(self, *entry) -> None:
        if self.is_recording:
            self.log.append(entry)

    def name(self, tensor):
        return self.names[tensor.untyped_storage()._cdata]

    def value(self, tensor):
        return self.name(tensor), tuple(tensor.shape), tensor.stride(), str(tensor.dtype).removeprefix("torch.")

    def values(self, arguments):
        import torch
        from torch.utils._pytree import tree_leaves

        return [self.value(t) for t in tree_leaves(arguments) if isinstance(t, torch.Tensor)]

    def copy(self, tensor, on_death):
        """The same tensor on a copy of its storage, which goes by the same name; on_death is told of its end."""
        import torch
        from torch.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes(), torch.no_grad():
            storage = tensor.untyped_storage().clone()
            copy = torch.empty(0, dtype=tensor.dtype)
            copy.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())
        key = storage._cdata
        self.names[key] = self.name(tensor)

        def end():
            del self.names[key]
            on_death()

        weakref.finalize(storage, end)
        return copy

    def pack(self, tensor):
        value = self.value(tensor)
        self.note("pack", value)
        return self.copy(tensor, lambda: self.note("release", value))

    def unpack(self, packed):
        value = self.value(packed)
        self.note("unpack", value)
        return self.copy(packed, lambda: self.note("drop", value))

    def outputs(self, function, inputs, result):
        """(value, alias, input) of each tensor the op gives; a storage not seen before is fresh."""
        import torch
        from torch.utils._pytree import tree_leaves

        outputs = []
        for tensor in tree_leaves(result):
            if not isinstance(tensor, torch.Tensor):
                continue
            storage = tensor.untyped_storage()
            if storage._cdata not in self.names:
                self.watch(storage, self.count)
                self.count += 1
                outputs.append((self.value(tensor), "fresh", None))
                continue
            name = self.name(tensor)
            source = next(i for i, value in enumerate(inputs) if value[0] == name)
            alias = "mutates" if function._schema.is_mutable else "view"
            outputs.append((self.value(tensor), alias, source))
        return outputs

    def on_op(self, function, args, kwargs):
        name = str(function)
        if name.startswith(LEFT_OUT):
            return function(*args, **kwargs)
        inputs = self.values((args, kwargs))
        self.args.append(plain_args(function, args, kwargs))
        place = len(self.log)
        result = function(*args, **kwargs)
        assert len(self.log) == place, "something died inside an op"
        self.note("op", name, inputs, self.outputs(function, inputs, result))
        return result

    def on_enter(self, name, module, args, kwargs) -> None:
        self.note("enter", name, self.values((args, kwargs)))

    def on_exit(self, name, module, args, result) -> None:
        self.note("exit", name, self.values(result))

    def watch_nodes(self, loss) -> None:
        todo = [loss.grad_fn]
        while todo:
            node = todo.pop()
            if node.name() in self.node_names:
                node.register_prehook(lambda _, name=node.name(): self.note("node", name))
            todo += [following for following, _ in node.next_functions if following is not None]

    @contextlib.contextmanager
    def recording(self, model):
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode

        recorder = self
        self.is_recording = True

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return recorder.on_op(function, args, kwargs or {})

        hooks = []
        for name, module in model.named_modules():
            hooks.append(module.register_forward_pre_hook(functools.partial(self.on_enter, name), with_kwargs=True))
            hooks.append(module.register_forward_hook(functools.partial(self.on_exit, name)))
        with Mode(), torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack):
            yield
        for hook in hooks:
            hook.remove()
        self.is_recording = False


class Reading:
    """The same log from a Step."""

    def __init__(self, step):
        self.step = step
        self.names = self.name_storages()
        self.bytes = {name: step.storages[id].bytes for id, name in self.names.items()}
        self.log = [entry for kind, id in step.events for entry in self.entries(kind, id)]

    def name_storages(self):
        step = self.step
        names = {}
        parameters = {}
        for binding in step.bindings:
            module = step.modules[binding.module].fqn
            parameters[step.tensors[binding.tensor].storage] = f"{module}.{binding.name}"
        allocated = [id for kind, id in step.events if kind == "alloc"]
        inputs = [storage.id for storage in step.storages if storage.role == "input"]
        for storage in step.storages:
            if storage.id in allocated:
                names[storage.id] = allocated.index(storage.id)
            elif storage.role == "input":
                names[storage.id] = resident_name("input", str(inputs.index(storage.id)))
            else:
                owner = storage.id if storage.role == "parameter" else storage.of
                names[storage.id] = resident_name(storage.role, parameters[owner])
        return names

    def value(self, id):
        tensor = self.step.tensors[id]
        return self.names[tensor.storage], tensor.shape, tensor.stride, tensor.dtype

    def entries(self, kind, id):
        step = self.step
        if kind == "begin":
            op = step.ops[id]
            outputs = [(self.value(tensor), alias, source) for tensor, alias, source in op.outputs]
            yield "op", op.name, [self.value(tensor) for tensor in op.inputs], outputs
        elif kind == "free":
            yield kind, self.names[id]
        elif kind in ("pack", "unpack", "drop", "release"):
            yield kind, self.value(step.saves[id].tensor)
        elif kind in ("enter", "exit"):
            call = step.calls[id]
            tensors = call.inputs if kind == "enter" else call.outputs
            yield kind, step.modules[call.module].fqn, [self.value(tensor) for tensor in tensors]
        elif kind == "node":
            yield kind, step.nodes[id].name


@pytest.fixture(scope="module")
def recorded():
    """The Recorder of the second step, and the names of the storages that are the gradients after it."""
    training = Training()
    training.run()
    recorder = Recorder(training)
    with recorder.recording(training.model):
        training.run(on_loss=recorder.watch_nodes)
    gradients = {name: recorder.name(p.grad) for name, p in training.model.named_parameters()}
    return recorder, gradients


def test_ops_shapes_strides_and_aliases_are_those_of_pytorch(example, recorded):
    recorder, _ = recorded
    assert [e for e in Reading(example).log if e[0] == "op"] == [e for e in recorder.log if e[0] == "op"]


def test_arguments_are_those_of_pytorch(example, recorded):
    recorder, _ = recorded
    passed = [{name: args.get(name) for name in op.args} for op, args in zip(example.ops, recorder.args)]
    assert [op.args for op in example.ops] == passed


def test_saved_tensors_and_their_order_are_those_of_pytorch(example, recorded):
    recorder, _ = recorded
    kinds = ("op", "pack", "unpack", "node")
    ours = [e for e in Reading(example).log if e[0] in kinds]
    assert ours == [e for e in recorder.log if e[0] in kinds]


def test_every_event_has_its_place_of_pytorch(example, recorded):
    recorder, _ = recorded
    assert Reading(example).log == recorder.log


def test_storages_have_the_bytes_of_pytorch(example, recorded):
    recorder, _ = recorded
    assert Reading(example).bytes == recorder.bytes


def test_gradients_are_the_storages_that_pytorch_keeps(example, recorded):
    _, gradients = recorded
    reading = Reading(example)
    kept = {}
    for storage in example.storages:
        name = reading.names[storage.id]
        if storage.role == "gradient" and isinstance(name, int):
            kept[reading.names[storage.of].removeprefix("parameter ")] = name
    assert kept == gradients


def test_flops_are_those_of_pytorchs_counter(example):
    from torch.utils.flop_counter import FlopCounterMode

    training = Training()
    training.run()
    counter = FlopCounterMode(display=False)
    with counter:
        training.run()
    assert sum(op.flops for op in example.ops) == counter.get_total_flops()


# --- bytes, from the allocator's own events ---


def measure() -> dict:
    """The allocator's events and the ops of the second of three real steps, in order of time; its own process."""
    from torch.profiler import ProfilerActivity, profile, record_function

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        training = Training()
        for number in range(3):
            with record_function(f"step {number}"):
                training.run()
    moments = []
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            moments.append((event.start_ns(), "bytes", event.nbytes()))
        else:
            moments.append((event.start_ns(), "begin", event.name()))
            moments.append((event.end_ns(), "end", event.name()))
    moments.sort(key=lambda moment: moment[0])
    begin = next(i for i, moment in enumerate(moments) if moment[1:] == ("begin", "step 1"))
    end = next(i for i, moment in enumerate(moments) if moment[1:] == ("end", "step 1"))
    before = sum(what for _, kind, what in moments[:begin] if kind == "bytes")
    return {"bytes_before": before, "moments": [moment[1:] for moment in moments[begin : end + 1]]}


@pytest.fixture(scope="module")
def measured() -> dict:
    run = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def take_op(moments, at, name):
    """The moments before the next op of this name, those inside it, and where it ends."""
    begin = next((i for i in range(at, len(moments)) if moments[i] == ["begin", name]), None)
    assert begin is not None, f"the allocator's record has no further {name}"
    depth = 0
    for end in range(begin, len(moments)):
        depth += {"begin": 1, "end": -1}.get(moments[end][0], 0) if moments[end][1] == name else 0
        if depth == 0:
            return moments[at:begin], moments[begin : end + 1], end + 1


def without_scratch(changes):
    """What an op allocates less what it gives back before it ends: kernels' scratch is no part of a Step."""
    kept = []
    for change in changes:
        if change < 0 and -change in kept:
            del kept[len(kept) - 1 - kept[::-1].index(-change)]
        else:
            kept.append(change)
    return kept


def allocator_timeline(step, measured):
    """(what, total) with the bytes in use at the beginning of every op of the step and after every allocation."""
    total = measured["bytes_before"]
    timeline = []
    at = 0
    for op in step.ops:
        name = "aten::" + op.name.split(".")[1]
        before, inside, at = take_op(measured["moments"], at, name)
        total += sum(what for kind, what in before if kind == "bytes")
        timeline.append((op.name, total))
        for change in without_scratch([what for kind, what in inside if kind == "bytes"]):
            total += change
            timeline.append(("alloc", total))
    total += sum(what for kind, what in measured["moments"][at:] if kind == "bytes")
    timeline.append(("end", total))
    return timeline


def step_timeline(step):
    """The same from the Step: a storage lives while the program, a save or something unpacked holds it."""
    allocated = {id for kind, id in step.events if kind == "alloc"}
    holds = {storage.id: storage.id not in allocated for storage in step.storages}
    change = {"alloc": 1, "free": -1, "pack": 1, "release": -1, "unpack": 1, "drop": -1}
    timeline = []
    for kind, id in step.events:
        if kind in change:
            of_storage = kind in ("alloc", "free")
            holds[id if of_storage else step.tensors[step.saves[id].tensor].storage] += change[kind]
        if kind in ("begin", "alloc"):
            total = sum(step.storages[id].bytes for id, count in holds.items() if count)
            timeline.append((step.ops[id].name if kind == "begin" else "alloc", total))
    timeline.append(("end", sum(step.storages[id].bytes for id, count in holds.items() if count)))
    return timeline


def test_bytes_in_use_at_every_op_and_allocation_are_those_of_pytorchs_allocator(example, measured):
    assert step_timeline(example) == allocator_timeline(example, measured)


if __name__ == "__main__":
    print(json.dumps(measure()))
