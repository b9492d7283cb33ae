"""Captures leave no trace, and fake and real ones agree: on the models that are compared with the allocator.

`./test` tries a few of them, with all that can go differently; the whole:

    TIDEMARK_CAMPAIGN=1 .venv/bin/python -m pytest -s python/tests/real
"""

import os
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
sys.path.insert(0, os.path.dirname(__file__))
import models  # noqa: E402

import tidemark  # noqa: E402

WHOLE = os.environ.get("TIDEMARK_CAMPAIGN") == "1"
NAMES = (*models.OWN, *models.HUGGING) if WHOLE else ("cnn", "moe", "gpt2")


def train(name, mode=None, steps=3):
    """Everything that training leaves behind; with a mode, after a capture."""
    model, batch, loss = models.build(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = models.training_step(model, batch, loss, optimizer)
    if mode is not None:
        tidemark.capture(step, model, optimizer, mode=mode, workspace=False)
    for _ in range(steps):
        step()
    state = {f"model.{k}": v for k, v in model.state_dict().items()}
    state |= {f"grad.{k}": p.grad for k, p in model.named_parameters() if p.grad is not None}
    for i, values in optimizer.state_dict()["state"].items():
        state |= {f"optimizer.{i}.{k}": v for k, v in values.items() if isinstance(v, torch.Tensor)}
    state["rng"] = torch.get_rng_state()
    return state


@pytest.mark.parametrize("name", NAMES)
def test_training_after_a_capture_is_the_same_to_the_bit(name):
    plain = train(name)
    for mode in ("fake", "real"):
        after = train(name, mode)
        assert after.keys() == plain.keys()
        different = [key for key, value in plain.items() if not torch.equal(value, after[key])]
        assert different == [], f"{mode}: {len(different)} of {len(plain)} differ"


@pytest.mark.parametrize("name", NAMES)
def test_fake_and_real_captures_have_the_same_ops_and_peak(name):
    steps = {}
    for mode in ("fake", "real"):
        model, batch, loss = models.build(name)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        step = models.training_step(model, batch, loss, optimizer)
        steps[mode] = tidemark.capture(step, model, optimizer, mode=mode, workspace=False)

    def ops(step):
        """Names, shapes and aliasing; ids are those of the same order."""
        layouts = [(layout.dtype, tuple(layout.shape), tuple(layout.stride)) for layout in step.layouts]
        return [
            (
                op.name,
                [layouts[step.tensors[t].layout] for t in op.inputs],
                [(layouts[step.tensors[t].layout], alias, i) for t, alias, i in op.outputs],
            )
            for op in step.ops
        ]

    assert ops(steps["fake"]) == ops(steps["real"])
    assert tidemark.simulate(steps["fake"]).peak_bytes == tidemark.simulate(steps["real"]).peak_bytes
    assert steps["fake"].fingerprint == steps["real"].fingerprint
