"""What a capture must not leave behind, and steps that it cannot hold: each said in a sentence of its own."""

import functools
import warnings

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import tidemark  # noqa: E402

X = torch.randn(4, 8)


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), lr=0.1, **options)


def plain_step(model, optimizer, x=X):
    def step():
        optimizer.zero_grad()
        model(x).pow(2).sum().backward()
        optimizer.step()

    return step


def capture(step, model, optimizer=None, **options):
    return tidemark.capture(step, model, optimizer, workspace=False, **options)


# --- refused before anything is touched ---


def test_a_script_module_is_refused_and_left_alone():
    model = torch.jit.script(nn.Sequential(nn.Linear(8, 8)))
    optimizer = sgd(model)
    with pytest.raises(tidemark.CaptureError, match="is a ScriptModule, which runs where no hook sees it"):
        capture(plain_step(model, optimizer), model, optimizer)
    assert type(next(model.parameters())) is nn.Parameter


def test_a_compiled_model_is_refused():
    model = torch.compile(nn.Linear(8, 8), backend="eager")
    optimizer = sgd(model)
    with pytest.raises(tidemark.CaptureError, match="the model is compiled"):
        capture(plain_step(model, optimizer), model, optimizer)


@pytest.mark.parametrize("target", [None, "tpu", 3])
def test_an_unknown_target_is_refused(target):
    model = nn.Linear(8, 8)
    with pytest.raises(tidemark.CaptureError, match="unknown target"):
        capture(plain_step(model, sgd(model)), model, target=target)


# --- steps that a Step cannot hold ---


def test_reentrant_checkpoints_are_named():
    class Reentrant(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(8, 8), nn.ReLU())

        def forward(self, x):
            return checkpoint(self.inner, x, use_reentrant=True)

    model = Reentrant()
    optimizer = sgd(model)
    with pytest.raises(tidemark.CaptureError, match="checkpoints itself in the reentrant way.*use_reentrant=False"):
        capture(plain_step(model, optimizer, X.clone().requires_grad_()), model, optimizer)


def test_a_differentiated_backward_is_named():
    model = nn.Linear(8, 8)
    optimizer = sgd(model)
    x = X.clone().requires_grad_()

    def step():
        optimizer.zero_grad()
        loss = model(x).pow(2).sum()
        (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
        (loss + gradient.pow(2).sum()).backward()
        optimizer.step()

    with pytest.raises(tidemark.CaptureError, match=r"backward itself is differentiated \(create_graph=True\)"):
        capture(step, model, optimizer, mode="fake")


def test_a_backward_inside_a_forward_is_named():
    class Trains(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 8)

        def forward(self, x):
            loss = self.inner(x).sum()
            loss.backward()
            return loss

    model = Trains()
    optimizer = sgd(model)

    def step():
        optimizer.zero_grad()
        model(X)
        optimizer.step()

    with pytest.raises(tidemark.CaptureError, match=r"a module's forward runs backward\(\) itself"):
        capture(step, model, optimizer)


# --- real tensors where fake ones cannot follow, whatever they say ---


def test_auto_falls_back_for_packed_sequences():
    model = nn.LSTM(8, 8, batch_first=True)
    optimizer = sgd(model)
    x = torch.randn(3, 5, 8)

    def step():
        optimizer.zero_grad()
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3, 2]), batch_first=True)
        model(packed)[0].data.sum().backward()
        optimizer.step()

    with pytest.warns(UserWarning, match="recorded with real tensors, since fake ones cannot follow it: "):
        recorded = capture(step, model, optimizer)
    assert any(op.name.startswith("aten._pack_padded_sequence") for op in recorded.ops)


def test_another_device_is_not_imitated_with_real_tensors():
    class Looks(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 8)

        def forward(self, x):
            y = self.inner(x)
            return y * 2 if int(y.argmax()) > 3 else y

    model = Looks()
    optimizer = sgd(model)
    with pytest.raises(tidemark.CaptureError, match="try mode='real' with target='cpu'"):
        capture(plain_step(model, optimizer), model, optimizer, target="cuda")
    with pytest.warns(UserWarning, match="recorded with real tensors"):
        capture(plain_step(model, optimizer), model, optimizer)


def test_an_error_of_the_program_comes_through_as_it_is():
    model = nn.Linear(8, 8)
    optimizer = sgd(model)

    def step():
        raise KeyError("mine")

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing was recorded, so nothing is said about how
        with pytest.raises(KeyError, match="mine"):
            capture(step, model, optimizer)


