"""What modules store on themselves: a recompute sees it as its forward did, and leaves it alone."""

from __future__ import annotations

import collections
import copy
import gc
import re
import weakref

import pytest
import torch
from torch import nn

import tidemark

WIDTH = 64
ROWS = 1024  # so many that activations are the peak


class Block(nn.Module):
    """One layer of a residual stack; `inner` says what it does beside that."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def branch(self, x):
        return self.down(torch.relu(self.up(x)))

    def forward(self, x):
        return x + self.branch(x)


class Counts(Block):
    """Its output depends on how often it ran."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x + self.branch(x) * self.calls


class Remembers(Block):
    """Carries a state from step to step, and lists what it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.state = torch.zeros(WIDTH)
        self.seen = []

    def forward(self, x):
        y = x + self.branch(x + self.state) * (1 + len(self.seen))
        self.state = y.detach().mean(dim=0)
        self.seen.append(float(self.state[0]))
        return y


class Carries(Block):
    """Carries a state with its graph from call to call of a step."""

    def forward(self, x):
        self.state = torch.tanh(self.branch(x + self.state))
        return x + self.state


class Meter:
    def __init__(self) -> None:
        self.calls = 0


class Tallies(Block):
    """Counts in several ways, on which its output depends."""

    def __init__(self) -> None:
        super().__init__()
        self.counter = collections.Counter()
        self.nested = {"calls": []}
        self.meter = Meter()
        self.last = collections.deque(maxlen=2)

    def forward(self, x):
        self.counter["calls"] += 1
        self.nested["calls"].append(1)
        self.meter.calls += 1
        self.last.append(self.meter.calls)
        factor = self.counter["calls"] + 2 * len(self.nested["calls"]) + 3 * self.meter.calls + 4 * sum(self.last)
        return x + self.branch(x) / factor


class Switched(Block):
    """Has a layer that can be exchanged."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Tanh()

    def branch(self, x):
        return self.last(super().branch(x))


class HasLoss(Block):
    """Stores a loss beside its result, as layers of experts do."""

    def forward(self, x):
        y = x + self.branch(x)
        self.aux = y.square().mean()
        self.aux_list = [y.mean()]
        return y


class Shows(Block):
    """Stores what it computed for whoever wants to look, in three ways, and never uses it."""

    def __init__(self) -> None:
        super().__init__()
        self.shown, self.shown_list, self.shown_again = None, [], {}

    def forward(self, x):
        h = torch.relu(self.up(x))
        self.shown = h.detach().clone()
        self.shown_list = [h * 1.5]
        self.shown_again.clear()
        self.shown_again["h"] = h.detach() + 1
        return x + self.down(h)


