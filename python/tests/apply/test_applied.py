"""A model with a plan is the model it was, but for its memory."""

import copy
import functools
import gc
import io
import json
import pickle
import threading
import warnings
import weakref

import pytest
import torch
from torch import nn

import tidemark
from tidemark._apply import checks, forwards
from tidemark._apply.apply import find

import cases

pytestmark = pytest.mark.fast


def test_gradients_are_the_same_bits(gpt, helpers):
    plain = helpers.trained(helpers.small_gpt())
    for plan in (gpt.full, gpt.selective):
        assert helpers.equal(plain, helpers.trained(helpers.small_gpt(), prepare=plan.apply))


def test_nothing_of_the_model_changes(gpt, helpers):
    model = helpers.small_gpt()
    before = (str(model), list(model.state_dict()), [dict(m.__dict__) for m in model.modules()], len(pickle.dumps(model)))
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in model.modules()]
    gpt.selective.apply(model)
    assert (str(model), list(model.state_dict()), [dict(m.__dict__) for m in model.modules()], len(pickle.dumps(model))) == before
    assert hooks == [len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in model.modules()]
    assert tidemark.remove(model) and not tidemark.remove(model)


def test_removing_takes_everything_back(gpt, helpers):
    gc.collect()  # models that other tests have left, with what was applied to them
    model = helpers.small_gpt()
    own = cases.models.Block.forward
    gpt.selective.apply(model)
    assert cases.models.Block.forward is not own
    tidemark.remove(model)
    assert cases.models.Block.forward is own and not forwards._detours and find(model) is None
    plain = helpers.trained(helpers.small_gpt())
    assert helpers.equal(plain, helpers.trained(model))


def test_a_model_that_is_gone_leaves_nothing(gpt, helpers):
    model = helpers.small_gpt()
    gpt.selective.apply(model)
    ref = weakref.ref(model)
    del model
    gc.collect()
    assert ref() is None and not forwards._detours and not forwards._classes


def test_copies_and_pickles_are_plain_models(gpt, helpers):
    model = helpers.small_gpt()
    gpt.selective.apply(model)
    averaged = copy.deepcopy(model)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    with torch.no_grad():
        for parameter in averaged.parameters():
            parameter.zero_()
    assert not averaged(gpt.ids).any()  # its own weights, not the model's
    assert find(averaged) is None and find(loaded) is None
    assert helpers.equal(helpers.trained(loaded), helpers.trained(model))
    tidemark.remove(model)


def test_a_second_plan_and_strangers_are_refused(gpt, helpers):
    model = helpers.small_gpt()
    gpt.selective.apply(model)
    with pytest.raises(tidemark.Error, match="has a plan already"):
        gpt.full.apply(model)
    tidemark.remove(model)
    gpt.full.apply(model)
    tidemark.remove(model)
    with pytest.raises(tidemark.Error, match="no model"):
        gpt.full.apply("model")
    model.blocks[1].gradient_checkpointing = True
    with pytest.raises(tidemark.Error, match="checkpoints itself"):
        gpt.full.apply(model)
    with pytest.raises(tidemark.Error, match="model.module"):
        gpt.full.apply(nn.DataParallel(helpers.small_gpt()))


def exchanged(module):
    """As wrappers do that exchange a module's forward."""

    def _checkpointed_forward(original, *args):
        return original(*args)

    module.forward = functools.partial(_checkpointed_forward, module.forward)


@pytest.mark.parametrize("how", ["gradient_checkpointing", "grad_checkpointing", "use_checkpoint", "wrapper", "composable", "forward"])
def test_a_model_that_checkpoints_itself_is_refused(gpt, helpers, how):
    from torch.distributed._composable import checkpoint as composable
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    model = helpers.small_gpt()
    if how == "wrapper":
        model = nn.Sequential(checkpoint_wrapper(model.blocks[1]))
        with pytest.raises(tidemark.Error, match=r"\[0\] the model checkpoints itself.*a CheckpointWrapper"):
            checks._check_own_checkpoints(model)  # its modules have other names, too
        return
    if how == "composable":
        composable(model.blocks[1])
    elif how == "forward":
        exchanged(model.blocks[1])
    else:
        setattr(model.blocks[1], how, True)
    with pytest.raises(tidemark.Error, match=r"\[blocks.1\] the model checkpoints itself; expected a model that leaves that to the plan"):
        gpt.full.apply(model)
    assert find(model) is None


