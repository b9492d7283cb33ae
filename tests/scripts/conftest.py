"""A copy of the set-up scripts in a folder of its own, with programs that only note how they were called."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What the set-up may call on a machine; anything else, above all the real apt-get and sudo, is out of its reach.
HARMLESS = """awk basename bash cat cmake comm cp dirname env find flock g++ grep head id mkdir mv ninja nproc readlink rm
    sed sha256sum sleep sort tail touch tr xargs""".split()

FAKES = {
    # Like the real one, fails when it does not know one of the packages. Its arguments: -W -f FORMAT PACKAGE...
    "dpkg-query": """shift 3; status=0
        for p in "$@"; do
          if [[ " $FAKE_INSTALLED " == *" $p "* ]]; then echo "installed $p"
          elif [[ $p == removed-earlier ]]; then echo "config-files $p"
          else echo "no packages found matching $p" >&2; status=1; fi
        done; exit $status""",
    "apt-get": 'echo "apt-get $*" >>"$FAKE_CALLS"; [[ $* != *" install "* ]] || exit ${FAKE_APT_STATUS:-0}',
    "sudo": 'echo "sudo $*" >>"$FAKE_CALLS"; exec "$@"',
    "id": 'if [[ $1 == -u ]]; then echo "${FAKE_UID:-0}"; else echo tester; fi',
}


class Project:
    """The scripts in `root`; `run` starts one, `shell` runs bash with their functions loaded."""

    def __init__(self, root: Path):
        self.root = root
        self.tools = root.parent / "tools"
        self.calls_file = root.parent / "calls"
        self.env = {
            "HOME": str(root.parent),
            "PATH": "/usr/bin:/bin",
            "FAKE_CALLS": str(self.calls_file),
            "FAKE_INSTALLED": " ".join(self.packages("build") + self.packages("test")),
            "TIDEMARK_SETUP_PATH": str(self.tools),
        }
        self.tools.mkdir()
        for name, body in FAKES.items():
            self.add_tool(name, body)
        for name in HARMLESS:
            if not (self.tools / name).exists():
                (self.tools / name).symlink_to(Path("/usr/bin") / name)

    def add_tool(self, name: str, body: str) -> None:
        (self.tools / name).write_text(f"#!/bin/bash\n{body}\n")
        (self.tools / name).chmod(0o755)

    def remove_tool(self, name: str) -> None:
        (self.tools / name).unlink()

    def packages(self, kind: str) -> list[str]:
        rows = (line.split() for line in (self.root / "scripts/debian-packages.txt").read_text().splitlines())
        return [row[1] for row in rows if row and row[0] == kind]

    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess:
        return subprocess.run(command, cwd=self.root, env=self.env | env, text=True, capture_output=True, timeout=120)

    def shell(self, body: str, **env: str) -> subprocess.CompletedProcess:
        """PATH is cut down to the fakes and the harmless programs: there is no real apt-get or sudo behind them."""
        libraries = "".join(f"source scripts/lib/{name}.sh; " for name in ("common", "packages", "python", "build"))
        script = f"set -euo pipefail; {libraries} PATH=$TIDEMARK_SETUP_PATH; mkdir -p $logs; {body}"
        return self.run("/bin/bash", "-c", script, **env)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    for name in ("quickstart", "test", "scripts"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, root / name)
    return Project(root)
