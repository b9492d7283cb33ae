"""The command under test, its golden files, and step files to feed it.

The binary is build/tidemark, or what TIDEMARK_CLI names. With TIDEMARK_ACCEPT=1 golden files are rewritten.
"""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/cli"
EXAMPLE = "examples/steps/two_layer_mlp.step.jsonl"
ACCEPT = os.environ.get("TIDEMARK_ACCEPT") == "1"


class Cli:
    """Runs the command in the project's root, as a person would, in an environment that is the same everywhere."""

    def __init__(self, binary: Path, home: Path):
        self.binary = binary
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8", "TERM": "xterm"}

    def __call__(self, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=None, **options):
        return subprocess.run(
            [str(self.binary), *map(os.fsencode, args)],
            cwd=ROOT, env=self.env | (env or {}), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            encoding="utf-8", timeout=60, **options,
        )

    def json(self, *args, code=0):
        result = self(*args, "--json")
        assert result.returncode == code, result.stderr
        return json.loads(result.stdout)

    def shell(self, command: str) -> subprocess.CompletedProcess:
        """Runs a command line written for the project's root, where the command is build/tidemark."""
        return subprocess.run(
            ["bash", "-c", command.replace("build/tidemark", f"'{self.binary}'")],
            cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=60,
        )

    def on_terminal(self, *args, stream="stdout", env=None) -> str:
        """What the command writes to `stream` when that is a terminal."""
        master, slave = pty.openpty()
        try:
            self(*args, env=env, **{stream: slave})
        finally:
            os.close(slave)
        written = b""
        try:
            while chunk := os.read(master, 65536):
                written += chunk
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(master)
        return written.decode().replace("\r\n", "\n")


class StepText:
    """A step file as its sections, to change in a test. Counts are brought up to date when it is written."""

    def __init__(self, text: str):
        self.first_line, *lines = text.splitlines()
        self.sections: dict[str, list] = {}
        for line in map(json.loads, lines):
            if isinstance(line, dict):
                rows = self.sections.setdefault(line["section"], [])
            else:
                rows.append(line)

    def string(self, text: str) -> int:
        """The id of a string, added if it is new."""
        strings = self.sections["strings"]
        if text not in strings:
            strings.append(text)
        return strings.index(text)

    def rename(self, old: str, new: str) -> None:
        strings = self.sections["strings"]
        strings[strings.index(old)] = new

    def text(self) -> str:
        lines = [self.first_line]
        for name, rows in self.sections.items():
            lines.append(json.dumps({"section": name, "count": len(rows)}, separators=(",", ":")))
            lines += [json.dumps(row, separators=(",", ":")) for row in rows]
        return "".join(line + "\n" for line in lines)


@pytest.fixture(scope="session")
def cli(tmp_path_factory) -> Cli:
    binary = Path(os.environ.get("TIDEMARK_CLI", ROOT / "build/tidemark")).absolute()
    if not binary.is_file():
        pytest.fail(f"{binary} is missing: run ./quickstart, or set TIDEMARK_CLI")
    return Cli(binary, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def example() -> str:
    """The example step, named as from the project's root."""
    return EXAMPLE


@pytest.fixture
def step() -> StepText:
    """The example step, to be changed."""
    return StepText((ROOT / EXAMPLE).read_text())


@pytest.fixture(scope="session")
def golden():
    """Compares text with a golden file byte by byte, or rewrites the file when told to accept."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if ACCEPT:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        assert path.is_file(), f"{path} is missing: look at the output, then run with TIDEMARK_ACCEPT=1"
        assert text == path.read_bytes().decode(), f"differs from {path}; accept a change with TIDEMARK_ACCEPT=1"

    return compare