@pytest.mark.parametrize("is_reentrant", [True, False])
def test_a_checkpoint_inside_a_unit_is_noticed_when_it_runs(gpt, helpers, is_reentrant):
    from torch.utils.checkpoint import checkpoint

    for plan in (gpt.full, gpt.selective):
        model = helpers.small_gpt()
        mlp = model.blocks[1].mlp
        own = mlp.forward
        mlp.forward = lambda x, own=own: checkpoint(own, x, use_reentrant=is_reentrant)
        plan.apply(model)
        with pytest.raises(tidemark.DriftError, match=r"\[blocks.1\] the module checkpoints itself.*torch.utils.checkpoint"):
            model(gpt.ids)
        tidemark.remove(model)


def test_what_is_compiled_is_refused(gpt, helpers):
    model = helpers.small_gpt()
    with pytest.raises(tidemark.Error, match="compiled"):
        gpt.full.apply(torch.compile(model))
    model.blocks[0].mlp.compile()
    with pytest.raises(tidemark.Error, match=r"\[blocks.0\] mlp is compiled"):
        gpt.full.apply(model)


def saves_in(model, ids):
    """How many tensors autograd keeps for a forward."""
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        output = model(ids)
    return output, len(kept)


def test_eval_and_no_grad_pass_through(gpt, helpers):
    plain, planned = helpers.small_gpt(), helpers.small_gpt()
    gpt.full.apply(planned)
    counted = find(planned).audit = _Counting()
    with torch.no_grad():
        planned(gpt.ids)
    planned.eval(), plain.eval()
    a, expected = saves_in(plain, gpt.ids)
    b, found = saves_in(planned, gpt.ids)
    assert torch.equal(a, b) and found == expected and counted.begun == 0
    planned.train()
    planned(gpt.ids)
    assert counted.begun == 3
    tidemark.remove(planned)


class _Counting:
    begun = 0

    def begin(self, unit):
        self.begun += 1
        return None


def test_after_an_exception_training_goes_on(gpt, helpers):
    plain = helpers.trained(helpers.small_gpt())
    for plan in (gpt.full, gpt.selective):
        model = helpers.small_gpt()
        plan.apply(model)
        gelu = model.blocks[1].mlp[1]

        def fail(module, args):
            raise KeyError("no such batch")

        handle = gelu.register_forward_pre_hook(fail)
        with pytest.raises(KeyError, match="no such batch"):
            model(gpt.ids)
        handle.remove()
        assert torch._C._autograd._top_saved_tensors_default_hooks(True) is None
        assert helpers.equal(plain, helpers.trained(model))
        tidemark.remove(model)


def test_threads_count_for_themselves(gpt, helpers):
    expected = helpers.trained(helpers.small_gpt(), steps=1)
    model = helpers.small_gpt()
    gpt.selective.apply(model)
    rounds, errors, gradients = 4, [], []

    def work():
        try:
            for _ in range(rounds):
                loss = torch.nn.functional.cross_entropy(model(gpt.ids).flatten(0, 1), gpt.ids.flatten())
                gradients.append(len(torch.autograd.grad(loss, list(model.parameters()))))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(gradients) == 3 * rounds
    assert helpers.equal(expected, helpers.trained(model, steps=1))
    tidemark.remove(model)