class Stack(nn.Module):
    def __init__(self, kind: type) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(kind() for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def _loss(model: Stack, x: torch.Tensor) -> torch.Tensor:
    if isinstance(model.layers[0], Carries):
        for layer in model.layers:
            layer.state = torch.zeros(WIDTH)
        x = model(model(x))
    loss = model(x).square().mean()
    for layer in model.layers:
        if isinstance(layer, HasLoss):
            loss = loss + layer.aux + layer.aux_list[0]
    return loss


def _train(kind: type, steps: int, planned: bool):
    model = Stack(kind)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(ROWS, WIDTH)

    def step():
        loss = _loss(model, x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    if planned:
        # State that a captured step leaves on modules is the test's to put back.
        before = [copy.deepcopy({k: v for k, v in layer.__dict__.items() if k in ("calls", "state", "seen", "counter", "nested", "meter", "last")}) for layer in model.layers]
        captured = tidemark.capture(step, model, optimizer)
        smallest = tidemark.plan(captured, budget=1, device="cpu").smallest_peak_bytes
        result = tidemark.plan(captured, budget=smallest + 4096, device="cpu")
        assert result.plan.units
        for layer, values in zip(model.layers, before):
            layer.__dict__.update(values)
        result.plan.apply(model)
    losses = [step() for _ in range(steps)]
    values = [parameter.detach().clone() for parameter in model.parameters()]
    return losses, values, model, step


@pytest.mark.parametrize("kind", [Counts, Remembers, Carries, Tallies, HasLoss])
def test_same_bits(kind):
    torch.manual_seed(1)
    losses, values, plain, _ = _train(kind, 5, planned=False)
    torch.manual_seed(1)
    planned_losses, planned_values, model, _ = _train(kind, 5, planned=True)
    assert planned_losses == losses
    assert all(torch.equal(a, b) for a, b in zip(values, planned_values))
    for layer, other in zip(model.layers, plain.layers):
        assert getattr(layer, "calls", 0) == getattr(other, "calls", 0)
        assert getattr(layer, "seen", []) == getattr(other, "seen", [])
        assert getattr(layer, "nested", []) == getattr(other, "nested", [])
        if kind is Tallies:
            assert layer.meter.calls == other.meter.calls == 5 and layer.last == other.last and layer.counter == other.counter
    tidemark.remove(model)


# Plain training has the features of the last step until the forward stores new ones; so has a planned one.
def test_stored_features_are_not_held():
    torch.manual_seed(1)
    losses, values, plain, _ = _train(Shows, 5, planned=False)
    torch.manual_seed(1)
    planned_losses, planned_values, model, step = _train(Shows, 5, planned=True)
    assert planned_losses == losses
    assert all(torch.equal(a, b) for a, b in zip(values, planned_values))
    for layer, other in zip(model.layers, plain.layers):
        assert torch.equal(layer.shown, other.shown)
        assert torch.equal(layer.shown_list[0], other.shown_list[0]) and torch.equal(layer.shown_again["h"], other.shown_again["h"])
    report = tidemark.audit(step, model)
    assert all(unit.agrees for unit in report.units)
    assert report.measured_peak_bytes <= report.budget_bytes
    tidemark.remove(model)


def test_a_stored_loss_is_that_of_the_forward():
    """That of the recompute has a graph that no backward frees."""
    torch.manual_seed(1)
    _, _, model, _ = _train(HasLoss, 1, planned=True)
    loss = model(torch.randn(ROWS, WIDTH)).square().mean()
    stored = [layer.aux for layer in model.layers]
    lists = [layer.aux_list for layer in model.layers]
    (loss + sum(stored)).backward()
    assert all(layer.aux is one for layer, one in zip(model.layers, stored))
    assert all(layer.aux_list is one and len(one) == 1 for layer, one in zip(model.layers, lists))
    tidemark.remove(model)


def test_eval_between_forward_and_backward_changes_nothing():
    class Drops(Block):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def branch(self, x):
            return self.down(self.drop(torch.relu(self.up(x))))

    def gradients(planned: bool):
        torch.manual_seed(3)
        _, _, model, _ = _train(Drops, 1, planned)
        torch.manual_seed(4)
        loss = model(torch.randn(ROWS, WIDTH)).square().mean()
        model.eval()
        loss.backward()
        model.train()
        found = [p.grad.clone() for p in model.parameters()]
        if planned:
            tidemark.remove(model)
        return found

    torch.manual_seed(1)
    assert all(torch.equal(a, b) for a, b in zip(gradients(False), gradients(True)))


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (nn.Sequential(nn.ReLU(), nn.Linear(WIDTH, WIDTH)), "more"),
        (nn.Identity(), "fewer"),
    ],
)
def test_other_layers_after_good_steps(other, found):
    """A unit that saves nothing is watched in its first call only; later, the tensors that autograd saves are counted."""

    torch.manual_seed(1)
    _, _, model, step = _train(Switched, 2, planned=True)
    model.layers[0].last = other
    with pytest.raises(tidemark.DriftError, match=r"\[layers.0\] the call left (\d+) tensors for backward; expected (\d+)") as error:
        step()
    left, expected = (int(word) for word in re.findall(r"\d+", str(error.value).split("]", 1)[1])[:2])
    assert (left > expected) == (found == "more")
    tidemark.remove(model)


def test_modules_that_come_later_are_seen():
    class Scales(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return torch.tanh(x) * self.calls

    def weights(planned: bool):
        torch.manual_seed(1)
        _, _, model, step = _train(Switched, 2, planned)
        model.layers[0].last = Scales()
        for _ in range(3):
            step()
        if planned:
            tidemark.remove(model)
        return [parameter.detach().clone() for parameter in model.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(weights(False), weights(True)))


def test_a_module_that_refers_to_itself_is_freed():
    class Refers(Block):
        def __init__(self) -> None:
            super().__init__()
            self.function = self.branch

    _, _, model, step = _train(Refers, 2, planned=True)
    tidemark.remove(model)
    block = weakref.ref(model.layers[0])
    del model, step
    gc.collect()
    assert block() is None
