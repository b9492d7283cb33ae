"""The forwards of classes: inherited ones, and ones that somebody else exchanges while a plan is applied."""

import gc

import pytest
import torch
from torch import nn

import tidemark
from tidemark._apply import forwards

pytestmark = pytest.mark.fast


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x):
        return x + self.narrow(self.wide(x).tanh())


class Scaled(Block):
    def forward(self, x):
        return super().forward(x) * 0.5


class Inherited(Block):
    pass


class ByForward(Block):
    """Larger batches in two halves, which are no calls of the module."""

    def forward(self, x):
        return torch.cat([self.forward(half) for half in x.chunk(2)]) if len(x) > 16 else super().forward(x)


class ByCall(Block):
    """Likewise; and these are."""

    def forward(self, x):
        return torch.cat([self(half) for half in x.chunk(2)]) if len(x) > 16 else super().forward(x)


class Model(nn.Module):
    """Calls a block of each class, that of the subclass three times."""

    def __init__(self):
        super().__init__()
        self.block, self.scaled, self.inherited = Block(), Scaled(), Inherited()

    def forward(self, x):
        return self.inherited(self.scaled(self.scaled(self.scaled(self.block(x)))))


@pytest.fixture(scope="module")
def step(helpers):
    model, optimizer, run = helpers.small_training(Model)
    return tidemark.capture(run, model, optimizer, workspace=False)


def calls_of(step, *names):
    return [call.id for call in step.calls if step.modules[call.module].fqn in names]


@pytest.mark.parametrize("chosen", [(0, 1, 2, 3, 4), (0, 2), (1, 4), (3,)], ids=str)
def test_a_forward_that_calls_its_base_classs_is_one_call(step, chosen, helpers):
    calls = calls_of(step, "block", "scaled", "inherited")
    assert len(calls) == 5
    plan = tidemark.Plan([(calls[i], []) for i in chosen], step=step)
    plain, _, plain_step = helpers.small_training(Model)
    model, _, run = helpers.small_training(Model)
    plan.apply(model)
    for _ in range(2):
        plain_step()
        run()
    assert helpers.same_weights(plain, model)
    report = tidemark.audit(run, model)
    assert report.agrees and [unit.recomputes for unit in report.units] == [1] * len(chosen)
    tidemark.remove(model)


@pytest.mark.parametrize("kind, calls", [(ByForward, (1, 1)), (ByCall, (3, 3))])
def test_a_forward_that_calls_itself(kind, calls, helpers):
    def make():
        return nn.Sequential(kind(), kind(), nn.Tanh())

    model, optimizer, run = helpers.small_training(make)
    recorded = tidemark.capture(run, model, optimizer, workspace=False)
    first, second = calls_of(recorded, "0"), calls_of(recorded, "1")
    assert (len(first), len(second)) == calls
    # the whole of one module; of the other one nothing, or only its last half
    for chosen in ([first[0]], [second[0]], [first[0], second[-1]]):
        plan = tidemark.Plan([(call, []) for call in chosen], step=recorded)
        assert plan.check(recorded) == []
        plain, _, plain_step = helpers.small_training(make)
        model, _, run = helpers.small_training(make)
        plan.apply(model)
        for _ in range(2):
            plain_step()
            run()
        assert helpers.same_weights(plain, model)
        assert tidemark.audit(run, model).agrees
        tidemark.remove(model)


def test_a_class_whose_forward_somebody_else_exchanges(step, helpers):
    gc.collect()  # models that other tests have left, with what was applied to them
    plan = tidemark.Plan([(calls_of(step, "block")[0], [])], step=step)
    own = Block.__dict__["forward"]
    plain, _, plain_step = helpers.small_training(Model)
    model, _, run = helpers.small_training(Model)
    plan.apply(model)
    ours = Block.forward
    seen = []

    def theirs(self, x):
        seen.append(self)
        return ours(self, x)

    Block.forward = theirs
    try:
        for is_applied in (True, False, True):
            if is_applied and not forwards._detours:
                plan.apply(model)  # over theirs, under which there still is ours of the first time
            run()
            plain_step()
            assert helpers.same_weights(plain, model)
            if is_applied:
                assert tidemark.audit(run, model).agrees
                for _ in range(3):
                    plain_step()
                assert tidemark.remove(model) and not tidemark.remove(model)
            assert Block.__dict__["forward"] is theirs and not forwards._detours and not forwards._classes
        assert seen
    finally:
        Block.forward = own
