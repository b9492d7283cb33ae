"""Plans of captured steps of a few small blocks are those of brute force: `planner_campaign` replays every plan of them.

A few models in every run; with TIDEMARK_CAMPAIGN=1 more of them, and more plans of each.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
sys.path.insert(0, os.path.dirname(__file__))
import models  # noqa: E402

import tidemark  # noqa: E402

WHOLE = os.environ.get("TIDEMARK_CAMPAIGN") == "1"
NAMES = (*models.OWN, *models.HUGGING) if WHOLE else ("mlp", "cnn", "moe", "encdec")
MOST_PLANS = 20_000 if WHOLE else 300
CAMPAIGN = Path(__file__).parents[3] / "build" / "tests" / "planner" / "planner_campaign"


@pytest.mark.parametrize("name", NAMES)
def test_plans_are_those_of_brute_force(name, tmp_path):
    model, batch, loss = models.build(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    step = tidemark.capture(models.training_step(model, batch, loss, optimizer), model, optimizer, mode="fake", workspace=False)
    path = tmp_path / f"{name}.step.jsonl"
    step.save(path)
    result = subprocess.run(
        [CAMPAIGN, "--steps", "0", "--laws", "0", "--real", str(MOST_PLANS), path], capture_output=True, text=True, timeout=600
    )
    print(result.stdout.replace(str(path), name))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "differing optima 0" in result.stdout
