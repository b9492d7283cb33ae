"""The sequences of section 20.4's module tracker tests, in the shape of the original calls."""

from copy import copy

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from tidemark.compat.mod_tracker import ModTracker  # noqa: E402


def test_parents_in_forward_and_backward():
    forward, backward = [], []

    class Leaf(nn.Module):
        def forward(self, x):
            x = x["a"].relu_()
            forward.append((copy(tracker.parents), tracker.is_bw))
            x.register_hook(lambda grad: backward.append((copy(tracker.parents), tracker.is_bw)))
            return {"a": torch.mm(x, x)}

    class Mod(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = Leaf()
            self.b = nn.ModuleDict({"nest": Leaf()})
            self.c = nn.ModuleList([Leaf()])

        def forward(self, x):
            return self.b["nest"](self.a(self.c[0](x)))

    mod = Mod()
    with ModTracker() as tracker:
        for _ in range(2):
            mod({"a": torch.randn(10, 10, requires_grad=True).clone()})["a"].sum().backward()
    names = ["Mod.c.0", "Mod.a", "Mod.b.nest"]
    assert forward == [({"Global", "Mod", name}, False) for name in names] * 2
    assert backward == [({"Global", "Mod", name}, True) for name in reversed(names)] * 2


def test_nothing_runs_after_backward():
    with ModTracker() as tracker:
        nn.Linear(2, 2)(torch.rand(2, requires_grad=True)).sum().backward()
        assert not tracker.is_bw
        assert tracker.parents == {"Global"}


def _noting(tracker: ModTracker, seen: list):
    def hook(kind):
        def note(module, *_):
            name = tracker.get_known_fqn(module) if module is not None else None
            seen.append((kind, name, name in tracker.parents, tracker.is_bw))

        return note

    return [hook(kind) for kind in ("pre_fw", "post_fw", "pre_bw", "post_bw")]


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(10, 10)

    def forward(self, x):
        return self.inner(x).relu_()


def test_user_hooks():
    tracker, seen = ModTracker(), []
    tracker.register_user_hooks(*_noting(tracker, seen))
    mod = Outer()
    with tracker:
        mod(torch.rand(10, 10, requires_grad=True)).sum().backward()
    forward = [
        ("pre_fw", "Outer", True, False),
        ("pre_fw", "Outer.inner", True, False),
        ("post_fw", "Outer.inner", True, False),
        ("post_fw", "Outer", True, False),
    ]
    # The outer one ends first: both wait for the gradient of the same tensor, and it asked first.
    assert seen == forward + [
        ("pre_bw", "Outer", True, True),
        ("pre_bw", "Outer.inner", True, True),
        ("post_bw", "Outer", True, True),
        ("post_bw", "Outer.inner", True, True),
    ]
    with pytest.raises(AssertionError):
        tracker.register_user_hooks(lambda x, y: x, None, None, None)
    seen.clear()
    with tracker:
        loss = mod(torch.rand(10, 10, requires_grad=True)).sum()
        del mod
        loss.backward()
    gone = [(kind, None, False, True) for kind in ("pre_bw", "pre_bw", "post_bw", "post_bw")]
    assert seen == forward + gone


def test_a_checkpointed_module_runs_forward_in_backward():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.linears = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

        def forward(self, x):
            x = self.linears[0](x).relu()
            return checkpoint(self.linears[1], x, preserve_rng_state=True, use_reentrant=False).relu()

    tracker, seen = ModTracker(), []
    tracker.register_user_hooks(*_noting(tracker, seen))
    with tracker:
        two = Two()
        two(torch.randn(2, 8)).sum().backward()
    expected = """pre_fw Two/pre_fw Two.linears.0/post_fw Two.linears.0/pre_fw Two.linears.1/post_fw Two.linears.1/post_fw Two/
        pre_bw Two/pre_bw Two.linears.1/pre_fw Two.linears.1/post_fw Two.linears.1/post_bw Two.linears.1/pre_bw Two.linears.0/
        post_bw Two.linears.0/post_bw Two"""
    assert [f"{kind} {name}" for kind, name, _, _ in seen] == [line.strip() for line in expected.split("/")]
    assert all(is_parent for _, _, is_parent, _ in seen)
    assert [in_backward for _, _, _, in_backward in seen] == [False] * 6 + [True] * 8
