"""A model that checkpoints itself, captured for another device: the recompute is imitated as its forward is."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import tidemark

pytestmark = pytest.mark.fast


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.drop = nn.Linear(16, 64), nn.Linear(64, 16), nn.Dropout(0.1)

    def forward(self, x):
        heads = x.view(4, 1, -1, 16)
        heads = F.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.1)
        return x + self.drop(self.down(F.gelu(self.up(heads.view_as(x)))))


@pytest.mark.parametrize("how", ["method", "function"])
def test_a_recompute_runs_what_its_forward_ran(how):
    block = Block()
    x = torch.randn(32, 16, requires_grad=True)

    def step():
        loss = checkpoint(block, x, use_reentrant=False).sum()
        if how == "method":
            loss.backward(gradient=torch.ones(()), retain_graph=False)
        else:
            torch.autograd.backward([loss])

    recorded = tidemark.capture(step, block, target="cuda", workspace=False)
    kinds = {p.id: p.kind for p in recorded.passes}
    names = {kind: [op.name for op in recorded.ops if kinds[op.pass_] == kind] for kind in ("forward", "recompute")}
    assert "aten.native_dropout.default" in names["forward"]
    assert names["recompute"] == names["forward"][: len(names["recompute"])]  # up to where the recompute stops
    assert names["recompute"].count("aten.native_dropout.default") >= 1
