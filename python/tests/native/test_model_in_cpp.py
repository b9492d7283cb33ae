"""examples/model_in_cpp.cpp, a model written with the library's own layers, against the same model in PyTorch."""

import os
import subprocess
from pathlib import Path

import pytest

import tidemark

torch = pytest.importorskip("torch")
from .compare import first_difference  # noqa: E402


def test_the_example_is_the_captured_step(tmp_path):
    example = Path(os.environ.get("TIDEMARK_EXAMPLES", Path(__file__).parents[3] / "build/examples")) / "model_in_cpp"
    written = tmp_path / "sequence.step.jsonl"
    subprocess.run([example, written], check=True)
    native = tidemark.Step.load(str(written))
    model = torch.nn.Sequential(
        torch.nn.Conv1d(4, 8, 3, padding=1),
        torch.nn.GELU(),
        torch.nn.Conv1d(8, 8, 3, stride=2, groups=2),
        torch.nn.GELU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 7, 5),
    )
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    samples, classes = torch.randn(2, 4, 16), torch.randint(5, (2,))

    def step_fn():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(samples), classes)
        loss.backward()
        optimizer.step()

    for mode in ("fake", "real"):
        captured = tidemark.capture(step_fn, model, optimizer, mode=mode, workspace=False)
        assert not (difference := first_difference(native, captured)), difference
        assert native.fingerprint == captured.fingerprint
        # Conv1d: 2 x batch x weights x positions, 2 * 2 * (8 * 4 * 3) * 16 and 2 * 2 * (8 * 4 * 3) * 7.
        for step in (native, captured):
            assert [op.flops for op in step.ops if op.name == "aten.convolution.default"] == [6144, 2688]
