"""Captured steps of deliberately awkward modules, each with the facts that must be in its record."""

import copy
import warnings

import pytest

import tidemark

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

pytestmark = pytest.mark.fast
B, W = 4, 8  # batch and width: a float activation has 4 * 8 * 4 = 128 bytes
ACTIVATION = 4 * B * W


def captured(model, *batch, loss=None, mode="fake", optimizer=torch.optim.SGD, **options):
    optimizer = optimizer(model.parameters(), lr=0.1) if optimizer is not None else None
    loss = loss or (lambda out: out.sum())
    return tidemark.capture_batch(model, batch, loss, optimizer, mode=mode, workspace=False, **options)


def x(*size):
    return torch.randn(*(size or (B, W)))


def fqns(step):
    names = []
    for module in step.modules:
        parent = names[module.parent] if module.parent is not None else ""
        names.append(".".join(part for part in (parent, module.name) if part))
    return names


def calls_of(step, fqn):
    names = fqns(step)
    return [call for call in step.calls if names[call.module] == fqn]


def forward_ops(step):
    return [op for op in step.ops if step.passes[op.pass_].kind in ("forward", "loss")]


def names_of(ops):
    return [op.name for op in ops]


def saved_storages(step):
    return {step.tensors[save.tensor].storage for save in step.saves}


class Wrap(nn.Module):
    """A module with a linear layer `a` whose forward is the given function."""

    def __init__(self, forward, **children):
        super().__init__()
        self.a = nn.Linear(W, W)
        for name, child in children.items():
            setattr(self, name, child)
        self._forward = forward

    def forward(self, *args, **kwargs):
        return self._forward(self, *args, **kwargs)


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_a_module_called_twice_is_two_calls(mode):
    step = captured(Wrap(lambda m, v: m.a(m.a(v))), x(), mode=mode)
    assert [(call.index, step.passes[call.pass_].kind) for call in calls_of(step, "a")] == [(0, "forward"), (1, "forward")]
    first, second = calls_of(step, "a")
    assert second.inputs == first.outputs


def test_recursion_nests_calls_of_one_module():
    def forward(m, v, depth=2):
        return m.a(v) if depth == 0 else m(torch.relu(v), depth - 1)

    step = captured(Wrap(forward), x())
    root = calls_of(step, "")
    assert [call.index for call in root] == [0, 1, 2]
    assert [call.parent for call in root] == [None, 0, 1]
    assert calls_of(step, "a")[0].parent == 2


def test_tied_embeddings_are_one_storage_with_two_bindings():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(10, W)
            self.head = nn.Linear(W, 10, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, ids):
            return self.head(self.tokens(ids))

    step = captured(Tied(), torch.zeros(B, dtype=torch.int64))
    weights = [binding for binding in step.bindings if binding.name == "weight"]
    assert len(weights) == 2
    assert len({step.tensors[binding.tensor].storage for binding in weights}) == 1
    # One weight: the two gradients are added up into one.
    assert sum(storage.role == "gradient" for storage in step.storages) == 2  # the last step's, and this one's


def test_an_in_place_residual_mutates():
    def forward(m, v):
        y = m.a(v)
        y += v
        return y

    step = captured(Wrap(forward), x())
    add = next(op for op in forward_ops(step) if op.name == "aten.add_.Tensor")
    ((tensor, alias, position),) = add.outputs
    assert (alias, position) == ("mutates", 0)
    assert step.tensors[tensor].version == 1


def test_writing_through_a_view_mutates_the_base():
    def forward(m, v):
        y = m.a(v)
        y.view(-1)[0:4].mul_(2)
        return y

    step = captured(Wrap(forward), x())
    linear = next(op for op in step.ops if op.name == "aten.addmm.default")
    base = step.tensors[linear.outputs[0][0]].storage
    mul = next(op for op in forward_ops(step) if op.name == "aten.mul_.Tensor")
    assert step.tensors[mul.outputs[0][0]].storage == base


