"""FLOPs of native steps against published figures and PyTorch's own counter."""

import pytest

import tidemark

pytestmark = pytest.mark.fast


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


def test_torch_counts_the_same():
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    from . import plain_models as plain

    model = plain.ResNet(plain.BasicBlock, [2, 2, 2, 2])
    with FlopCounterMode(display=False) as counter:
        model(torch.randn(1, 3, 224, 224)).sum().backward()
    assert counter.get_total_flops() == flops(tidemark.native("resnet18", batch=1, image=224), "forward", "loss", "backward")
