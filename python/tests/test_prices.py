"""Prices from Python: ranks and nodes, and what the host keeps."""

import pytest
import torch

import tidemark


def test_ranks_have_to_make_sense():
    step = tidemark.native("gpt2", batch=1, seq=32)
    for ranks, per_node in ((0, 0), (-3, 0), (8, 3)):
        with pytest.raises(tidemark.Error, match="ranks"):
            tidemark.price(step, "h100-sxm", ranks=ranks, ranks_per_node=per_node)
    tidemark.price(step, "h100-sxm", ranks=8, ranks_per_node=4)


def test_the_counters_of_a_captured_adamw_are_the_hosts():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)

    def train():
        model(torch.ones(8, 64)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step = tidemark.capture(train, model, optimizer, mode="fake", target="cuda", workspace=False)
    cost = tidemark.price(step, "h100-sxm")
    of = cost.ops["source"]
    reads = [i for i, op in enumerate(step.ops) if op.name == "aten._local_scalar_dense.default"]
    assert len(reads) == 4  # two bias corrections of weight and bias
    assert {of[i] for i in reads} == {"free"}
    lifted = [i for i, op in enumerate(step.ops) if op.name == "aten.lift_fresh.default"]
    assert lifted and {of[i] for i in lifted} == {"free"}