@pytest.mark.parametrize("p, is_random", [(0.0, False), (0.5, True)])
def test_dropout_is_random_only_when_it_draws(p, is_random):
    step = captured(Wrap(lambda m, v: F.dropout(m.a(v), p)), x())
    assert any("random" in op.flags for op in forward_ops(step)) == is_random


def test_batch_norm_updates_its_buffers():
    step = captured(nn.Sequential(nn.Linear(W, W), nn.BatchNorm1d(W)), x())
    buffers = {step.tensors[b.tensor].storage: b.name for b in step.bindings if b.kind == "buffer"}
    mutated = {
        buffers[step.tensors[tensor].storage]
        for op in forward_ops(step)
        for tensor, alias, _ in op.outputs
        if alias == "mutates" and step.tensors[tensor].storage in buffers
    }
    assert mutated == {"running_mean", "running_var", "num_batches_tracked"}


def test_frozen_and_low_rank_layers_get_gradients_only_where_asked():
    model = Wrap(lambda m, v: m.a(v) + m.up(m.down(v)), down=nn.Linear(W, 2, bias=False), up=nn.Linear(2, W, bias=False))
    model.a.requires_grad_(False)
    step = captured(model, x())
    trainable = {binding.name: binding.trainable for binding in step.bindings if fqns(step)[binding.module] == "a"}
    assert trainable == {"weight": False, "bias": False}
    owners = {step.storages[s.of].bytes for s in step.storages if s.role == "gradient"}
    assert owners == {2 * W * 4}  # of `down` and `up`, both 2 x 8 floats


def test_autocast_regions():
    def forward(m, v):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = m.a(v)
        return m.a(y.float())

    step = captured(Wrap(forward), x())
    matmuls = [op for op in forward_ops(step) if op.name == "aten.addmm.default"]
    regions = [step.regions[op.region].kind if op.region is not None else None for op in matmuls]
    assert regions == ["autocast", None]
    dtypes = [step.layouts[step.tensors[op.outputs[0][0]].layout].dtype for op in matmuls]
    assert dtypes == ["bfloat16", "float32"]


def test_keyword_only_tensors_are_inputs_of_the_call():
    class Child(nn.Module):
        def forward(self, v, *, scale):
            return v * scale

    step = captured(Wrap(lambda m, v, s: m.child(m.a(v), scale=s), child=Child()), x(), x(W))
    (call,) = calls_of(step, "child")
    shapes = [tuple(step.layouts[step.tensors[t].layout].shape) for t in call.inputs]
    assert shapes == [(B, W), (W,)]


def test_tensors_in_containers_are_inputs_of_the_call():
    class Child(nn.Module):
        def forward(self, values):
            return {"sum": values["pair"][0] + values["pair"][1], "name": "child"}

    step = captured(Wrap(lambda m, v: m.child({"pair": [m.a(v), v]})["sum"], child=Child()), x())
    (call,) = calls_of(step, "child")
    assert len(call.inputs) == 2 and len(call.outputs) == 1


def test_a_tensor_from_a_closure_is_there_from_the_start():
    table = x(W)
    step = captured(Wrap(lambda m, v: m.a(v) * table), x())
    mul = next(op for op in forward_ops(step) if op.name == "aten.mul.Tensor")
    storage = step.tensors[mul.inputs[1]].storage
    assert step.storages[storage].role == "input"
    assert ("alloc", storage) not in set(step.events)


def test_no_grad_blocks_save_nothing():
    def forward(m, v):
        with torch.no_grad():
            scale = torch.sigmoid(m.a(v))
        return m.a(v) * scale

    step = captured(Wrap(forward), x())
    sigmoid = next(op for op in forward_ops(step) if op.name == "aten.sigmoid.default")
    assert step.regions[sigmoid.region].kind == "no_grad"
    assert sigmoid.node is None


