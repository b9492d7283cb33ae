"""A recompute sees the containers among its arguments as the forward saw them, whoever changed them since, and changes none of the program's."""

from collections import deque, namedtuple
from dataclasses import dataclass

import pytest
import torch
from torch import nn

import tidemark
from tidemark._apply.containers import copied

pytestmark = pytest.mark.fast


class Block(nn.Module):
    def __init__(self, read):
        super().__init__()
        self.wide, self.narrow = nn.Linear(16, 64), nn.Linear(64, 16)
        self.read = read

    def forward(self, *args, **kwargs):
        return self.read(self, *args, **kwargs)

    def mix(self, x):
        return self.narrow(self.wide(x).tanh())


class State:
    def __init__(self, x):
        self.x, self.seen = x, []


Pair = namedtuple("Pair", "values scale")


@dataclass
class Record:
    x: torch.Tensor


def rebinds_a_dict(blocks, x):
    state = {"x": x}
    for block in blocks:
        state["x"] = block(state)
    return state["x"]


def rebinds_an_object(blocks, x):
    state = State(x)
    for block in blocks:
        state.x = block(state)
    return state.x


def rebinds_a_record(blocks, x):
    record = Record(x)
    for block in blocks:
        record.x = block(record)
    return record.x


def by_keyword(blocks, x):
    state = {"x": x}
    for block in blocks:
        state["x"] = block(state=state)
    return state["x"]


def grows(blocks, x):
    found = [x]
    for block in blocks:
        found.append(block(found))
    return found[-1]


def pops(blocks, x):
    stack = [x, x.sin(), x.cos(), x.exp()]
    for block in blocks:
        x = block(x, stack)
    assert len(stack) == 4 - len(blocks)
    return x


def puts_in(blocks, x):
    for block in blocks:
        out = []
        assert block(x, out) is None
        (x,) = out
    return x


def in_a_queue(blocks, x):
    queue = deque([x], maxlen=2)
    for block in blocks:
        queue.append(block({"nested": (queue, 1)}))
    return queue[-1]


def in_a_pair(blocks, x):
    values = [x]
    for block in blocks:
        values[0] = block(Pair(values, 0.5))
    return values[0]


def put(block, x, out):
    out.append(x + block.mix(x))


WAYS = {
    rebinds_a_dict: lambda block, state: state["x"] + block.mix(state["x"]),
    rebinds_an_object: lambda block, state: state.x + block.mix(state.x),
    rebinds_a_record: lambda block, record: record.x + block.mix(record.x),
    by_keyword: lambda block, state: state["x"] + block.mix(state["x"]),
    grows: lambda block, found: block.mix(torch.stack(found).mean(0)),
    pops: lambda block, x, stack: block.mix(x + stack.pop()),
    puts_in: put,
    in_a_queue: lambda block, given: block.mix(torch.stack(list(given["nested"][0])).mean(0)),
    in_a_pair: lambda block, pair: pair.values[0] + pair.scale * block.mix(pair.values[0]),
}


class Model(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.blocks = nn.ModuleList(Block(WAYS[way]) for _ in range(3))
        self.way = way

    def forward(self, x):
        return self.way(self.blocks, self.first(x))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_recompute_sees_what_the_forward_saw(way, helpers):
    plain, _, plain_step = helpers.small_training(lambda: Model(way))
    model, optimizer, step = helpers.small_training(lambda: Model(way))
    captured = tidemark.capture(step, model, optimizer, workspace=False)
    units = [(call.id, []) for call in captured.calls if captured.modules[call.module].fqn in ("blocks.0", "blocks.1", "blocks.2")]
    assert len(units) == 3
    plan = tidemark.Plan(units, step=captured)
    assert plan.check(captured) == []
    plan.apply(model)
    for _ in range(2):
        plain_step()
        step()
    assert helpers.same_weights(plain, model)
    report = tidemark.audit(step, model)
    assert report.agrees and all(unit.recomputes == 1 for unit in report.units)
    assert report.measured_growth_bytes == report.predicted_growth_bytes
    tidemark.remove(model)


def test_copies_are_as_deep_as_the_containers_and_what_was_one_stays_one():
    x = torch.zeros(2)
    inner = [x]
    outer = {"a": inner, "b": (inner, {x})}
    held, kwargs = copied((outer, inner, x), {"again": inner, "n": 3})
    assert held[0] is not outer and held[0]["a"] is not inner
    assert held[0]["a"] is held[1] is kwargs["again"] is held[0]["b"][0]
    assert held[0]["b"][1] is not outer["b"][1]
    assert held[2] is x and held[1][0] is x  # tensors are not copied
    inner.append(x)
    assert len(held[1]) == 1


def test_a_container_in_itself_ends():
    loop: list = []
    loop.append(loop)
    (held,), _ = copied((loop,), {})
    assert held is not loop and held[0] is held


def test_without_containers_nothing_is_made():
    args, kwargs = (torch.zeros(1), 3, None, (1, torch.zeros(1)), nn.Linear(1, 1)), {"n": 0.5}
    held, held_kwargs = copied(args, kwargs)
    assert held is args and held_kwargs is kwargs
