"""A small model with dropout and tied weights, its step and plans, for tests that run in this process."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import tidemark

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cases  # noqa: E402


@pytest.fixture(scope="package", autouse=True)
def one_thread():
    """Tensors are tiny, and threads that wait for each other are slow on a machine that has other work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small_gpt(**sizes):
    torch.manual_seed(0)
    model = cases.models.GPT(**{"vocabulary": 64, "width": 32, "depth": 3, "heads": 2, "length": 32, **sizes})
    return model.train()


def step_of(model, optimizer, ids):
    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        loss.backward()
        optimizer.step()

    return step


def trained(model, steps=2, prepare=None, ids=None):
    """Parameters and gradients after some steps."""
    if prepare is not None:
        prepare(model)
    ids = torch.arange(8 * 32).view(8, 32) % 64 if ids is None else ids
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    torch.manual_seed(1)
    run = step_of(model, optimizer, ids)
    for _ in range(steps):
        run()
    return [p.detach().clone() for p in model.parameters()] + [p.grad.clone() for p in model.parameters() if p.grad is not None]


def equal(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))


def total(model) -> float:
    return sum(float(p.detach().double().abs().sum()) for p in model.parameters())


@pytest.fixture(scope="session")
def gpt():
    """The small model, captured, with a plan whose units save some ops, and one whose units save none."""
    model = small_gpt()
    ids = torch.arange(8 * 32).view(8, 32) % 64
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = tidemark.capture(step_of(model, optimizer, ids), model, optimizer, workspace=False)
    full = tidemark.Plan.policy(step, "full")
    selective = tidemark.Plan.policy(step, "selective")
    return SimpleNamespace(step=step, full=full, selective=selective, ids=ids)


def small_training(make):
    """A model, its optimizer, and a step of it on rows of 16."""
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(32, 16)

    def step():
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()

    return model, optimizer, step


def same_weights(a, b):
    """Weights and gradients, bit for bit."""

    def state(model):
        return [p.detach() for p in model.parameters()] + [p.grad for p in model.parameters()]

    return all(torch.equal(x, y) for x, y in zip(state(a), state(b)))


@pytest.fixture(scope="session")
def helpers():
    return SimpleNamespace(
        small_gpt=small_gpt, step_of=step_of, trained=trained, equal=equal, total=total, small_training=small_training, same_weights=same_weights
    )