def test_detach_shares_the_storage_and_ends_the_gradient():
    step = captured(Wrap(lambda m, v: m.a(v) * m.a(v).detach()), x())
    assert "aten.detach.default" not in names_of(step.ops)
    mul = next(op for op in forward_ops(step) if op.name == "aten.mul.Tensor")
    saved = [save for save in step.saves if save.node == mul.node]
    assert len(saved) == 1  # only the detached factor is needed for a gradient


def test_a_custom_function_is_an_atom_that_saves_what_it_says():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            ctx.save_for_backward(v)
            return v * v

        @staticmethod
        def backward(ctx, gradient):
            (v,) = ctx.saved_tensors
            return 2 * gradient * v

    step = captured(Wrap(lambda m, v: Square.apply(m.a(v))), x())
    mul = next(op for op in forward_ops(step) if op.name == "aten.mul.Tensor")
    assert "opaque" in mul.flags
    names = [step.nodes[save.node].name for save in step.saves]
    assert "SquareBackward" in names


def test_hooks_on_modules_stay_outside_the_call():
    model = Wrap(lambda m, v: m.a(v))
    model.a.register_forward_hook(lambda module, args, out: out * 2)
    step = captured(model, x())
    mul = next(op for op in forward_ops(step) if op.name == "aten.mul.Tensor")
    assert fqns(step)[step.calls[mul.call].module] == ""
    assert len(model.a._forward_hooks) == 1


def test_micro_batches_have_passes_of_their_own():
    model = nn.Linear(W, W)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [x(), x(), x()]

    def step_fn():
        optimizer.zero_grad()
        for batch in batches:
            model(batch).sum().backward()
        optimizer.step()

    step = tidemark.capture(step_fn, model, optimizer, mode="fake", workspace=False)
    assert [(p.kind, p.micro_batch) for p in step.passes if p.kind == "forward"] == [("forward", i) for i in range(3)]
    assert [p.micro_batch for p in step.passes if p.kind == "backward"] == [0, 1, 2]
    accumulated = [op.name for op in step.ops if step.passes[op.pass_].kind == "backward" and op.name == "aten.add_.Tensor"]
    assert len(accumulated) == 4  # weight and bias, in the second and the third micro-batch


def test_a_model_that_checkpoints_itself_is_recognised():
    from torch.utils.checkpoint import checkpoint

    model = Wrap(lambda m, v: checkpoint(lambda u: torch.relu(m.a(u)), v, use_reentrant=False))
    step = captured(model, x())
    assert "recompute" in {p.kind for p in step.passes}
    assert any(note.kind == "checkpointing" and "ignore_checkpointing" in note.text for note in step.notes)
    ignored = captured(model, x(), ignore_checkpointing=True)
    assert "recompute" not in {p.kind for p in ignored.passes}
    assert len(ignored.saves) > len(step.saves)


def test_nested_checkpoints_nest_their_regions():
    from torch.utils.checkpoint import checkpoint

    def inner(m, v):
        return checkpoint(lambda u: torch.relu(m.a(u)), v, use_reentrant=False)

    model = Wrap(lambda m, v: checkpoint(lambda u: inner(m, u), v, use_reentrant=False))
    step = captured(model, x())
    relu = next(op for op in forward_ops(step) if op.name == "aten.relu.default")
    region = step.regions[relu.region]
    assert region.kind == "checkpoint" and step.regions[region.parent].kind == "checkpoint"


def test_outputs_that_are_not_tensors():
    class Child(nn.Module):
        def forward(self, v):
            return v.shape[0], None, "text", v * 2

    step = captured(Wrap(lambda m, v: m.child(m.a(v))[3], child=Child()), x())
    (call,) = calls_of(step, "child")
    assert len(call.outputs) == 1


def test_a_buffer_updated_in_forward_and_an_attribute_set_in_it():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))
            self.a = nn.Linear(W, W)
            self.last = None

        def forward(self, v):
            self.count += 1
            self.last = self.a(v)
            return self.last

    model = Counter()
    step = captured(model, x())
    assert any(note.kind == "changed" and "'last'" in note.text for note in step.notes)
    assert model.last is None and model.count.item() == 0


