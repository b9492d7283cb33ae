"""--help: three examples that run as written come first."""

import pytest

pytestmark = pytest.mark.fast

COMMANDS = ["", "models", "capture", "inspect", "validate", "memory", "time", "plan", "frontier", "max",
            "verify", "sac", "devices", "completion"]


def help_of(cli, command: str) -> str:
    result = cli(*command.split(), "--help")
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def examples_in(text: str) -> list[str]:
    first, *rest = text.split("\n\n")[0].splitlines()
    assert first == "Examples:"
    return [line.strip() for line in rest]


def test_every_command_is_tested_here(cli):
    assert [command["name"] for command in cli.json("--help")["commands"]] == COMMANDS[1:]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_starts_with_three_examples_that_run(cli, command):
    examples = examples_in(help_of(cli, command))
    assert len(examples) == 3
    for example in examples:
        assert f"build/tidemark {command}".strip() in example
        result = cli.shell(example)
        assert (result.returncode, result.stderr) == (0, ""), example


@pytest.mark.parametrize("command", COMMANDS)
def test_help_reads_as_it_was_accepted(cli, golden, command):
    text = help_of(cli, command)
    assert max(map(len, text.splitlines())) <= 100
    assert text == cli(*command.split(), "-h").stdout
    golden(f"help_{command or 'tidemark'}.txt", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_as_json_names_what_the_text_names(cli, command):
    described = cli.json(*command.split(), "--help")
    text = help_of(cli, command)
    for option in described["options"]:
        assert ", ".join(option["flags"]) in text
        assert option["help"] in text
    for entry in described["arguments"]:
        assert entry["value"] in text
    for entry in described["commands"]:
        assert f"  {entry['name']} " in text
    assert "--json" in [flag for option in described["options"] for flag in option["flags"]]