# --- everything as it was ---


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_generators_of_ones_own(mode):
    generator = torch.Generator().manual_seed(1)
    before = generator.get_state()
    model = nn.Linear(8, 8)
    optimizer = sgd(model)

    def step():
        optimizer.zero_grad()
        model(torch.randn(4, 8, generator=generator)).sum().backward()
        optimizer.step()

    capture(step, model, optimizer, mode=mode)
    assert torch.equal(before, generator.get_state())


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_a_moving_average_of_the_model(mode):
    model = nn.Linear(8, 8)
    optimizer = sgd(model)
    average = torch.optim.swa_utils.AveragedModel(model)
    train = plain_step(model, optimizer)
    train()
    average.update_parameters(model)
    before = [tensor.clone() for tensor in average.state_dict().values()]

    def step():
        train()
        average.update_parameters(model)

    capture(step, model, optimizer, mode=mode)
    assert all(torch.equal(a, b) for a, b in zip(before, average.state_dict().values(), strict=True))


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_tensors_that_are_no_buffers(mode):
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 8)
            self.count = torch.zeros(1)
            self.kept = {"sum": torch.zeros(8)}
            self.wide = torch.zeros(1).expand(1000)  # one element, seen often: it cannot be written to

        def forward(self, x):
            y = self.inner(x)
            self.count.add_(1)
            self.kept["sum"].add_(y.detach().sum(0))
            return y

    model = Counts()
    optimizer = sgd(model)
    count, kept = model.count, model.kept["sum"]
    recorded = capture(plain_step(model, optimizer), model, optimizer, mode=mode)
    assert model.count is count and model.kept["sum"] is kept
    assert count.item() == 0 and kept.count_nonzero() == 0
    assert recorded.workspace is None and recorded.unmeasured == []


def test_data_that_the_step_replaces():
    model = nn.Linear(8, 8)
    optimizer = sgd(model)
    pointer, values = model.weight.data_ptr(), model.weight.detach().clone()
    train = plain_step(model, optimizer)

    def step():
        train()
        model.weight.data = model.weight.data.clone()

    capture(step, model, optimizer, mode="real")
    assert model.weight.data_ptr() == pointer and torch.equal(model.weight, values)


def test_an_optimizer_that_was_not_given():
    model = nn.Linear(8, 8)
    first = torch.optim.SGD([model.weight], lr=0.1, momentum=0.9)
    second = torch.optim.SGD([model.bias], lr=0.1, momentum=0.9)

    def step():
        first.zero_grad()
        second.zero_grad()
        model(X).sum().backward()
        first.step()
        second.step()

    with pytest.raises(tidemark.CaptureError, match=r"pass all that step, as optimizer=\[first, second\]"):
        capture(step, model, first, mode="real")
    assert not first.state and not second.state
    names = [op.name for op in capture(step, model, [first, second]).ops]
    assert names.count("aten.mul_.Tensor") >= 2  # the momentum of both


# --- what a step refers to, however it does ---


class Trainer:
    def __init__(self):
        self.model = nn.Linear(8, 8)
        self.optimizer = sgd(self.model)
        self.schedulers = [torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.5)]

    def step(self, x=X):
        plain_step(self.model, self.optimizer, x)()
        for scheduler in self.schedulers:
            scheduler.step()

    def __call__(self):
        self.step()


@pytest.mark.parametrize("mode", ["fake", "real"])
@pytest.mark.parametrize(
    "way",
    [
        lambda trainer: trainer.step,
        lambda trainer: trainer,
        lambda trainer: functools.partial(trainer.step, X),
        lambda trainer: lambda: trainer.step(),
        lambda trainer: lambda step=trainer.step: step(),
    ],
    ids=["method", "callable object", "partial", "closure", "default"],
)
def test_a_scheduler_behind_an_object_is_put_back(way, mode):
    trainer = Trainer()
    step = capture(way(trainer), trainer.model, mode=mode)  # the optimizer is found there too
    assert any(step.passes[op.pass_].kind == "optimizer" for op in step.ops)
    scheduler = trainer.schedulers[0]
    assert (scheduler.last_epoch, scheduler._step_count) == (0, 1)
    assert trainer.optimizer.param_groups[0]["lr"] == 0.1


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_only_the_first_call_runs_a_backward(mode):
    model = nn.Linear(8, 8)
    calls = []

    def step():
        calls.append(1)
        loss = model(X).sum()
        if len(calls) == 1:
            loss.backward()

    with pytest.raises(tidemark.CaptureError, match=r"^the step ran no backward.*the second did not"):
        capture(step, model, mode=mode)
    assert model.weight.grad is None


def test_a_loop_of_ones_own_is_told_what_fake_tensors_cannot_do():
    model = nn.Linear(8, 8)
    weight = model.weight
    with pytest.raises(tidemark.CaptureError, match="of type bool .* depends on data, at .*, outside of the model; try mode='real'"):
        with tidemark.Recording(model, workspace=False):
            assert model(X).sum() > 0
    assert model.weight is weight


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_a_function_with_a_backward_of_its_own_inside_backward(mode):
    """As reversible layers do: forward runs again, with gradients, and a backward inside the backward."""

    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, layer):
            ctx.layer = layer
            ctx.save_for_backward(x)
            with torch.no_grad():
                return layer(x)

        @staticmethod
        def backward(ctx, gradient):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                y = ctx.layer(x)
            torch.autograd.backward(y, gradient)
            return x.grad, None

    model = nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.Tanh()))

    def step():
        model.zero_grad()
        Again.apply(model[0](X), model[1]).sum().backward()

    with pytest.raises(tidemark.CaptureError, match="a forward and a backward of its own inside it"):
        capture(step, model, mode=mode)
    assert all(p.grad is None for p in model.parameters())
