"""Layers that a recorded step leaves out, although others beside them run."""

import warnings

import pytest
import torch
from torch import nn

import tidemark

pytestmark = pytest.mark.fast


class Drops(nn.Module):
    def __init__(self, skipped):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(6))
        self.spare = nn.ModuleList([nn.Linear(8, 8)])  # none beside it runs: no choice of this step
        self.skipped = skipped

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if i not in self.skipped:
                x = layer(x)
        return x


def captured(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(4, 8)

    def step():
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    return tidemark.capture(step, model, optimizer, workspace=False)


@pytest.mark.parametrize("skipped, named", [({2}, "layers.2 did not run"), ({1, 2, 3, 4}, "layers.1, layers.2, layers.3 and 1 more did not run")])
def test_layers_that_chance_left_out_are_named(skipped, named):
    with pytest.warns(UserWarning, match=named):
        step = captured(Drops(skipped))
    assert any(note.kind == "left out" and named in note.text for note in step.notes)


def test_nothing_is_said_of_a_step_that_runs_all():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        captured(Drops(set()))


def test_frozen_layers_need_no_memory_to_speak_of():
    model = Drops({2})
    model.layers[2].requires_grad_(False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        captured(model)
