"""Layouts of results are remembered while a step is captured on fake tensors. That changes nothing but the time: a step
captured without the memory has the same bytes."""

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tidemark  # noqa: E402
from tidemark._capture.memo import NOT_KNOWN, Memo  # noqa: E402


def squares_of_itself(x):
    """The same op on one tensor twice, and on two of the same layout."""
    y = x * 1
    z = y.clone()
    z.mul_(y)
    y = y.clone()
    with torch.no_grad():
        y.mul_(y)
    return (y.mul(z) + z).sum()


def results_in_given_tensors(x):
    with torch.no_grad():
        a, b, c = torch.empty(4, 4), torch.empty(4, 4), torch.empty(0)
        torch.add(a, b, out=a)
        torch.add(a, b, out=b)
        torch.add(a, b, out=c)  # resized once
        torch.add(a, b, out=c)
    return (x * c).sum()


def changed_layouts(x):
    y = (x * 2).detach()
    y.t_()
    y.unsqueeze_(0)
    y = y + y.t() if y.dim() == 2 else y
    y.resize_(2, 2)
    y.resize_(4, 4)
    return (x * y).sum()


def masks(x):
    few, many = torch.tensor([True, False, False, False]), torch.tensor([True, True, True, False])
    return x[few].sum() + x[many].sum() + x[few.nonzero()[:, 0]].sum() + x[many.nonzero()[:, 0]].sum()


def numbers_of_several_types(x):
    whole = torch.ones(4, 4, dtype=torch.int64)
    a = whole.mul(2), whole.mul(2.0), whole.mul(True)
    with torch.no_grad():
        b = torch._foreach_add([whole, whole], [1, 2]) + torch._foreach_add([whole, whole], [1.0, 2.0])
    return sum((x * t).sum() for t in (*a, *b))


def negatives(x):
    """The imaginary part of a conjugate is a view with a flag; its layout is that of the plain one."""
    pairs = x.reshape(4, 2, 2)
    plain, negative = torch.view_as_complex(pairs).imag, torch.view_as_complex(pairs).conj().imag
    return plain.unsqueeze(0).sum() + negative.unsqueeze(0).sum()


def losses(x):
    """A number in a storage of the size of all elements."""
    return sum(nn.functional.mse_loss(x, torch.zeros(4, 4)) for _ in range(2))


def known_values(x):
    total = x.sum()
    steps = torch.tensor(1)
    for _ in range(3):
        steps = steps + 1
    for _ in range(int(steps)):
        total = total + x.sum()
    counter = torch.zeros(())
    counter += 1
    counter += 1
    if counter.item() == 2:
        total = total * 2
    return total


def parts_and_lists(x):
    a, b = x.split(2)
    c, d = x.chunk(2, 1)
    values, places = x.sort()
    with torch.no_grad():
        torch._foreach_mul_([x.detach().clone(), x.detach().clone()], 0.5)
    return (a * b).sum() + (c * d).sum() + (values * places).sum() + torch.stack([a, b]).sum()


class Weighed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4, 4))

    def forward(self, function):
        return function(self.weight) + function(self.weight)


PROGRAMS = (
    squares_of_itself,
    results_in_given_tensors,
    changed_layouts,
    masks,
    numbers_of_several_types,
    negatives,
    losses,
    known_values,
    parts_and_lists,
)


def captured(function, mode="fake"):
    torch.manual_seed(0)
    model = Weighed()
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        optimizer.zero_grad()
        model(function).backward()
        optimizer.step()

    return tidemark.capture(step, model, optimizer, mode=mode, workspace=False)


@pytest.mark.parametrize("function", PROGRAMS)
def test_the_same_step_with_and_without(function, monkeypatch):
    hits = []
    result = Memo.result

    def counted(self, key, tensors):
        out = result(self, key, tensors)
        hits.append(out is not NOT_KNOWN)
        return out

    monkeypatch.setattr(Memo, "result", counted)
    remembered = captured(function)
    assert any(hits) or function is negatives  # where tensors are complex, it is off
    monkeypatch.setattr(Memo, "key", lambda *_: None)
    assert remembered.text() == captured(function).text()
    real = captured(function, "real")
    assert [op.name for op in remembered.ops] == [op.name for op in real.ops]
    assert remembered.fingerprint == real.fingerprint
