"""Inputs of other sizes than planned."""

import warnings

import pytest
import torch
from torch import nn

import tidemark
from tidemark._apply.sizes import growth_of

pytestmark = pytest.mark.fast


@pytest.fixture(params=["full", "selective"])
def plan(request, gpt):
    return getattr(gpt, request.param)


# Of one row or one token there is nothing to transpose: copies that the plan has, for `reshape` and `contiguous`, are not made.
@pytest.mark.parametrize("rows, length", [(1, 32), (8, 1), (1, 1), (2, 5)])
def test_a_size_of_one(plan, gpt, helpers, rows, length):
    ids = gpt.ids[:rows, :length].contiguous()
    expected = helpers.trained(helpers.small_gpt(), ids=ids)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = helpers.small_gpt()
        assert helpers.equal(expected, helpers.trained(model, prepare=plan.apply, ids=ids))
    tidemark.remove(model)


class Extra(nn.GELU):
    def forward(self, x):
        return super().forward(x).sin()


class Changed(nn.GELU):
    def forward(self, x):
        return torch.tanh(x)


@pytest.mark.parametrize("kind", [Extra, Changed, nn.Identity])
def test_other_ops_are_drift_at_any_size(plan, gpt, helpers, kind):
    model = helpers.small_gpt()
    plan.apply(model)
    model(gpt.ids[:1]).sum().backward()
    model.blocks[1].mlp[1].__class__ = kind
    for again in (gpt.ids[:2], gpt.ids[:1]) if plan is gpt.selective else (gpt.ids[:2],):  # without saved ops, watched once
        with pytest.raises(tidemark.DriftError, match=r"^\[blocks.1\] (op|the call)"):
            model(again)
    tidemark.remove(model)


@pytest.mark.parametrize(
    "sizes, expected",
    [
        ((8, 32), 0),  # as planned
        ((4, 32), 0),
        ((16, 32), 2),  # twice the rows
        ((8, 64), 4),  # twice the length: at most four times, in an attention
        ((4, 64), 2),  # half the rows, twice the length
        ((16, 16), 2),  # the first size may be the length
        ((1, 64), 0.5),  # clearly smaller: one eighth of the rows makes up for the square of two
    ],
)
def test_growth(sizes, expected):
    assert growth_of((("int64", sizes),), (("int64", (8, 32)),)) == expected


def test_longer_sequences_of_fewer_rows_warn(plan, gpt, helpers):
    model = helpers.small_gpt(length=64)
    ids = torch.arange(4 * 64).view(4, 64) % 64
    short = helpers.small_gpt(length=64)
    optimizer = torch.optim.SGD(short.parameters(), lr=0.1)
    recorded = tidemark.capture(helpers.step_of(short, optimizer, gpt.ids), short, optimizer, workspace=False)
    tidemark.Plan.policy(recorded, "full").apply(model)
    with pytest.warns(UserWarning, match="may need 2.00 times the memory planned for"):
        model(ids)
    tidemark.remove(model)


def test_a_plan_without_units_watches_the_models_inputs(gpt, helpers):
    model = helpers.small_gpt()
    tidemark.Plan([], step=gpt.step).apply(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(gpt.ids), model(gpt.ids[:2])
    with pytest.warns(UserWarning, match=r"module \(root\) gets inputs that may need 2.00 times the memory"):
        model(torch.cat([gpt.ids, gpt.ids]))
    tidemark.remove(model)
