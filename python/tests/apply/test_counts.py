"""Which call is which: after exceptions, in threads, and when a step calls more or less than planned."""

import copy
import threading
import warnings

import pytest
import torch
from torch import nn

import tidemark

pytestmark = pytest.mark.fast


def block():
    return nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))


class Twice(nn.Module):
    """Runs two blocks in turn, `times` times; may fail in between, outside of both."""

    def __init__(self):
        super().__init__()
        self.a, self.b = block(), block()
        self.times, self.fails_after = 2, None

    def forward(self, x):
        for i in range(self.times):
            x = self.b(self.a(x))
            if self.fails_after == i:
                raise ValueError("a bad batch")
        return x


class Training:
    def __init__(self, micro_batches=1):
        torch.manual_seed(0)
        self.model, self.x = Twice(), torch.randn(32, 16)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.micro_batches = micro_batches
        self.fails_in_loss = False

    def forward(self):
        return self.model(self.x)

    def step(self):
        self.optimizer.zero_grad()
        for i in range(self.micro_batches):
            loss = self.forward().square().mean()
            if self.fails_in_loss and i == self.micro_batches - 1:
                raise ValueError("a bad loss")
            loss.backward()
        self.optimizer.step()

    def planned(self):
        recorded = tidemark.capture(self.step, self.model, self.optimizer, workspace=False)
        names = {call.id: recorded.modules[call.module].fqn for call in recorded.calls}
        self.plan = tidemark.Plan([(call, []) for call, name in names.items() if name in ("a", "b")], step=recorded)
        assert len(self.plan) == 4 * self.micro_batches
        self.plan.apply(self.model)
        return self

    def audited(self):
        """Every call is the one that the plan means."""
        return all(unit.agrees for unit in tidemark.audit(self.step, self.model).units)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        yield


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_an_exception_anywhere(micro_batches):
    t = Training(micro_batches).planned()
    t.step()
    t.model.fails_after = 0
    with pytest.raises(ValueError, match="a bad batch"):
        t.step()
    t.model.fails_after = None
    t.step()
    t.fails_in_loss = True
    with pytest.raises(ValueError, match="a bad loss"):
        t.step()
    t.fails_in_loss = False
    t.step()
    assert t.audited()
    tidemark.remove(t.model)


# Nobody calls the model itself here, so that its end is not seen.
def test_an_exception_between_modules_that_the_loop_calls():
    t = Training()
    t.forward = lambda: t.model.forward(t.x)  # capture and plan see the blocks only
    t.planned()
    t.step()
    t.forward = lambda: t.model.b(t.model.a(t.x)) * float("nan") if t.model.fails_after is None else 1 / 0
    a, b = t.model.a, t.model.b
    with pytest.raises(ZeroDivisionError):
        a(t.x), b(t.x), 1 / 0
    t.forward = lambda: b(a(b(a(t.x))))
    t.step()
    assert t.audited()
    tidemark.remove(t.model)


def test_a_step_that_is_skipped():
    t = Training().planned()
    t.forward().sum().backward()  # a gradient scaler found infinities
    t.step()
    t.forward()  # nobody wants its gradients
    t.step()
    assert t.audited()
    tidemark.remove(t.model)


def test_another_threads_optimizer():
    t = Training().planned()
    t.model.a(t.x)  # this thread is in the middle of a forward
    errors = []

    def other():
        try:
            for _ in range(3):
                t.step()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert not errors
    assert t.plan.units and _position(t.model).counts == {"a": 1}
    tidemark.remove(t.model)


def _position(model):
    from tidemark._apply.apply import find

    return find(model).calls.here()


def test_two_threads_train_one_model():
    t = Training().planned()
    errors = []

    def work():
        try:
            for _ in range(5):
                loss = t.forward().square().mean()
                torch.autograd.grad(loss, list(t.model.parameters()))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    work()  # an optimizer's step would write to what the others are about to read again
    for thread in threads:
        thread.join()
    assert not errors
    t.step()
    tidemark.remove(t.model)


@pytest.mark.parametrize("times, expected", [(1, "1 times .* expected 2 times"), (4, "4 times .* expected 2 times")])
def test_more_or_less_often_than_planned(times, expected):
    t = Training().planned()
    t.step()
    t.model.times = times
    with pytest.raises(tidemark.DriftError, match=r"^\[a\] the module was called " + expected):
        t.step()
    t.model.times = 2
    t.step()
    tidemark.remove(t.model)


@pytest.mark.parametrize("micro_batches", [1, 2, 4])
def test_more_or_fewer_micro_batches(micro_batches):
    t = Training(3).planned()
    t.micro_batches = micro_batches
    t.step(), t.step()
    t.micro_batches = 3
    t.step()
    assert t.audited()
    tidemark.remove(t.model)


def test_a_step_without_any_call_of_the_plan_warns_once():
    t = Training().planned()
    t.step()
    t.model.eval()
    with pytest.warns(UserWarning, match="no module of the plan was called for training"):
        t.step()
    t.step()
    t.model.train()
    t.step()
    tidemark.remove(t.model)


def checked(model, step, recorded):
    """Under a plan that checkpoints every call of two of its blocks, every call is the one that the plan means, in three steps, and the
    parameters are those of three steps without."""
    names = {call.id: recorded.modules[call.module].fqn for call in recorded.calls}
    plan = tidemark.Plan([(call, []) for call, name in names.items() if name in ("0", "1", "made.0", "judge.0")], step=recorded)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for _ in range(6):
        step()
    expected = [p.detach().clone() for p in model.parameters()]
    model.load_state_dict(before)
    plan.apply(model)
    for _ in range(3):
        step()
    assert all(unit.agrees for unit in tidemark.audit(step, model).units)  # three more
    assert all(torch.equal(a, b) for a, b in zip(expected, model.parameters()))
    return plan