def test_a_lambda_saves_wrapped_numbers_that_hooks_do_not_see():
    step = captured(Wrap(lambda m, v: m.a(v) * 0.5), x())
    unhooked = [save for save in step.saves if not save.hooked]
    assert len(unhooked) == 1
    assert step.storages[step.tensors[unhooked[0].tensor].storage].bytes == 8  # a float64


def test_a_model_on_the_meta_device():
    model = nn.Linear(W, W, device="meta")
    step = captured(model, x())
    assert sum(s.bytes for s in step.storages if s.role == "parameter") == 4 * (W * W + W)
    assert model.weight.is_meta


def test_numbers_read_for_logging_are_placeholders():
    seen = []
    model = nn.Linear(W, W)
    step = captured(model, x(), loss=lambda out: seen.append(out.sum().item()) or out.sum())
    assert seen == [1.0, 1.0]
    assert any(note.kind == "placeholder" for note in step.notes)


def test_values_read_without_an_op():
    """Formatted numbers, lists and arrays: placeholders where they depend on data, else what they are; and no op that a real
    tensor would not need."""
    model = nn.Linear(8, 4)
    labels, weights = torch.tensor([0, 1, 2, 3]), torch.tensor([0.5, 0.25])
    read = []

    def step_fn():
        model.zero_grad()
        losses = nn.functional.cross_entropy(model(torch.ones(4, 8)), labels, reduction="none")
        losses.mean().backward()
        losses = losses.detach()
        read[:] = [f"{losses[0]:.2f}", losses.tolist(), list(losses.numpy()), list(losses.bfloat16().float().__array__())]
        assert list(labels.numpy()) == labels.tolist() == [0, 1, 2, 3]
        assert (labels + 1).tolist() == list((labels + 1).numpy()) == [1, 2, 3, 4]
        assert f"{weights.sum()}" == "0.75" and weights.__array__("float64").dtype == "float64"

    fake = tidemark.capture(step_fn, model, mode="fake", workspace=False)
    assert read == ["1.00", [1.0] * 4, [1.0] * 4, [1.0] * 4]
    assert [note.kind for note in fake.notes].count("placeholder") == 1  # all on one line
    real = tidemark.capture(step_fn, model, mode="real", workspace=False)
    assert read[1] == list(map(float, read[2])) != [1.0] * 4
    assert [op.name for op in fake.ops] == [op.name for op in real.ops]
    assert fake.fingerprint == real.fingerprint


def test_whole_numbers_read_as_an_array_are_an_error():
    model = nn.Linear(8, 4)

    def step_fn():
        model(torch.ones(4, 8)).sum().backward()
        model.weight.detach().argmax(-1).numpy()

    with pytest.raises(tidemark.CaptureError, match=r"reads a value of type int64 .*test_capture.py:\d+, outside of the model"):
        tidemark.capture(step_fn, model, mode="fake", workspace=False)


def test_one_hot_is_the_kernels_own():
    """Of known values and of values that depend on data; the same ops as with real tensors."""
    model = nn.Linear(8, 4)
    labels = torch.tensor([0, 1, 2, 3])

    def step_fn():
        model.zero_grad()
        out = model(torch.ones(4, 8))
        known = nn.functional.one_hot(labels)
        (out * known * nn.functional.one_hot(out.argmax(-1), num_classes=4)).sum().backward()

    fake, real = (tidemark.capture(step_fn, model, mode=mode, workspace=False) for mode in ("fake", "real"))
    names = [op.name for op in fake.ops]
    assert names == [op.name for op in real.ops] and fake.fingerprint == real.fingerprint
    assert names.count("aten.scatter_.value") == 2
    on_cuda = tidemark.capture(step_fn, model, target="cuda", workspace=False)
    assert [op.name for op in on_cuda.ops].count("aten.aminmax.default") == 1  # where the classes have to be counted


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_a_module_that_is_converted_to_what_it_is(mode):
    class Router(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 8)

        def forward(self, x):
            self.inner = self.inner.to(torch.float32)
            return self.inner(x)

    model = Router()
    weight = model.inner.weight
    optimizer = torch.optim.AdamW(model.parameters())
    step = tidemark.capture_batch(model, torch.ones(4, 8), lambda out: out.sum(), optimizer, mode=mode, workspace=False)
    assert [op.name for op in step.ops].count("aten.addmm.default") == 1
    assert model.inner.weight is weight


