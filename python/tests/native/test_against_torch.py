"""Native steps equal the steps that PyTorch runs: op by op, event by event, byte by byte."""

import functools

import pytest

import tidemark

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from . import families  # noqa: E402
from .compare import first_difference  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
NAMES = list(families.pairs())
OPTIMIZERS = {
    ("adamw", "for-loop"): lambda p: torch.optim.AdamW(p, foreach=False),
    ("adamw", "foreach"): lambda p: torch.optim.AdamW(p, foreach=True),
    ("adamw", "fused"): lambda p: torch.optim.AdamW(p, fused=True),
    ("adam", "for-loop"): lambda p: torch.optim.Adam(p, foreach=False),
    ("adam", "foreach"): lambda p: torch.optim.Adam(p, foreach=True),
    ("adam", "fused"): lambda p: torch.optim.Adam(p, fused=True),
    ("sgd", "for-loop"): lambda p: torch.optim.SGD(p, lr=1e-3, foreach=False),
    ("sgd", "foreach"): lambda p: torch.optim.SGD(p, lr=1e-3, foreach=True),
    ("sgd", "fused"): lambda p: torch.optim.SGD(p, lr=1e-3, fused=True),
    ("momentum", "for-loop"): lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, foreach=False),
    ("momentum", "foreach"): lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, foreach=True),
    ("momentum", "fused"): lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, fused=True),
}


def captured(build, optimizer, target="cpu", dtype=None):
    torch.manual_seed(0)
    model, loss = build()
    if dtype is not None:
        model = model.to(dtype)
    stepper = optimizer(model.parameters())

    def step_fn():
        stepper.zero_grad()
        value = loss()
        value.backward()
        stepper.step()

    return tidemark.capture(step_fn, model, stepper, mode="fake", target=target, workspace=False)


@functools.cache
def both(name, kind=("adamw", "for-loop"), target="cpu", dtype="float32"):
    """The native step and the captured one; several tests look at the same."""
    config, options, build = families.pairs()[name]
    native = tidemark.native(config, optimizer=kind[0], form=kind[1], target=target, dtype=dtype, **options)
    torch_type = None if dtype == "float32" else getattr(torch, dtype)
    return native, captured(build, OPTIMIZERS[kind], target, torch_type)


def compare(name, *choices, **options):
    difference = first_difference(*both(name, *choices, **options), family=name)
    assert not difference, difference


@pytest.mark.parametrize("name", NAMES)
def test_a_native_step_is_the_captured_step(name):
    compare(name)


@pytest.mark.parametrize("kind", OPTIMIZERS, ids=" ".join)
def test_every_optimizer_runs_its_ops(kind):
    compare("toy gpt", kind)


@pytest.mark.parametrize("name", NAMES)
def test_the_choices_of_cuda_are_those_of_the_capture(name):
    compare(name, ("adamw", "foreach"), target="cuda")


@pytest.mark.parametrize("name", ["llama", "llama, odd heads", "gpt2", "bert", "vit", "gemma", "t5", "mixtral"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_parameters_in_half_precision(name, target):
    compare(name, ("adamw", "foreach"), target=target, dtype="bfloat16")


@pytest.mark.parametrize("name", ["t5", "t5 gated", "t5 without dropout", "llama"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_parameters_in_float16(name, target):
    compare(name, ("adamw", "foreach"), target=target, dtype="float16")


@pytest.mark.parametrize("name", NAMES)
def test_flops_and_bytes_are_those_of_the_capture(name):
    native, theirs = both(name)
    known = [(ours.name, ours.flops, other.flops) for ours, other in zip(native.ops, theirs.ops) if other.flops is not None]
    assert [(n, a) for n, a, _ in known] == [(n, b) for n, _, b in known]
    assert [(op.name, op.read_bytes, op.written_bytes) for op in native.ops] == [
        (op.name, op.read_bytes, op.written_bytes) for op in theirs.ops
    ]
