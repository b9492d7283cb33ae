"""The package as a user gets it: `pip install .` into a clean environment, built in isolation.

Takes a minute and needs a package index, so it is not among the fast tests.
"""

import os
import subprocess
import venv
from pathlib import Path


def run(*command, **options) -> str:
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def index_options() -> list[str]:
    """The package index that ./test was told to use; pip's own configuration stays in force."""
    options = {
        "--index-url": "TIDEMARK_PIP_INDEX_URL",
        "--extra-index-url": "TIDEMARK_PIP_EXTRA_INDEX_URL",
        "--find-links": "TIDEMARK_PIP_FIND_LINKS",
    }
    return [f"{option}={os.environ[name]}" for option, name in options.items() if os.environ.get(name)]


def test_pip_installs_the_package_into_a_clean_environment(root, example_path, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    # A build folder of its own leaves that of the developer alone.
    build = f"--config-settings=build-dir={tmp_path / 'build'}"
    run(python, "-m", "pip", "install", *index_options(), build, root)

    code = "import sys, tidemark; print(tidemark.__file__); print(len(tidemark.Step.load(sys.argv[1]).ops))"
    file, ops = run(python, "-c", code, example_path, cwd=tmp_path).split()
    assert Path(file).is_relative_to(tmp_path / "venv")
    assert ops == "27"
    installed = {path.name for path in Path(file).parent.iterdir()}
    assert {"__init__.py", "_core.pyi", "py.typed"} <= installed
    assert not {name for name in installed if name.endswith((".cpp", ".h"))}
    shown = run(python, "-m", "pip", "show", "tidemark")
    assert "Requires:" in map(str.strip, shown.splitlines()), "the package itself needs nothing, not even torch"