def test_hooks_on_and_in_a_unit_run_as_often_as_they_should(gpt, helpers):
    model = helpers.small_gpt()
    gpt.full.apply(model)
    ran = []
    model.blocks[0].register_forward_hook(lambda *_: ran.append("on"))
    model.blocks[0].mlp.register_forward_hook(lambda *_: ran.append("in"))
    model.blocks[0].register_full_backward_hook(lambda *_: ran.append("back"))
    helpers.trained(model, steps=1)
    assert ran.count("on") == 1 and ran.count("back") == 1
    assert ran.count("in") in (1, 2)  # again in the recompute, unless that stops before
    tidemark.remove(model)


def test_a_forward_of_the_modules_own_is_kept(gpt, helpers):
    model = helpers.small_gpt()
    block = model.blocks[0]
    own = block.forward
    calls = []

    def forward(x, causal=True):
        calls.append(1)
        return own(x, causal)

    block.forward = forward
    gpt.full.apply(model)
    plain = helpers.trained(helpers.small_gpt())
    assert helpers.equal(plain, helpers.trained(model))
    assert len(calls) == 4  # two steps, each with its recompute
    tidemark.remove(model)
    assert block.forward is forward


class Fast(nn.Module):
    """Chooses its forward when it is built."""

    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Linear(16, 64), nn.Linear(64, 16)
        self.forward = self.fast

    def fast(self, x):
        return x + self.narrow(torch.relu(self.wide(x)))


def smallest(step, **options):
    least = tidemark.plan(step, 1, **options)
    return tidemark.plan(step, least.smallest_peak_bytes + least.reserve_bytes, **options).plan


def test_copies_of_a_module_with_its_own_forward_have_their_own_weights():
    torch.manual_seed(0)
    model, x = nn.Sequential(*[Fast() for _ in range(4)]), torch.randn(64, 16)
    recorded = captured(model, x, lambda y: y.square().mean())[2]
    plan = smallest(recorded)
    assert any(unit["module"].isdigit() for unit in json.loads(plan.to_json())["units"])
    plain = [p.clone() for p in torch.autograd.grad(model(x).square().mean(), list(model.parameters()))]
    plan.apply(model)
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with torch.no_grad():
            for parameter in copied.parameters():
                parameter.zero_()
        assert all(torch.equal(layer(x), x) for layer in copied)
        assert all(layer.forward.__self__ is layer for layer in copied)
    assert all(map(torch.equal, plain, torch.autograd.grad(model(x).square().mean(), list(model.parameters()))))
    tidemark.remove(model)
    assert all(layer.forward.__self__ is layer for layer in model)


# PyTorch passes the arguments of a module with such hooks through a node of its own, outside of the checkpoint.
@pytest.mark.parametrize("kind", ["register_full_backward_hook", "register_full_backward_pre_hook"])
@pytest.mark.parametrize("is_before_capture", [True, False])
def test_backward_hooks_on_units(kind, is_before_capture):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)) for _ in range(4)])
    x, ran = torch.randn(64, 16, requires_grad=True), []

    def register():
        for block in model:
            getattr(block, kind)(lambda *_: ran.append(1) or None)

    if is_before_capture:
        register()
    plan = smallest(captured(model, x, lambda y: y.square().mean())[2], units=["?"])
    if not is_before_capture:
        register()
    ran.clear()
    plain = torch.autograd.grad(model(x).square().mean(), list(model.parameters()))
    count = len(ran)
    assert count >= 3  # the first block's may not run, since nobody asks for the gradient of its input
    plan.apply(model)
    assert all(map(torch.equal, plain, torch.autograd.grad(model(x).square().mean(), list(model.parameters()))))
    assert len(ran) == 2 * count and len(plan) > 0
    tidemark.remove(model)


def test_fit_with_its_arguments_in_another_order(helpers):
    model = helpers.small_gpt()
    with pytest.raises(tidemark.Error, match=r"\[fit\] the second argument is no model; expected fit\(step_fn, model.*got fit\(GPT, function\)"):
        tidemark.fit(model, lambda: None, budget="8GB")
    with pytest.raises(tidemark.Error, match=r"\[fit\] the first argument is no step.*got fit\(NoneType, GPT\)"):
        tidemark.fit(None, model, budget="8GB")