def test_control_flow_on_known_values_is_followed():
    mask = torch.tensor([True, True, False, True])

    def forward(m, v):
        return m.a(v) if mask.all() else torch.relu(m.a(v))

    step = captured(Wrap(forward), x())
    assert "aten.relu.default" in names_of(forward_ops(step))


def test_control_flow_on_data_is_an_error_or_a_real_step():
    def forward(m, v):
        return m.a(v) * 2 if (m.a(v) > 0).any() else m.a(v)

    with pytest.raises(tidemark.CaptureError, match=r"\(aten._local_scalar_dense\) that depends on data, at .*test_capture\.py:\d+, in module \(root\).*mode='real'"):
        captured(Wrap(forward), x())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        step = captured(Wrap(forward), x(), mode="auto")
    assert any("test_capture.py" in str(w.message) for w in caught)
    assert step.meta["mode"] == "real"


def test_a_loop_that_the_user_owns():
    model = nn.Linear(W, W)
    optimizer = torch.optim.AdamW(model.parameters())
    with tidemark.Recording(model, optimizer, workspace=False) as recording:
        for batch in [x(), x(), x()]:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
            if recording.end_step():
                break
    assert len(calls_of(recording.step, "")) == 1
    assert type(model.weight) is nn.Parameter


def test_fake_and_real_records_of_a_step_have_the_same_fingerprint():
    def build():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(W, W), nn.GELU(), nn.LayerNorm(W), nn.Linear(W, W))

    first, second = captured(build(), x()), captured(build(), x(), mode="real")
    assert names_of(first.ops) == names_of(second.ops)
    assert first.fingerprint == second.fingerprint


def test_capturing_twice_gives_the_same_bytes():
    model = nn.Sequential(nn.Linear(W, W), nn.Dropout(0.5), nn.Linear(W, W))
    batch = x()
    optimizer = torch.optim.AdamW(model.parameters())

    def record():
        return tidemark.capture_batch(model, (batch,), lambda out: out.sum(), optimizer, mode="fake", workspace=False)

    assert record().text() == record().text()


def attention_model(dropout=0.0, heads=2):
    def forward(m, v):
        t = m.a(v).view(B, 3, heads, W // heads).transpose(1, 2)
        return F.dropout(F.scaled_dot_product_attention(t, t, t, is_causal=True), dropout)

    return Wrap(forward)


@pytest.mark.parametrize(
    "dtype, kernel", [(torch.float32, "efficient"), (torch.bfloat16, "flash")], ids=["single", "half"]
)
def test_the_choices_of_cuda_are_imitated(dtype, kernel):
    model = attention_model(0.5).to(dtype)
    step = captured(model, x(B, 3, W).to(dtype), target="cuda", optimizer=torch.optim.AdamW)
    names = names_of(step.ops)
    assert f"aten._scaled_dot_product_{kernel}_attention.default" in names
    assert f"aten._scaled_dot_product_{kernel}_attention_backward.default" in names
    assert "aten.native_dropout.default" in names
    assert any(name.startswith("aten._foreach_") for name in names)
    told = " ".join(note.text for note in step.notes if note.kind == "imitated")
    assert kernel in told and "native_dropout" in told and "multi-tensor" in told
    assert {storage.device for storage in step.storages} == {"cuda"}


def test_the_cpu_records_its_own_attention():
    names = names_of(captured(attention_model(), x(B, 3, W)).ops)
    assert "aten._scaled_dot_product_flash_attention_for_cpu.default" in names


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_hooks_on_gradients_run(mode):
    model = Wrap(lambda m, v: m.a(v))
    model.a.weight.register_hook(lambda g: g * 2)
    seen = []
    model.a.bias.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.neg()))
    names = names_of(captured(model, x(), mode=mode).ops)
    assert names.count("aten.mul.Tensor") == 1 and names.count("aten.neg.default") == 1
    assert seen and model.a.weight.grad is None


