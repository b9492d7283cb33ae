"""The models that plans are applied to: those of python/tests/real, and ones with what makes applying hard.

`build(name)` returns (model, batch, loss) as there; `training_step(name, ...)` is one whole step in the user's own words.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "real"))

import models  # noqa: E402


class LoRALinear(nn.Module):
    def __init__(self, inner: nn.Linear, rank: int = 8):
        super().__init__()
        self.inner = inner.requires_grad_(False)
        self.down = nn.Linear(inner.in_features, rank, bias=False)
        self.up = nn.Linear(rank, inner.out_features, bias=False)

    def forward(self, x):
        return self.inner(x) + self.up(self.down(x))


class SharedLayers(nn.Module):
    """One block called three times (ALBERT), with dropout."""

    def __init__(self, width=96):
        super().__init__()
        self.tokens = nn.Embedding(300, width)
        self.block = models.Block(width, 4)
        self.head = nn.Linear(width, 300)

    def forward(self, ids):
        x = self.tokens(ids)
        for _ in range(3):
            x = self.block(x)
        return self.head(x)


class TiedMoE(models.MoE):
    """All experts start equal, so that the router's choices are ties from place to place."""

    def __init__(self):
        super().__init__()
        with torch.no_grad():
            for router in self.routers:
                router.weight.zero_()
                router.bias.zero_()


class Normalizer(nn.Module):
    """Divides by a running mean of its input that it updates first: its output depends on a buffer that it changes."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("scale", torch.ones(width))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        with torch.no_grad():
            self.count += 1
            self.scale.mul_(0.9).add_(x.detach().abs().mean((0, 1)), alpha=0.1)
        return x / self.scale


class NormalizedMLP(nn.Module):
    def __init__(self, width=96, depth=3):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * width, width), Normalizer(width))
            for _ in range(depth)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x.mean(1))


def _lora():
    model, batch, loss = models._own("gpt")
    model.requires_grad_(False)
    for block in model.blocks:
        block.attention.qkv = LoRALinear(block.attention.qkv)
        block.mlp[0] = LoRALinear(block.mlp[0])
    return model, batch, loss


def _frozen():
    model, batch, loss = models._own("gpt")
    model.tokens.requires_grad_(False)
    model.positions.requires_grad_(False)
    model.blocks[0].requires_grad_(False)
    return model, batch, loss


def _autocast_loss(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return models._logits_loss(model, batch)


def _own(name):
    if name == "lora":
        return _lora()
    if name == "frozen":
        return _frozen()
    if name == "autocast":
        model, batch, _ = models._own("gpt")
        return model, batch, _autocast_loss
    if name == "shared_autocast":
        ids = models._tokens(8, 64, 300)
        return SharedLayers(), ((ids,), ids), _autocast_loss
    if name == "shared":
        ids = models._tokens(8, 64, 300)
        return SharedLayers(), ((ids,), ids), models._logits_loss
    if name == "moe_ties":
        ids = models._tokens(8, 64, 300)
        return TiedMoE(), ((ids,), ids), models._logits_loss
    if name == "normalized":
        return NormalizedMLP(), ((torch.randn(16, 64, 96),), torch.randint(0, 10, (16,))), models._image_loss
    if name in ("gpt2_cached", "llama_cached"):  # as transformers has it by default
        model, batch, loss = models._hugging(name.removesuffix("_cached"))
        model.config.use_cache = True
        return model, batch, loss
    if name == "accumulated":
        ids = models._tokens(16, 64, 512)
        return models.GPT(), ((ids,), ids), models._logits_loss
    raise KeyError(name)


OWN = ("lora", "frozen", "autocast", "shared_autocast", "shared", "moe_ties", "normalized", "accumulated", "gpt2_cached", "llama_cached")
SAMPLE = ("cnn", "shared_autocast")
ALL = (*models.OWN, *OWN, *models.HUGGING)


def build(name: str):
    if name not in OWN:
        return models.build(name)
    torch.manual_seed(0)
    model, batch, loss = _own(name)
    model.train()
    return model, batch, loss


def optimizer_of(name: str, model):
    parameters = [p for p in model.parameters() if p.requires_grad]
    if name in ("cnn", "resnet"):
        return torch.optim.SGD(parameters, lr=1e-2, momentum=0.9)
    return torch.optim.AdamW(parameters, lr=1e-3)


def training_step(name: str, model, batch, loss, optimizer, losses: list | None = None):
    """`losses` gets each step's loss, as a number."""
    if name == "accumulated":  # four micro-batches
        (ids,), _ = batch

        def step():
            optimizer.zero_grad()
            for part in ids.chunk(4):
                value = loss(model, ((part,), part)) / 4
                value.backward()
                if losses is not None:
                    losses.append(value.item())
            optimizer.step()

        return step

    def step():
        optimizer.zero_grad()
        value = loss(model, batch)
        value.backward()
        optimizer.step()
        if losses is not None:
            losses.append(value.item())

    return step
