"""What times assume is said by every command that shows times, in the same words."""

import csv
import io

import pytest

pytestmark = pytest.mark.fast

# A V100 has no units for bfloat16.
MODEL = ["toy-gpt", "--dtype", "bfloat16"]
NOTE = "products in bfloat16 are priced at the rate of float32: the device has no figure for them"
COMMANDS = {
    "time": ["time", *MODEL],
    "plan": ["plan", *MODEL, "--budget", "90%"],
    "frontier": ["frontier", *MODEL, "--budgets", "2"],
    "max": ["max", *MODEL, "--of", "budget"],
    "sac": ["sac", *MODEL, "--module", "layers.0"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_its_times_assume(cli, name):
    command = [*COMMANDS[name], "--device", "v100"]
    data = cli.json(*command)
    assert (data["plan"] if name == "max" else data)["notes"] == [NOTE]
    text = " ".join(cli(*command).stdout.split())
    assert text.count(f"note: {NOTE}") == 1
    assert "note:" not in cli(*COMMANDS[name], "--device", "a100-80-sxm").stdout


def test_a_table_for_other_programs_has_notes_as_rows(cli):
    rows = list(csv.DictReader(io.StringIO(cli(*COMMANDS["frontier"], "--device", "v100", "--csv").stdout)))
    assert [row["name"] for row in rows if row["kind"] == "note"] == [NOTE]