def test_hooks_of_a_parameter_that_was_frozen_later_do_not_run():
    model = Wrap(lambda m, v: m.a(v))
    model.a.bias.register_hook(lambda g: g * 2)
    model.a.bias.requires_grad_(False)
    assert "aten.mul.Tensor" not in names_of(captured(model, x()).ops)


def optimizer_in_backward():
    model = torch.nn.Sequential(torch.nn.Linear(W, W), torch.nn.Tanh(), torch.nn.Linear(W, W))
    optimizers = {p: torch.optim.AdamW([p], foreach=False) for p in model.parameters()}

    def step_and_forget(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step_and_forget)
    return model, list(optimizers.values())


def test_an_optimizer_that_steps_in_backward():
    steps = []
    for mode in ("fake", "real"):
        model, optimizers = optimizer_in_backward()
        batch = x()
        steps.append(tidemark.capture(lambda: model(batch).sum().backward(), model, optimizers, mode=mode, workspace=False))
        assert all(p.grad is None for p in model.parameters())
        assert all(isinstance(p, torch.nn.Parameter) and type(p.data) is torch.Tensor for p in model.parameters())
    assert steps[0].fingerprint == steps[1].fingerprint
    names = names_of(steps[0].ops)
    assert names.count("aten.addcdiv_.default") == 4  # one update for each parameter


HALF, SINGLE = torch.bfloat16, torch.float32


def tensors(dtype, width=64, heads=(4, 4), lengths=(16, 16), needs_gradient=True):
    """Query, key and value of 2 sequences, as attention takes them."""
    (q_heads, kv_heads), (q_length, kv_length) = heads, lengths
    shapes = [(2, q_heads, q_length, width), (2, kv_heads, kv_length, width), (2, kv_heads, kv_length, width)]
    return [torch.zeros(shape, dtype=dtype, requires_grad=needs_gradient) for shape in shapes]


