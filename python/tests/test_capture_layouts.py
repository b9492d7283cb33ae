"""Layouts of results: those of fake tensors, with the cures, are those of PyTorch's own kernels."""

import itertools

import pytest

torch = pytest.importorskip("torch")
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from tidemark._capture.fakes import CURES  # noqa: E402

aten = torch.ops.aten
SIZE = (8, 32, 4, 6)
PLANE = torch.ones(32)

# One tensor, four ways to lay it out: channels first, channels last, two dimensions swapped, expanded.
TENSORS = {
    "first": torch.rand(SIZE),
    "last": torch.rand(SIZE).contiguous(memory_format=torch.channels_last),
    "swapped": torch.rand(8, 4, 32, 6).transpose(1, 2),
    "expanded": torch.rand(8, 32, 1, 1).expand(SIZE),
}
ONE = torch.ones(())
ALL = [True, True, True]
BINARY = {
    aten._log_softmax_backward_data.default: lambda g, x: (g, x, -1, torch.float32),
    aten._softmax_backward_data.default: lambda g, x: (g, x, -1, torch.float32),
    aten.elu_backward.default: lambda g, x: (g, 1.0, 1.0, 1.0, False, x),
    aten.gelu_backward.default: lambda g, x: (g, x),
    aten.hardsigmoid_backward.default: lambda g, x: (g, x),
    aten.hardswish_backward.default: lambda g, x: (g, x),
    aten.hardtanh_backward.default: lambda g, x: (g, x, 0.0, 6.0),
    aten.huber_loss_backward.default: lambda g, x: (ONE, g, x, 1, 1.0),
    aten.leaky_relu_backward.default: lambda g, x: (g, x, 0.1, False),
    aten.mse_loss_backward.default: lambda g, x: (ONE, g, x, 1),
    aten.native_batch_norm_backward.default: lambda g, x: (g, x, PLANE, PLANE, PLANE, PLANE, PLANE, True, 1e-5, ALL),
    aten.silu_backward.default: lambda g, x: (g, x),
    aten.smooth_l1_loss_backward.default: lambda g, x: (ONE, g, x, 1, 1.0),
    aten.softplus_backward.default: lambda g, x: (g, x, 1.0, 20.0),
    aten.threshold_backward.default: lambda g, x: (g, x, 0),
}
# Group norm takes its input and the gradient dense.
GROUPED = (torch.ones(8, 4), torch.ones(8, 4), PLANE, 8, 32, 24, 4, ALL)
UNARY = {
    aten._log_softmax.default: lambda x: (x, -1, False),
    aten.native_batch_norm.default: lambda x: (x, PLANE, PLANE, PLANE.clone(), PLANE.clone(), True, 0.1, 1e-5),
    aten.roll.default: lambda x: (x, [1], [1]),
}


def strides(out):
    return [o.stride() for o in (out if isinstance(out, tuple) else (out,))]


def on_fakes(func, arguments):
    mode = FakeTensorMode()
    given = [mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in arguments]
    cure = CURES.get(func)
    with mode:
        return cure(func, given, {}) if cure is not None else func(*given)


@pytest.mark.parametrize("func", BINARY, ids=str)
def test_of_two_arguments(func):
    kept = [x for name, x in TENSORS.items() if name != "expanded"]  # what forward keeps has memory of its own
    for g, x in itertools.product(TENSORS.values(), kept):
        arguments = BINARY[func](g, x)
        assert strides(on_fakes(func, arguments)) == strides(func(*arguments)), (g.stride(), x.stride())


def test_of_group_norm():
    func = aten.native_group_norm_backward.default
    for g, x in itertools.product(("first", "last"), ("first", "last")):
        arguments = (TENSORS[g], TENSORS[x], *GROUPED)
        assert strides(on_fakes(func, arguments)) == strides(func(*arguments)), (g, x)


@pytest.mark.parametrize("func", UNARY, ids=str)
def test_of_one_argument(func):
    for x in TENSORS.values():
        arguments = UNARY[func](x)
        assert strides(on_fakes(func, arguments)) == strides(func(*arguments)), x.stride()


@pytest.mark.parametrize("dimensions", [2, 3, 5])
def test_of_batch_norm_in_other_dimensions(dimensions):
    func = aten.native_batch_norm_backward.default
    size = (8, 32, 3, 4, 5)[:dimensions]
    plain = torch.rand(size)
    turned = torch.rand(size[:1] + size[2:] + size[1:2]).movedim(-1, 1)  # channels last
    for g, x in itertools.product((plain, turned), (plain, turned)):
        arguments = (g, x, PLANE, PLANE, PLANE, PLANE, PLANE, True, 1e-5, ALL)
        assert strides(on_fakes(func, arguments)) == strides(func(*arguments)), (g.stride(), x.stride())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("trains", [True, False], ids=["train", "eval"])
def test_types_of_batch_norm(dtype, trains):
    """Under autocast the input is narrower than the layer's parameters and statistics."""
    func = aten.native_batch_norm.default
    own = lambda there, kind: torch.ones(32, dtype=kind) if there else None  # noqa: E731
    for kind in {torch.float32, dtype}:
        for has_weight, has_statistics in ((True, True), (False, True), (True, False), (False, False)):
            if not (has_statistics or trains):
                continue
            affine = [own(has_weight, kind) for _ in range(2)]
            statistics = [own(has_statistics, kind) for _ in range(2)]
            arguments = (TENSORS["first"].to(dtype), *affine, *statistics, trains, 0.1, 1e-5)
            expected = [(o.dtype, o.shape) for o in func(*arguments)]
            assert [(o.dtype, o.shape) for o in on_fakes(func, arguments)] == expected, (kind, has_weight, has_statistics)
