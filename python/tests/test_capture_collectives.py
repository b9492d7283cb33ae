"""Collectives in a captured step, with a process group that talks to nobody."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

import tidemark

pytestmark = pytest.mark.fast

RANKS = 8


@pytest.fixture(scope="module", autouse=True)
def group():
    fake_pg = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    dist.init_process_group("fake", rank=0, world_size=RANKS, store=fake_pg.FakeStore())
    yield
    dist.destroy_process_group()


def priced(talk):
    """(name, ms, source) of the collectives in a step that talks about a gradient of 256 x 256 floats."""
    model = nn.Linear(256, 256, bias=False)
    x = torch.randn(16, 256)

    def step():
        model.zero_grad()
        model(x).sum().backward()
        talk(model.weight.grad)

    recorded = tidemark.capture(step, model, target="cuda", workspace=False)
    cost = tidemark.price(recorded, "h100-sxm", ranks=RANKS)
    assert not cost.unpriced
    return [(op.name, ms, source) for op, ms, source in zip(recorded.ops, cost.ops["ms"], cost.ops["source"]) if "c10d" in op.name]


def functional():
    from torch.distributed import _functional_collectives as collectives

    return collectives


@pytest.mark.parametrize(
    "talk",
    [
        lambda grad: dist.all_reduce(grad),
        lambda grad: dist.broadcast(grad, 0),
        lambda grad: dist.all_gather_into_tensor(torch.empty(RANKS * 256, 256), grad),
        lambda grad: dist.reduce_scatter_tensor(torch.empty(256 // RANKS, 256), grad),
        lambda grad: dist.all_to_all_single(torch.empty_like(grad), grad),
        lambda grad: functional().all_reduce(grad, "sum", dist.group.WORLD) + 0,
        lambda grad: functional().all_gather_tensor(grad, 0, dist.group.WORLD) + 0,
        lambda grad: functional().reduce_scatter_tensor(grad, "sum", 0, dist.group.WORLD) + 0,
    ],
    ids=["all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "functional_all_reduce", "functional_all_gather", "functional_reduce_scatter"],
)
def test_every_collective_has_a_price(talk):
    ops = priced(talk)
    talks = [op for op in ops if "wait_tensor" not in op[0]]
    assert len(talks) == 1 and talks[0][2] == "modelled" and talks[0][1] > 0.001  # a launch alone takes more than a microsecond
    assert all(ms == 0 and source == "free" for _, ms, source in ops if _ != talks[0][0])


# A ring moves 2 (n - 1) / n of the bytes for an all-reduce, and half of that to gather: with latencies that are the same in
# each of twice as many rounds, half of the time beyond the launch.
def test_to_gather_takes_half_of_an_all_reduce_of_as_many_bytes():
    (_, reduce_ms, _), = priced(lambda grad: dist.all_reduce(torch.zeros(4096, 4096)))
    (_, gather_ms, _), = priced(lambda grad: dist.all_gather_into_tensor(torch.empty(4096, 4096), torch.zeros(4096 // RANKS, 4096)))
    assert gather_ms == pytest.approx(reduce_ms / 2, rel=0.1)
