"""What the tests of the Python package share. They import the installed package, never the source tree."""

import os
from pathlib import Path

import pytest
from hypothesis import configuration

import tidemark

ROOT = Path(__file__).resolve().parents[2]
configuration.set_hypothesis_home_dir(ROOT / "build/.hypothesis")


@pytest.fixture
def root() -> Path:
    """The project's root."""
    return ROOT


@pytest.fixture
def example_path() -> Path:
    """The step file that ships with the project."""
    return ROOT / "examples/steps/two_layer_mlp.step.jsonl"


@pytest.fixture
def example(example_path: Path) -> tidemark.Step:
    return tidemark.Step.load(example_path)


@pytest.fixture
def golden():
    """golden(name, text): fails unless text is that of golden/<name>; with TIDEMARK_ACCEPT=1 it becomes that."""

    def check(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if os.environ.get("TIDEMARK_ACCEPT") == "1":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        assert text == expected, f"{name} differs; look at the difference, then accept it with TIDEMARK_ACCEPT=1"

    return check
