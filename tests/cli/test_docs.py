"""What README.md and docs/cli.md show is what the command says."""

import os
import re

import pytest

pytestmark = pytest.mark.fast

BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def rerun(block: str, cli) -> str:
    """The block with the output that its commands give now."""
    lines = []
    for line in block.splitlines():
        if line.startswith("$ "):
            lines.append(line)
            lines += cli.shell(f"{{ {line[2:]}\n}} 2>&1").stdout.splitlines()
    return "".join(line + "\n" for line in lines)


@pytest.mark.parametrize("page, blocks", [("docs/cli.md", 5), ("docs/explain.md", 2), ("README.md", 1)])
def test_the_output_in_the_documentation_is_real(cli, root, page, blocks):
    path = root / page
    text = path.read_text()
    assert len(BLOCK.findall(text)) >= blocks
    now = BLOCK.sub(lambda match: f"```console\n{rerun(match.group(1), cli)}```", text)
    if os.environ.get("TIDEMARK_ACCEPT") == "1":
        path.write_text(now)
    assert path.read_text() == now
    # Only the page that explains errors shows any.
    assert page == "docs/cli.md" or "tidemark: error" not in now


def test_every_command_is_documented(cli, root):
    text = (root / "docs/cli.md").read_text()
    for command in cli.json("--help")["commands"]:
        assert f"\n## tidemark {command['name']}" in text
        for option in command["options"]:
            assert option["flags"][-1] in text
