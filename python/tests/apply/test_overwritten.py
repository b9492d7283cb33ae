"""Calls whose recompute would read something else than their forward did are no units, whoever wrote there; and what only looks like
it stays one."""

import json

import pytest
import torch
from torch import nn

import tidemark

pytestmark = pytest.mark.fast


class Reader(nn.Module):
    """Its first op keeps nothing of its input for backward, so that plain training may write there."""

    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x, t=None):
        y = x + 1
        if t is not None:
            y = y + (t[0] if isinstance(t, tuple) else t)
        return self.narrow(self.wide(y.sin()).tanh())


class Loop(nn.Module):
    """How one of its layers is called, and what happens to what it got."""

    def __init__(self, how, layer=Reader):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.layers = nn.ModuleList(layer() for _ in range(4))
        self.register_buffer("time", torch.zeros(1))
        self.how = how

    def forward(self, x):
        x = self.first(x)
        t = torch.zeros(1)
        for layer in self.layers:
            x = self.how(self, layer, x, t)
        return x


def by_position(model, layer, x, t):
    y = layer(x)
    x.mul_(0.5)
    return y + x


def by_keyword(model, layer, x, t):
    y = layer(x=x)
    x.mul_(0.5)
    return y + x


def in_a_tuple(model, layer, x, t):
    y = layer(x, (t,))
    t.add_(1)
    return x + y


def a_buffer(model, layer, x, t):
    y = layer(x, model.time)
    with torch.no_grad():
        model.time.add_(0.1)
    return x + y


def untouched(model, layer, x, t):
    y = layer(x, t)
    t = t + 1
    return x + y


class Rectified(nn.Module):
    """Writes into its input at once."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))

    def forward(self, x):
        return self.body(x)


class Residual(nn.Module):
    """Writes in place into what it made itself, and moves the statistics of its norm."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(inplace=True), nn.Linear(64, 16))

    def forward(self, x):
        y = self.body(x)
        y += x
        return y


def straight(model, layer, x, t):
    return layer(x)


def recorded(how, layer=Reader):
    torch.manual_seed(0)
    model, x = Loop(how, layer), torch.randn(64, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return model, step, tidemark.capture(step, model, optimizer)


def at_least(step, **options):
    least = tidemark.plan(step, 1, **options)
    return tidemark.plan(step, least.smallest_peak_bytes + least.reserve_bytes, **options)


def trained_equally(how, layer, plan):
    results = []
    for planned in (False, True):
        torch.manual_seed(0)
        model, x = Loop(how, layer), torch.randn(64, 16)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if planned:
            plan.apply(model)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        results.append([*(p.grad for p in model.parameters()), *(v.clone() for v in model.state_dict().values())])
        tidemark.remove(model)
    return all(map(torch.equal, *results))


@pytest.mark.parametrize("how, layer", [(by_position, Reader), (by_keyword, Reader), (in_a_tuple, Reader), (a_buffer, Reader), (straight, Rectified)])
def test_what_is_overwritten_is_no_unit(how, layer):
    _, _, step = recorded(how, layer)
    layers = [call.id for call in step.calls if step.modules[call.module].fqn in ("layers.0", "layers.1", "layers.2")]
    by_hand = tidemark.Plan([(call, []) for call in layers], step=step)
    assert [violation["kind"] for violation in by_hand.check(step)] == ["overwritten"] * 3
    result = at_least(step)
    assert result.excluded["overwritten"] >= 3
    assert not any(unit["module"] in ("layers.0", "layers.1", "layers.2") for unit in json.loads(result.plan.to_json())["units"])
    assert trained_equally(how, layer, result.plan)


@pytest.mark.parametrize("how, layer", [(untouched, Reader), (straight, Residual)])
def test_what_is_not_stays_one(how, layer):
    _, _, step = recorded(how, layer)
    result = at_least(step, units=["layers.?"])
    layers = [call.id for call in step.calls if step.modules[call.module].fqn.rpartition(".")[0] == "layers"]
    assert tidemark.Plan([(call, []) for call in layers], step=step).check(step) == [] and len(result.plan) >= 2
    assert trained_equally(how, layer, result.plan)
