"""FLOPs of native steps against published figures and PyTorch's own counter."""

import pytest

import tidemark

pytestmark = pytest.mark.fast
NAMES = [
    "gpt2",
    "llama",
    "llama, all heads their own",
    "qwen2",
    "mistral",
    "mixtral",
    "gemma",
    "t5",
    "t5 gated",
    "bert",
    "vit",
    "resnet of transformers",
    "toy gpt",
    "unet",
    "resnet18",
    "resnet50",
]


def flops(step, *kinds):
    passes = [step.passes[op.pass_].kind for op in step.ops]
    return sum(op.flops for op, kind in zip(step.ops, passes) if kind in kinds)


def test_resnet18_forward_and_backward():
    # torch.utils.flop_counter's documentation: 10,648,412,160 for one image, 10,884,440,064 when it wants a gradient.
    plain = tidemark.native("resnet18", batch=1, image=224)
    assert flops(plain, "forward", "loss", "backward") == 10_648_412_160
    wanted = tidemark.native("resnet18", batch=1, image=224, input_needs_grad=True)
    assert flops(wanted, "forward", "loss", "backward") == 10_884_440_064


def test_gpt2_forward():
    # T = 1024 tokens, D = 768, V = 50257, 12 layers, multiply and add counted apart:
    # linear layers of a block 2 T (3 D D + D D + 4 D D + 4 D D) = 24 T D D, attention 2 x 2 T T D, head 2 T D V.
    t, d, v = 1024, 768, 50257
    expected = 12 * (24 * t * d * d + 4 * t * t * d) + 2 * t * d * v
    assert expected == 291_648_307_200
    assert flops(tidemark.native("gpt2", batch=1, seq=1024), "forward") == expected


# PyTorch counts neither attention on a CPU (the products of the plain kernel it does) nor grouped products.
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_torch_counts_the_same(name):
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    from . import families

    config, options, build = families.pairs()[name]
    model, loss = build()
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        loss().backward()
    native = tidemark.native(config, attention="math", **options)
    grouped = sum(op.flops for op in native.ops if op.name == "aten._grouped_mm.default")
    assert (grouped > 0) == (name == "mixtral")
    assert flops(native, "forward", "loss", "backward") - grouped == counter.get_total_flops() > 0