def test_fit_says_that_a_model_in_eval_waits(capsys):
    model = nn.Sequential(*[nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)) for _ in range(4)]).eval()
    x = torch.randn(64, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    tidemark.fit(step, model, optimizer, budget="1GiB")
    assert "The model is in eval() now: the plan begins with model.train()." in capsys.readouterr().out
    tidemark.remove(model)
    tidemark.fit(step, model.train(), optimizer, budget="1GiB")
    assert "eval()" not in capsys.readouterr().out
    tidemark.remove(model)


def captured(model, inputs, loss):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss(model(inputs)).backward()
        optimizer.step()

    return optimizer, step, tidemark.capture(step, model, optimizer, workspace=False)


# Plain training moves the statistics once per step; the recompute must not move them again.
def test_buffers_advance_once():
    def build():
        torch.manual_seed(0)
        return cases.models.ConvNet(8).train()

    inputs = torch.randn(4, 3, 8, 8)
    results = []
    _, _, recorded = captured(build(), inputs, lambda y: y.square().mean())
    for plan in (None, tidemark.Plan.policy(recorded, "full"), tidemark.Plan.policy(recorded, "selective")):
        model = build()
        if plan is not None:
            assert len(plan) == 3
            plan.apply(model)
        optimizer, step, _ = None, None, None
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()
        results.append({name: value.clone() for name, value in model.state_dict().items()})
        assert all(int(v) == 3 for name, v in model.named_buffers() if name.endswith("num_batches_tracked"))
    for result in results[1:]:
        assert all(torch.equal(results[0][name], result[name]) for name in result)


@pytest.mark.parametrize("outside", [False, True])
def test_a_model_whose_forward_checkpoints_is_refused(outside, tmp_path):
    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(16, 16)

        def run(self, x):
            return torch.relu(self.inner(torch.sin(x)))

        def forward(self, x):
            return self.run(x) if outside else torch.utils.checkpoint.checkpoint(self.run, x, use_reentrant=False)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)) for _ in range(2))
            self.own = Checkpointed()

        def forward(self, x):
            x = self.blocks[1](self.blocks[0](x))
            return torch.utils.checkpoint.checkpoint(self.own, x, use_reentrant=False) if outside else self.own(x)

    model, x = Model(), torch.randn(8, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    recorded = tidemark.capture(step, model, optimizer, workspace=False)
    tidemark.Plan.policy(recorded, "none").save(tmp_path / "plan.json")
    says = r"\[own\] the model checkpoints itself; expected a model that leaves that to the plan"
    with pytest.raises(tidemark.Error, match=says):
        tidemark.Plan.load(tmp_path / "plan.json").apply(model)
    with pytest.raises(tidemark.Error, match=says):
        tidemark.fit(step, model, optimizer, budget="1GB")
    # Recorded as if it did not, it is a plan for the model without.
    recorded = tidemark.capture(step, model, optimizer, workspace=False, ignore_checkpointing=True)
    tidemark.Plan.policy(recorded, "none").apply(model)
    tidemark.remove(model)


# What the model keeps from one step to the next is there when the next one begins, and the plan does not know of it.
def test_an_audit_measures_what_is_there_at_the_start(gpt, helpers):
    model = helpers.small_gpt()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = []

    def step():
        helpers.step_of(model, optimizer, gpt.ids)()
        if kept:
            kept[:] = [torch.ones(1 << 20)]

    plain = tidemark.audit(step, model, gpt.full)
    # Parameters and gradients; momentum there is none; the ids; and the mask that is a buffer, or a few numbers.
    assert plain.measured_start_bytes == plain.start_bytes and not plain.is_start_above
    assert plain.measured_peak_bytes == plain.measured_start_bytes + plain.measured_growth_bytes
    kept.append(None)
    more = tidemark.audit(step, model, gpt.full)
    assert more.measured_start_bytes == plain.measured_start_bytes + (4 << 20)
    assert more.is_start_above and "more than the plan counts with" in str(more) and json.loads(more.to_json())["is_start_above"]


class _Waves(torch.nn.Linear):
    def forward(self, x):
        return torch.fft.rfft(super().forward(x)).abs()


def test_an_audit_lists_what_has_no_price():
    """Fourier transforms have no price; each of two blocks runs one, and again when it is recomputed: of 4 x 8 floats to
    4 x 5 complex numbers of eight bytes."""
    model = torch.nn.Sequential(_Waves(5, 8), _Waves(5, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(4, 5)

    def step():
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    recorded = tidemark.capture(step, model, optimizer, workspace=False)
    found = tidemark.audit(step, model, tidemark.Plan.policy(recorded, "full"))
    assert found.unpriced == (("aten._fft_r2c.default", 2, 2 * (4 * 8 * 4 + 4 * 5 * 8)),)
    assert "run again without a price, in no time that the plan predicts: 2 x aten._fft_r2c.default of 576 B" in str(found)
    assert json.loads(found.to_json())["unpriced"] == [["aten._fft_r2c.default", 2, 576]]


def test_capturing_a_planned_model_records_its_checkpoints(gpt, helpers):
    model = helpers.small_gpt()
    gpt.full.apply(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = tidemark.capture(helpers.step_of(model, optimizer, gpt.ids), model, optimizer, workspace=False)
    assert any("checkpoints itself" in note.text for note in step.notes)
    tidemark.remove(model)


# One block, called three times: autocast casts its weights in the first call only. The recomputes of the other two find an empty
# cache; they take the casts that their forwards used.
def test_weights_that_autocast_had_cast_are_not_cast_again():
    def build():
        torch.manual_seed(0)
        return cases.SharedLayers(32).train()

    ids = torch.arange(4 * 16).view(4, 16) % 300

    def loss_of(model):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())

    def trained(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step():
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()

        return optimizer, step

    model = build()
    optimizer, step = trained(model)
    recorded = tidemark.capture(step, model, optimizer, workspace=False)
    block = next(module.id for module in recorded.modules if module.fqn == "block")
    calls = [call.id for call in recorded.calls if call.module == block]
    assert len(calls) == 3
    product = {call: next(op.id for op in recorded.ops if op.name == "aten.addmm.default" and _is_in(recorded, op.call, call)) for call in calls}
    full = tidemark.Plan([(call, []) for call in calls], step=recorded)
    saving = tidemark.Plan([(call, [product[call]]) for call in calls], step=recorded)
    results = []
    for plan in (None, full, saving):
        model = build()
        if plan is not None:
            plan.apply(model)
        _, step = trained(model)
        torch.manual_seed(1)
        for _ in range(2):
            step()
        loss = loss_of(model)
        with _Casts() as counted:
            loss.backward()
        results.append([p.grad.clone() for p in model.parameters()])
        if plan is None:
            plain = counted.count
        else:
            # Eight weights: those of two linear layers of the attention and two of the MLP, and their biases. Only the recompute of
            # the first call casts them.
            assert counted.count - plain == 8
            tidemark.remove(model)
    assert all(torch.equal(a, b) for result in results[1:] for a, b in zip(results[0], result))


def _is_in(step, call, outer) -> bool:
    parents = {c.id: c.parent for c in step.calls}
    while call is not None and call != outer:
        call = parents[call]
    return call == outer


class _Casts(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts casts of weights that are run."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._to_copy.default and isinstance(args[0], nn.Parameter) and args[0].dtype is torch.float32:
            self.count += 1
        return func(*args, **(kwargs or {}))


def test_generating_passes_through(gpt, helpers):
    model = helpers.small_gpt()
    gpt.selective.apply(model)
    counted = find(model).audit = _Counting()

    @torch.no_grad()
    def generate(ids, count):
        for _ in range(count):
            ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], 1)
        return ids

    model.eval()
    assert generate(gpt.ids[:2, :4], 3).shape == (2, 7) and counted.begun == 0
    model.train()
    assert generate(gpt.ids[:2, :4], 3).shape == (2, 7) and counted.begun == 0
    find(model).audit = None
    tidemark.remove(model)