# The judge's optimizer steps in the middle of the step: after its two calls, and before the third.
def test_two_optimizers_in_turn():
    torch.manual_seed(0)
    model = nn.ModuleDict({"made": nn.Sequential(block(), block()), "judge": nn.Sequential(block(), nn.Linear(16, 1))})
    makes, judges = (torch.optim.SGD(model[name].parameters(), lr=0.1) for name in ("made", "judge"))
    z, x = torch.randn(32, 16), torch.randn(32, 16)

    def step():
        judges.zero_grad()
        fake = model["made"](z)
        (model["judge"](fake.detach()).square().mean() - model["judge"](x).square().mean()).backward()
        judges.step()
        makes.zero_grad()
        model["judge"](fake).square().mean().neg().backward()
        makes.step()

    recorded = tidemark.capture(step, model, [makes, judges], workspace=False)
    plan = checked(model, step, recorded)
    assert len(plan) == 4  # one call of the maker's block, three of the judge's


def test_optimizers_that_step_inside_the_backward():
    torch.manual_seed(0)
    model = nn.Sequential(block(), block(), block())
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
    x = torch.randn(32, 16)

    def complete(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(complete)

    def step():
        model(x).square().mean().backward()

    checked(model, step, tidemark.capture(step, model, list(optimizers.values()), workspace=False))


# Planned with three micro-batches; the last step of an epoch has two.
def test_a_step_with_fewer_micro_batches():
    t = Training(3).planned()
    t.step()
    t.micro_batches = 2
    t.step()
    t.micro_batches = 3
    t.step()
    assert t.audited()


class Recycles(nn.Module):
    """Two rounds without gradients, the third with."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(block() for _ in range(4)))

    def forward(self, x):
        with torch.no_grad():
            for _ in range(2):
                x = self.blocks(x)
        return self.blocks(x)


def _labels_before(model, optimizer, x):
    with torch.no_grad():
        wanted = model(x)
    _train_once(model, optimizer, x, wanted + 1)


def _labels_in_eval(model, optimizer, x):
    model.eval()
    with torch.no_grad():
        wanted = model(x)
    model.train()
    _train_once(model, optimizer, x, wanted + 1)


def _evaluates_after(model, optimizer, x):
    _train_once(model, optimizer, x, 0 * x)
    with torch.no_grad():
        model(x)


def _two_epochs_of_a_rollout(model, optimizer, x):
    with torch.no_grad():
        wanted = model(x) + 1
    for _ in range(2):
        _train_once(model, optimizer, x, wanted)


def _train_once(model, optimizer, x, wanted):
    optimizer.zero_grad()
    (model(x) - wanted).square().mean().backward()
    optimizer.step()


# Calls without gradients count neither in a capture nor afterwards, so that the plan's calls are those that it means.
@pytest.mark.parametrize("once", [_labels_before, _labels_in_eval, _evaluates_after, _two_epochs_of_a_rollout, None], ids=lambda once: getattr(once, "__name__", "recycles"))
def test_calls_without_gradients_beside_those_that_train(once):
    torch.manual_seed(0)
    model = Recycles() if once is None else nn.Sequential(*(block() for _ in range(4)))
    plain = copy.deepcopy(model)
    optimizers = {trained: torch.optim.SGD(trained.parameters(), lr=0.1) for trained in (model, plain)}
    x = torch.randn(512, 16)

    def step(trained=model):
        if once is None:
            _train_once(trained, optimizers[trained], x, 0 * x)
        else:
            once(trained, optimizers[trained], x)

    recorded = tidemark.capture(step, model, optimizers[model])
    smallest = tidemark.plan(recorded, 1).smallest_peak_bytes
    result = tidemark.plan(recorded, smallest + 4096)
    assert result.plan.units
    result.plan.apply(model)
    for _ in range(3):
        step()
    audit = tidemark.audit(step, model)  # three more
    assert all(unit.agrees for unit in audit.units)
    assert audit.measured_peak_bytes <= result.budget_bytes
    for _ in range(6):
        step(plain)
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), model.parameters()))


# Each backward would recompute the block that both losses need; the block of the second alone may be a unit.
def test_what_two_backwards_need_is_no_unit():
    torch.manual_seed(0)
    model = nn.ModuleDict({"trunk": nn.Sequential(block(), block()), "head": nn.Sequential(block(), block())})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(512, 16)

    def step():
        optimizer.zero_grad()
        y = model["trunk"](x)
        y.square().mean().backward(retain_graph=True)
        model["head"](y).square().mean().backward()
        optimizer.step()

    recorded = tidemark.capture(step, model, optimizer)
    result = tidemark.plan(recorded, tidemark.plan(recorded, 1).smallest_peak_bytes + 4096)
    modules = {recorded.modules[recorded.calls[call].module].fqn.split(".")[0] for call, _ in result.plan.units}
    assert modules == {"head"}
    assert result.excluded["several_backwards"] >= 2
    result.plan.apply(model)
    audit = tidemark.audit(step, model)
    assert all(unit.agrees for unit in audit.units) and audit.measured_peak_bytes <= result.budget_bytes
