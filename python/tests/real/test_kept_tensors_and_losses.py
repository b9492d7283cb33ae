"""Where watching a step could change its memory: tensors that modules keep, and losses whose formulas write in place or
whose kernels return a number in a large storage. The peak replayed from a fake capture equals the allocator's."""

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

sys.path.insert(0, os.path.dirname(__file__))
import allocator  # noqa: E402

import tidemark  # noqa: E402


class KeepsItsActivation(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 1024), nn.Linear(1024, 64)
        self.seen = [None]

    def forward(self, x):
        y = self.a(x).relu()
        self.last = y.detach()
        self.seen[0] = y.detach() * 2
        return self.b(y)


def normed():
    first = torch.nn.utils.weight_norm(nn.Linear(64, 1024))
    return nn.Sequential(first, nn.ReLU(), torch.nn.utils.spectral_norm(nn.Linear(1024, 64)))


def square(z):
    return z.pow(2).mean()


def with_targets(loss):
    y = torch.rand(256, 4096)
    return lambda z: loss(z, y)


def weighted_bce(z, y):
    return F.binary_cross_entropy_with_logits(z, y, pos_weight=torch.ones(4096))


def summed_mse(z, y):
    return F.mse_loss(z, y, reduction="sum")


def kl(z, y):
    return F.kl_div(F.log_softmax(z, -1), y, reduction="batchmean")


def cosine(z, y):
    return F.cosine_embedding_loss(z, y, torch.ones(256))


def triplet(z, y):
    return F.triplet_margin_loss(z, y, 1 - y)


def gaussian(z, y):
    """The function lets go of the variance that it is given before it returns."""
    return F.gaussian_nll_loss(z, y, torch.rand(256, 1).expand(256, 4096))


def taken(z, y):
    return z.take(torch.arange(0, 1 << 20, 3)).sum()


def traced(z, y):
    return z.trace() + z.t().trace()


def ctc(z, y):
    """How large its result is depends on the lengths, which are known; on the probabilities it does not."""
    targets, lengths = torch.ones(4, 12, dtype=torch.int64), torch.tensor([10, 3, 12, 1])
    return F.ctc_loss(z.view(256, 4, 1024).log_softmax(-1), targets, torch.full((4,), 256), lengths)


def smoothed(z, y):
    return F.cross_entropy(z, y.argmax(-1), label_smoothing=0.1)


CASES = {
    "kept": (KeepsItsActivation, 64, lambda: square),
    "old norms": (normed, 64, lambda: square),
    "bce with logits": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(F.binary_cross_entropy_with_logits)),
    "weighted bce with logits": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(weighted_bce)),
    "bce": (lambda: nn.Sequential(nn.Linear(16, 4096), nn.Sigmoid()), 16, lambda: with_targets(F.binary_cross_entropy)),
    "soft margin": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(F.soft_margin_loss)),
    "mse": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(F.mse_loss)),
    "mse, summed": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(summed_mse)),
    "smooth l1": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(F.smooth_l1_loss)),
    "huber": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(F.huber_loss)),
    "l1": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(F.l1_loss)),
    "kl": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(kl)),
    "poisson": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(F.poisson_nll_loss)),
    "hinge": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(F.hinge_embedding_loss)),
    "many labels": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(F.multilabel_soft_margin_loss)),
    "cosine": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(cosine)),
    "triplet": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(triplet)),
    "gaussian": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(gaussian)),
    "taken": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(taken)),
    "traced": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(traced)),
    "ctc": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(ctc)),
    "smoothed classes": (lambda: nn.Linear(16, 4096), 16, lambda: with_targets(smoothed)),
}


def in_backward():
    """An optimizer for each parameter, which steps as soon as its gradient is complete."""
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(6)])
    optimizers = {p: torch.optim.AdamW([p], foreach=False) for p in model.parameters()}

    def step_and_forget(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step_and_forget)
    x = torch.randn(64, 256)

    def step():
        square(model(x)).backward()

    return step, model, list(optimizers.values())


def build(name):
    if name == "optimizer in backward":
        return in_backward()
    make, width, make_loss = CASES[name]
    torch.manual_seed(0)
    model, loss = make(), make_loss()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(256, width)

    def step():
        optimizer.zero_grad()
        loss(model(x)).backward()
        optimizer.step()

    return step, model, optimizer


def measured_peak(name):
    """In a process of its own, as bytes above those at the start of the step."""
    done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    top = now = 0
    for change in json.loads(done.stdout.splitlines()[-1]):
        now += change
        top = max(top, now)
    return top


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated")
@pytest.mark.parametrize("name", [*CASES, "optimizer in backward"])
def test_the_peak_is_the_allocators(name):
    measured = measured_peak(name)
    timeline = tidemark.simulate(tidemark.capture(*build(name), mode="fake"))
    assert timeline.peak_bytes - timeline.start_bytes == measured


if __name__ == "__main__":
    print(json.dumps(allocator.measure(lambda: build(sys.argv[1])[0])["events"]))
