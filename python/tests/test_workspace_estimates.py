"""Workspace that cannot be measured is estimated, and says so."""

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import tidemark  # noqa: E402
from tidemark._capture import estimates, workspace  # noqa: E402


def convolutions():
    model = nn.Sequential(nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 16, 3, padding=1))
    batch = torch.randn(64, 16, 32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()

    return tidemark.capture(step, model, optimizer, mode="fake")


def test_ops_above_the_cap_are_extrapolated_and_marked(monkeypatch):
    measured = convolutions()
    assert not any(estimated for _, _, estimated in measured.workspace.rows)
    assert measured.unmeasured == []
    monkeypatch.setattr(workspace, "MOST_BYTES", 4 << 20)  # the batch alone is 4 MiB
    monkeypatch.setattr(estimates, "_TRIAL_BYTES", 1 << 20)
    guessed = convolutions()
    assert guessed.unmeasured == []
    marked = {key for key, _, estimated in guessed.workspace.rows if estimated}
    assert {key.partition("(")[0] for key in marked} >= {"aten.convolution.default", "aten.convolution_backward.default"}
    # Scratch of convolutions grows with the batch: a straight line finds it again.
    truth, guess = tidemark.simulate(measured).peak_bytes, tidemark.simulate(guessed).peak_bytes
    assert abs(guess / truth - 1) < 0.02


def test_ops_with_too_many_flops_are_not_run(monkeypatch):
    monkeypatch.setattr(workspace, "MOST_FLOPS", 1)
    step = convolutions()
    by_key = {key: estimated for key, _, estimated in step.workspace.rows}
    assert all(by_key[key] == key.startswith("aten.conv") for key in by_key)


def test_another_device_is_estimated_by_what_its_kernels_are_known_to_take():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(64, 192, dtype=torch.bfloat16)

        def forward(self, x):
            q, k, v = self.qkv(x).view(2, 100, 3, 4, 16).permute(2, 0, 3, 1, 4)
            return F.scaled_dot_product_attention(q, k, v)

    model = Attention()
    batch = torch.randn(2, 100, 64, dtype=torch.bfloat16)

    def step():
        model.zero_grad()
        model(batch).sum().backward()

    step = tidemark.capture(step, model, mode="fake", target="cuda")
    assert step.workspace.device == "cuda"
    assert all(estimated for _, _, estimated in step.workspace.rows)
    (row,) = [steps for key, steps, _ in step.workspace.rows if "flash_attention_backward" in key]
    # 2 sequences, 4 heads, 100 rows rounded to 128: one float each; and 16 columns rounded to 32 of the query's gradient.
    assert row == [(1, 2 * 4 * 128 * 4), (1, 2 * 4 * 128 * 32 * 4)]
    assert tidemark.simulate(step).by_category["workspace"] >= 0


def test_ops_that_cannot_be_measured_are_warned_of(capsys):
    @torch.library.custom_op("tidemark_tests::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x + x

    doubled.register_fake(torch.empty_like)
    doubled.register_autograd(lambda ctx, g: g * 2)

    class Doubled(nn.Module):
        def forward(self, x):
            return doubled(x)

    model = nn.Sequential(nn.Linear(4, 4), Doubled())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()

    says = "what tidemark_tests.doubled.default allocates inside could not be measured, so the peak may be higher than predicted"
    with pytest.warns(UserWarning, match=says):
        tidemark.fit(step, model, optimizer, budget="1GB")
    assert f" Note: {says}." in capsys.readouterr().out
    tidemark.remove(model)


def test_batch_norm_under_autocast_is_measured():
    """Its backward runs only on statistics of the types that its forward makes."""
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU())

    def step():
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.ones(4, 8)).sum()
        loss.backward()

    assert tidemark.capture(step, model, mode="fake").unmeasured == []
