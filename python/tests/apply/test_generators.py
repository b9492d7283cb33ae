"""Generators of the program's own, which no checkpoint puts back: what is drawn from them is saved."""

import pytest
import torch
from torch import nn

import tidemark

pytestmark = pytest.mark.fast

GENERATOR = torch.Generator()


class Noisy(nn.Module):
    def __init__(self, in_place=False, generator=GENERATOR):
        super().__init__()
        self.first, self.last = nn.Linear(16, 64), nn.Linear(64, 16)
        self.in_place = in_place
        self.given = [generator]  # in a list: nothing finds it but the op that is given it

    def forward(self, x):
        generator = self.given[0]
        noise = torch.empty_like(x).normal_(generator=generator) if self.in_place else torch.randn(x.shape, generator=generator)
        return self.last(torch.relu(self.first(x + noise)))


def build(**options):
    torch.manual_seed(0)
    model = nn.Sequential(*(Noisy(**options) for _ in range(3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(64, 16)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, optimizer, step


def trained(plan=None, **options):
    model, _, step = build(**options)
    if plan is not None:
        plan.apply(model)
    GENERATOR.manual_seed(5)
    torch.manual_seed(1)
    losses = [step() for _ in range(2)]
    return [*losses, *model.parameters(), *(p.grad for p in model.parameters()), GENERATOR.get_state(), torch.get_rng_state()]


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_capture_puts_the_generator_back(mode):
    model, optimizer, step = build()
    GENERATOR.manual_seed(3)
    before = GENERATOR.get_state()
    tidemark.capture(step, model, optimizer, mode=mode, workspace=False)
    assert torch.equal(GENERATOR.get_state(), before)


def test_what_is_drawn_is_saved_and_the_gradients_are_the_same_bits(helpers):
    model, optimizer, step = build()
    recorded = tidemark.capture(step, model, optimizer)
    assert recorded.unmeasured == []
    smallest = tidemark.plan(recorded, budget=1).smallest_peak_bytes
    plan = tidemark.plan(recorded, budget=smallest + 4096).plan
    assert len(plan) > 0
    for _, saved in plan.units:
        assert any(recorded.ops[op].name == "aten.randn.generator" for op in saved)
    assert helpers.equal(trained(), trained(plan))


def test_draws_that_cannot_be_saved_exclude_the_module(helpers):
    model, optimizer, step = build(in_place=True)
    recorded = tidemark.capture(step, model, optimizer, workspace=False)
    result = tidemark.plan(recorded, budget=1)
    # The three that draw, and the model around them.
    assert result.excluded["cannot_save"] == 4
    plan = tidemark.plan(recorded, budget=result.smallest_peak_bytes + 4096).plan
    assert helpers.equal(trained(in_place=True), trained(plan, in_place=True))


def test_pytorchs_own_generator_given_by_name_is_preserved(helpers):
    options = {"generator": torch.default_generator}
    model, optimizer, step = build(**options)
    recorded = tidemark.capture(step, model, optimizer, workspace=False)
    plan = tidemark.Plan.policy(recorded, "full")
    assert len(plan) > 0 and not any(saved for _, saved in plan.units)
    assert helpers.equal(trained(**options), trained(plan, **options))


def test_a_generator_that_was_not_there_at_capture_is_refused():
    model, optimizer, step = build(generator=torch.default_generator)
    plan = tidemark.Plan.policy(tidemark.capture(step, model, optimizer, workspace=False), "full")
    plan.apply(model)
    for module in model:
        module.given[0] = GENERATOR
    with pytest.raises(tidemark.DriftError, match=r"\[0\] aten.randn.generator draws from a torch.Generator of the program's own"):
        step()