# The kernel that PyTorch's rules (sdp_utils.cpp) give for each.
@pytest.mark.parametrize(
    "device, kernel, inputs, more",
    [
        ("cuda", "flash", tensors(HALF), {}),
        ("cuda", "flash", tensors(HALF, width=6), {}),  # padded to 8
        ("cuda", "math", tensors(SINGLE, width=6), {}),  # no multiple of 4
        ("cuda", "efficient", tensors(SINGLE), {}),
        ("cuda", "math", tensors(torch.float64), {}),
        ("cuda", "efficient", tensors(HALF, width=320), {}),  # too wide for flash
        ("cuda", "flash", tensors(HALF, heads=(8, 2)), {"enable_gqa": True}),
        ("cuda", "math", tensors(HALF, heads=(8, 2)), {}),
        ("cuda", "math", tensors(SINGLE, heads=(8, 2)), {"enable_gqa": True}),
        ("cuda", "efficient", tensors(HALF), {"mask": torch.ones(16, 16, dtype=torch.bool)}),
        ("cuda", "efficient", tensors(HALF, lengths=(16, 8)), {"is_causal": True}),
        ("h100-sxm", "cudnn", tensors(HALF), {}),
        ("h100-sxm", "cudnn", tensors(HALF), {"mask": torch.ones(16, 16, dtype=torch.bool)}),
        ("h100-sxm", "cudnn", tensors(HALF, heads=(8, 2)), {"enable_gqa": True}),
        ("h100-sxm", "cudnn", tensors(HALF), {"dropout_p": 0.125}),  # a multiple of 1/16
        ("h100-sxm", "flash", tensors(HALF), {"dropout_p": 0.1}),
        ("h100-sxm", "flash", tensors(HALF, width=192), {}),  # cuDNN's backward ends at 128
        ("h100-sxm", "efficient", tensors(SINGLE), {}),
        ("b200", "cudnn", tensors(HALF), {}),
        ("rtx-4090", "flash", tensors(HALF, width=192), {}),
        ("rtx-4090", "efficient", tensors(HALF, width=208), {}),  # too little shared memory for flash's backward
        ("rtx-4090", "flash", tensors(HALF, width=208, needs_gradient=False), {}),
        ("rtx-4090", "flash", tensors(HALF, width=256), {}),
        ("rtx-4090", "efficient", tensors(HALF, width=256), {"dropout_p": 0.1}),
        ("t4", "efficient", tensors(torch.float16), {}),  # no flash before 8.0
        ("t4", "math", tensors(HALF), {}),  # nor bfloat16
        ("t4", "efficient", tensors(SINGLE, width=6), {}),  # nor tensor cores for float32
        ("p100-pcie", "efficient", tensors(torch.float16, width=6), {}),
        ("mi300x", "flash", tensors(HALF), {}),
    ],
)
def test_attention_runs_the_kernel_that_the_device_would_choose(device, kernel, inputs, more):
    from tidemark._capture.imitate import Attention, choose_attention, find_target

    assert choose_attention(Attention(*inputs, **more), find_target(device))[0] == kernel


@pytest.mark.parametrize("device, kernel", [("h100", "cudnn"), ("a100", "flash"), ("T4", "math")])
def test_a_device_by_name_is_imitated(device, kernel):
    model = attention_model(heads=1).to(HALF)
    step = captured(model, x(B, 3, W).to(HALF), target=device)
    told = " ".join(note.text for note in step.notes if note.kind == "imitated")
    assert f"by the {kernel} kernel" in told
    assert (f"aten._scaled_dot_product_{kernel}_attention.default" in names_of(step.ops)) == (kernel != "math")
    assert {storage.device for storage in step.storages} == {"cuda"}
    assert step.meta["target"] == tidemark.find_device(device).name


def test_an_optimizer_asked_to_be_fused_is():
    def fused(parameters, lr):
        return torch.optim.AdamW(parameters, lr=lr, fused=True)

    step = captured(attention_model(), x(B, 3, W), target="cuda", optimizer=fused)
    assert "aten._fused_adamw_.default" in names_of(step.ops)
    assert any("fused form" in note.text for note in step.notes if note.kind == "imitated")


def test_devices_have_names_that_find_them():
    for device in tidemark.devices():
        for name in (device.name, *device.aliases):
            assert tidemark.find_device(name).title == device.title


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_a_copy_that_the_step_makes_of_a_module_is_no_part_of_the_model(mode):
    model = nn.Sequential(nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(2, 4)

    def step():
        optimizer.zero_grad()
        (model(x) + copy.deepcopy(model[0])(x)).sum().backward()
        optimizer.step()

    captured = tidemark.capture(step, model, optimizer, mode=mode, workspace=False)
    assert len(captured.calls) == 2  # the model and its layer, not the copy
    assert [op.name for op in captured.ops].count("aten.addmm.default") == 2


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_a_random_generator_is_recorded_without_its_address(mode):
    texts = []
    generators = [torch.Generator(), torch.Generator()]
    for generator in generators:
        torch.manual_seed(0)
        model = nn.Linear(4, 4)

        def step():
            (model(torch.ones(2, 4)) + torch.randn(2, 4, generator=generator)).sum().backward()

        texts.append(tidemark.capture(step, model, mode=mode, workspace=False).text())
    assert texts[0] == texts[1]
    assert " at 0x" not in texts[0]
