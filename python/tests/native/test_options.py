"""Precision, attention kernels, gradient accumulation and clipping: each as PyTorch does it."""

import contextlib

import pytest

import tidemark

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.optim.adamw import adamw  # noqa: E402

from . import families  # noqa: E402
from .compare import first_difference  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
EVERY = ["gpt2", "llama", "qwen2", "gemma", "mixtral", "t5", "t5 gated", "vit", "toy gpt"]


class MasterAdamW(torch.optim.Optimizer):
    """AdamW on float32 copies of the parameters, in PyTorch's own words."""

    def __init__(self, params, foreach):
        super().__init__(params, {})
        self.foreach = foreach

    @torch.no_grad()
    def step(self):
        params = [p for group in self.param_groups for p in group["params"]]
        for p in params:
            if p not in self.state:
                zeros = torch.zeros_like(p, dtype=torch.float32)
                self.state[p] = {
                    "step": torch.tensor(0.0),
                    "exp_avg": zeros,
                    "exp_avg_sq": zeros.clone(),
                    "master": p.float(),
                }
        rows = [self.state[p] for p in params]
        masters = [row["master"] for row in rows]
        grads = [p.grad.float() for p in params]
        adamw(
            masters,
            grads,
            [row["exp_avg"] for row in rows],
            [row["exp_avg_sq"] for row in rows],
            [],
            [row["step"] for row in rows],
            foreach=self.foreach,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=1e-3,
            weight_decay=1e-2,
            eps=1e-8,
            maximize=False,
        )
        torch._foreach_copy_(params, masters)


def captured(
    build, *, target="cpu", mode="fake", dtype=None, optimizer=None, around=contextlib.nullcontext, micro_batches=1, clip_norm=0.0
):
    torch.manual_seed(0)
    model, forward = build()
    if dtype is not None:
        model = model.to(dtype)
    stepper = (optimizer or (lambda p: torch.optim.AdamW(p, foreach=True)))(model.parameters())

    def step_fn():
        stepper.zero_grad()
        for _ in range(micro_batches):
            with around():
                loss = forward() if micro_batches == 1 else forward() / micro_batches
            loss.backward()
        if clip_norm:
            # foreach is the choice for real tensors; fake ones have to be told.
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm, foreach=True)
        stepper.step()

    return tidemark.capture(step_fn, model, stepper, mode=mode, target=target, workspace=False)


def compare(name, theirs, **ours):
    config, options, build = families.pairs()[name]
    native = tidemark.native(config, form="foreach", **options, **ours)
    difference = first_difference(native, captured(build, target=ours.get("target", "cpu"), **theirs), family=name)
    assert not difference, difference


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("word", ["bf16", "fp16"])
def test_autocast(name, word):
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[word]
    compare(name, {"around": lambda: torch.autocast("cpu", dtype=dtype)}, precision=f"autocast-{word}")


# For norms of half precision with weights in single, fake tensors make up other types than the kernels.
@pytest.mark.parametrize("name", ["bert", "resnet18", "resnet of transformers", "unet"])
def test_autocast_of_norms(name):
    around = lambda: torch.autocast("cpu", dtype=torch.bfloat16)  # noqa: E731
    compare(name, {"around": around, "mode": "real"}, precision="autocast-bf16")


@pytest.mark.parametrize("name", ["llama", "t5"])
def test_autocast_keeps_casts_of_parameters_for_one_micro_batch(name):
    around = lambda: torch.autocast("cpu", dtype=torch.bfloat16)  # noqa: E731
    compare(name, {"around": around, "micro_batches": 2}, precision="autocast-bf16", micro_batches=2)


@pytest.mark.parametrize("form", ["for-loop", "foreach"])
def test_a_master_copy_in_the_optimizer(form):
    config, options, build = families.pairs()["toy gpt"]
    native = tidemark.native(config, precision="bf16-master", form=form, **options)
    theirs = captured(build, dtype=torch.bfloat16, optimizer=lambda p: MasterAdamW(p, foreach=form == "foreach"))
    difference = first_difference(native, theirs)
    assert not difference, difference


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "toy gpt", "resnet18"])
@pytest.mark.parametrize("count", [2, 3])
def test_gradients_add_up_over_micro_batches(name, count):
    compare(name, {"micro_batches": count}, micro_batches=count)


@pytest.mark.parametrize("name", ["gpt2", "llama", "resnet18"])
def test_gradients_are_clipped(name):
    compare(name, {"clip_norm": 0.5}, clip_norm=0.5)


def test_clipping_in_half_precision_after_micro_batches():
    compare("llama", {"clip_norm": 1.0, "micro_batches": 2, "dtype": torch.bfloat16}, clip_norm=1.0, micro_batches=2, dtype="bfloat16")


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "vit", "toy gpt", "t5"])
def test_attention_by_the_math_kernel(name):
    compare(name, {"around": lambda: sdpa_kernel(SDPBackend.MATH)}, attention="math")


# Without dropout: in a capture on a CPU, the ops inside of this kernel are those of a CPU.
@pytest.mark.parametrize("name", ["llama", "bert without dropout", "vit", "t5 without dropout"])
def test_attention_by_the_math_kernel_on_cuda(name):
    compare(name, {"around": lambda: sdpa_kernel(SDPBackend.MATH)}, attention="math", target="cuda")


def test_attention_by_the_efficient_kernel_where_flash_is_the_choice():
    around = lambda: sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION)  # noqa: E731
    compare("bert", {"around": around, "dtype": torch.bfloat16}, attention="efficient", target="cuda", precision="bf16")


def test_attention_by_the_flash_kernel():
    compare("llama", {"dtype": torch.bfloat16}, attention="flash", target="cuda", precision="bf16")
    compare("llama", {}, attention="flash")


@pytest.mark.parametrize(
    "options,words",
    [
        ({"attention": "efficient"}, "efficient kernel does not take these inputs; expected target cuda"),
        ({"attention": "flash", "target": "cuda"}, "flash kernel does not take these inputs; expected half precision"),
        ({"precision": "int3"}, "expected fp32, bf16, fp16, bf16-master"),
        ({"micro_batches": 0}, "micro-batches.*from 1 to 4096, got 0"),
        ({"clip_norm": float("nan")}, "clip-norm.*above 0"),
        ({"clip_norm": -1.0}, "clip-norm.*above 0"),
    ],
)
def test_options_that_cannot_be(options, words):
    with pytest.raises(tidemark.Error, match=words):
        tidemark.native(families.pairs()["llama"][0], **options)


def test_flash_attention_pads_odd_heads_without_a_mask():
    config, options, build = families._language("BertForMaskedLM", {**families.BERT, "hidden_size": 33, "num_attention_heads": 3})
    native = tidemark.native(config, form="foreach", dtype="bfloat16", target="cuda", **options)
    difference = first_difference(native, captured(build, dtype=torch.bfloat16, target="cuda"), family="bert")
    assert not difference, difference
