"""Prices from Python: ranks and nodes, and what the host keeps."""

from pathlib import Path

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


def test_a_plan_written_by_hand_counts_its_ranks(tmp_path):
    """The relu of the example, made an all-reduce: run again with the whole model, it takes what its ranks make of it."""
    lines = (Path(__file__).parents[2] / "examples/steps/two_layer_mlp.step.jsonl").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith('{"section":"ops"')) + 3
    assert lines[at].endswith('[7],[8],[],null,0,null,null,"",null,0,null]')
    lines[at] = lines[at].replace('null,"",null', 'null,"c",10')  # of a group with some name
    text = "\n".join(lines).replace('"aten.relu.default"', '"_c10d_functional.all_reduce.default"') + "\n"
    (tmp_path / "ranks.step.jsonl").write_text(text)
    step = tidemark.Step.load(tmp_path / "ranks.step.jsonl")
    assert step.ops[2].name == "_c10d_functional.all_reduce.default" and "collective" in step.ops[2].flags
    one, eight = (tidemark.Plan([(0, [])], step=step, ranks=ranks).recompute_ms for ranks in (1, 8))
    alone, together = (tidemark.price(step, "cpu", ranks=ranks).ops["ms"][2] for ranks in (1, 8))
    assert together > alone
    assert eight - one == pytest.approx(together - alone)
    with pytest.raises(tidemark.Error, match="ranks"):
        assert tidemark.Plan.policy(step, "full", ranks=8, ranks_per_node=3).recompute_ms


def test_flops_of_grouped_products():
    """Four groups of rows, of what is summed over, of matrices, and of columns: there each column is of one group."""
    from tidemark._capture import amounts

    def flops(first, second):
        tensors = [torch.empty(sizes, dtype=torch.bfloat16, device="meta") for sizes in (first, second)]
        return amounts.flops(torch.ops.aten._grouped_mm.default, (*tensors, None), {}, None)

    assert flops((32, 16), (4, 16, 8)) == 2 * 32 * 16 * 8
    assert flops((16, 32), (32, 8)) == 2 * 16 * 32 * 8
    assert flops((4, 32, 16), (4, 16, 8)) == 4 * 2 * 32 * 16 * 8
    assert flops((4, 32, 16), (16, 24)) == 2 * 32 * 16 * 24


def _conv_passes(**options):
    conv = torch.nn.Conv2d(64, 64, 3, bias=False, **options)
    x = torch.zeros(8, 64, 56, 56, requires_grad=True)
    step = tidemark.capture(lambda: conv(x).sum().backward(), conv, workspace=False, target="cuda")
    passes = tidemark.price(step, "v100").passes
    return passes["forward"]["step_ms"], passes["backward"]["step_ms"]


def test_the_backward_of_grouped_convolutions_is_two_of_them():
    """PyTorch's counter has the weight's gradient as if there were no groups: 64 times as much here."""
    forward, backward = _conv_passes(padding=1, groups=64)
    assert backward < 5 * forward


def test_winograd_is_not_for_dilated_convolutions():
    """Both compute the same number of products; only the plain one may do so with fewer of them."""
    assert _conv_passes(padding=2, dilation=2)[0] > 1.1 * _conv_passes(padding=1)[0]


def test_a_bag_reads_the_rows_it_looks_up():
    """40 rows of 64 floats, 40 indices and 8 offsets of 8 bytes: not the table of 2.5 MB."""
    model = torch.nn.EmbeddingBag(10_000, 64)
    step = tidemark.capture_batch(
        model, torch.zeros(8, 5, dtype=torch.int64), lambda y: y.sum(), torch.optim.SGD(model.parameters()), workspace=False
    )
    bag = next(op for op in step.ops if op.name.startswith("aten._embedding_bag."))
    assert bag.read_bytes == 40 * 64 * 4 + 40 * 8 + 8 * 8
