"""What a capture refuses, in which words, and that it leaves everything as it was."""

import copy
import random

import pytest

import tidemark

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = pytest.mark.fast


def fingerprint(model, optimizer):
    """Everything a capture could change: objects by identity, values by their bits."""
    modules = [
        (id(module), {k: id(v) for k, v in vars(module).items()}, [(k, id(v)) for k, v in module._forward_hooks.items()],
         [(k, id(v)) for k, v in module._parameters.items()], [(k, id(v)) for k, v in module._buffers.items()])
        for module in model.modules()
    ]
    values = [(id(t), t.detach().clone(), None if t.grad is None else (id(t.grad), t.grad.clone())) for t in model.parameters()]
    values += [(id(t), t.clone(), None) for t in model.buffers()]
    state = {id(p): {k: (id(v), v.clone() if torch.is_tensor(v) else v) for k, v in s.items()} for p, s in optimizer.state.items()}
    groups = [[id(p) for p in group["params"]] for group in optimizer.param_groups]
    rng = (torch.get_rng_state(), random.getstate())
    return modules, values, state, groups, rng


def same(a, b):
    if torch.is_tensor(a):
        return torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(p, q) for p, q in zip(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


class Net(nn.Module):
    def __init__(self, fail=None):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.fail = fail
        self.cache = []

    def forward(self, x):
        self.cache.append(x)
        self.seen = x
        y = self.drop(self.norm(self.a(x)))
        if self.fail is not None:
            raise self.fail
        return y


def trained(model):
    """A model and an optimizer with gradients and state."""
    optimizer = torch.optim.AdamW(model.parameters())
    fail, model.fail = model.fail, None
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    model.fail = fail
    return optimizer


@pytest.mark.parametrize("mode", ["fake", "real"])
@pytest.mark.parametrize("fail", [None, ValueError("the user's own mistake"), KeyboardInterrupt()])
def test_everything_is_put_back(mode, fail):
    model = Net(fail)
    optimizer = trained(model)
    batch = torch.randn(4, 8)
    before = fingerprint(model, optimizer)

    def run():
        tidemark.capture_batch(model, (batch,), lambda out: out.sum(), optimizer, mode=mode, workspace=False)

    if fail is None:
        run()
    else:
        with pytest.raises(type(fail)):
            run()
    assert same(before, fingerprint(model, optimizer))


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_training_after_a_capture_is_training_without_one(mode):
    def train(with_capture):
        torch.manual_seed(1)
        model = Net()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        batch = torch.randn(4, 8)
        if with_capture:
            tidemark.capture_batch(model, (batch,), lambda out: out.sum(), optimizer, mode=mode, workspace=False)
        for _ in range(3):
            optimizer.zero_grad()
            model(batch).pow(2).sum().backward()
            optimizer.step()
        return [t.detach().clone() for t in (*model.parameters(), *model.buffers())]

    assert same(train(False), train(True))


def test_schedulers_and_scalers_that_the_step_uses_are_put_back():
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scaler = torch.amp.GradScaler("cpu")
    batch = torch.randn(4, 8)

    def step_fn():
        optimizer.zero_grad()
        scaler.scale(model(batch).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()

    before = (copy.deepcopy(scheduler.state_dict()), copy.deepcopy(scaler.state_dict()), optimizer.param_groups[0]["lr"])
    step = tidemark.capture(step_fn, model, optimizer, mode="fake", workspace=False)
    assert before == (scheduler.state_dict(), scaler.state_dict(), optimizer.param_groups[0]["lr"])
    # The scaler finds no infinities, so that the optimizer steps: weight and bias are updated.
    updates = [op for op in step.ops if op.name == "aten.add_.Tensor" and step.passes[op.pass_].kind == "optimizer"]
    assert len(updates) == 2
    assert any(note.kind == "assumed" for note in step.notes)


def refused(match, *args, **kwargs):
    with pytest.raises(tidemark.CaptureError, match=match):
        tidemark.capture(*args, workspace=False, **kwargs)


@pytest.mark.parametrize("mode", ["auto", "fake", "real"])
def test_sparse_gradients_are_refused(mode):
    model = nn.Embedding(16, 8, sparse=True)
    optimizer = torch.optim.SparseAdam(model.parameters())
    ids = torch.arange(4)

    def step():
        optimizer.zero_grad()
        model(ids).sum().backward()
        optimizer.step()

    refused("makes sparse tensors.*sparse=False", step, model, optimizer, mode=mode)
    assert model.weight.grad is None


def test_what_is_refused():
    model = nn.Linear(8, 8)
    step = lambda: model(torch.randn(4, 8)).sum().backward()  # noqa: E731
    refused("step_fn is not callable", 3, model)
    refused("not a torch.nn.Module", step, "model")
    refused("unknown mode 'quick'; expected one of auto, fake, real", step, model, mode="quick")
    refused("unknown target 'abacus'", step, model, target="abacus")
    refused("not a torch.optim.Optimizer", step, model, "sgd")
    refused("none of its parameters belongs to the model", step, model, torch.optim.SGD(nn.Linear(8, 8).parameters(), lr=0.1))
    refused("^the step ran no backward", lambda: model(torch.randn(4, 8)), model)
    refused("a lazy module", step, nn.LazyLinear(8))
    refused("several devices \\('0.weight' on cpu, '1.weight' on meta\\)", step, nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta")))
    refused("meta device, so its step cannot run for real", step, nn.Linear(8, 8, device="meta"), mode="real")


def test_a_model_on_fake_tensors_is_refused():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        model = nn.Linear(8, 8)
    refused("already on fake tensors", lambda: None, model)


def test_a_tensor_subclass_is_refused():
    class Marked(torch.Tensor):
        pass

    model = nn.Linear(8, 8)
    model.register_buffer("marks", torch.zeros(3).as_subclass(Marked))
    refused("'marks' is a Marked, a tensor subclass", lambda: None, model)


def test_no_model_is_named_in_the_package():
    import pathlib

    folder = pathlib.Path(tidemark.__file__).parent
    words = ("gpt", "llama", "bert", "vit", "resnet", "t5", "mixtral", "mistral", "whisper", "mamba", "transformers")
    for path in folder.rglob("*.py"):
        text = path.read_text().lower()
        for word in words:
            assert word not in text.replace("quit", "").replace("invit", "").split(), (path, word)


def test_an_optimizer_whose_steps_differ_is_refused():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.LBFGS(model.parameters(), history_size=7)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).square().mean()
        loss.backward()
        return loss

    for given in (optimizer, None):  # None: it is found behind the step
        with pytest.raises(tidemark.CaptureError, match="an LBFGS, which calls its closure .* a history that grows for 7 iterations"):
            tidemark.capture(lambda: optimizer.step(closure), model, given)
