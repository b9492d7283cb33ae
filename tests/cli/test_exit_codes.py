"""Exit codes, which stream gets what, and what a wrong command line is told."""

import json
import re

import pytest

pytestmark = pytest.mark.fast

USAGE_ERRORS = [
    [],
    ["inspcet", "x"],
    ["nothing-like-it"],
    ["--verison"],
    ["-x"],
    ["inspect"],
    ["inspect", "--jsn"],
    ["inspect", "--larg", "3", "x"],
    ["inspect", "one", "two"],
    ["inspect", "--", "one", "--json"],
    ["inspect", "x", "--largest"],
    ["inspect", "x", "--largest", "many"],
    ["inspect", "x", "--largest", "-1"],
    ["inspect", "x", "--ops", "99999999999999999999"],
    ["inspect", "x", "--json=maybe"],
    ["validate"],
    ["completion"],
    ["completion", "tcsh"],
    ["inspcet", "--help"],
]


def test_a_result_is_0_on_stdout_and_nothing_on_stderr(cli, example):
    for args in (["inspect", example], ["validate", example], ["completion", "bash"], ["--help"], ["--version"]):
        result = cli(*args)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout


def test_an_error_is_1_on_stderr_and_nothing_on_stdout(cli):
    result = cli("inspect", "no/such/file")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("tidemark: error: [no/such/file] ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("args", USAGE_ERRORS, ids=lambda args: " ".join(args) or "no command")
def test_a_wrong_command_line_is_2_on_stderr_and_nothing_on_stdout(cli, args):
    result = cli(*args)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1].startswith("tidemark: error: [tidemark")


def test_the_words_about_wrong_command_lines(cli, golden):
    """One sentence each, with the nearest thing that exists."""
    lines = []
    for args in USAGE_ERRORS[1:]:
        message = cli(*args).stderr
        assert message.count("\n") == 1
        lines.append(f"$ {' '.join(['tidemark', *args])}\n{message}")
    golden("usage_errors.txt", "".join(lines))


def test_no_command_shows_the_help_on_stderr(cli):
    result = cli()
    assert result.stderr.startswith(cli("--help").stdout)


@pytest.mark.parametrize("args, code, kind", [
    (["inspect", "no/such/file", "--json"], 1, "input"),
    (["--json", "inspect", "no/such/file"], 1, "input"),
    (["--json"], 2, "usage"),
    (["--json", "inspcet"], 2, "usage"),
    (["inspect", "--json"], 2, "usage"),
    (["inspect", "x", "--largest", "many", "--json"], 2, "usage"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_with_json_an_error_is_also_an_object_on_stdout(cli, args, code, kind):
    result = cli(*args)
    assert result.returncode == code
    error = json.loads(result.stdout)["error"]
    assert list(error) == ["kind", "place", "problem", "expected", "got", "remedy"]
    assert error["kind"] == kind
    assert f"[{error['place']}] {error['problem']}" in result.stderr
    assert f"try: {error['remedy']}" in result.stderr


def test_json_is_not_an_option_after_two_dashes(cli):
    assert cli("validate", "--", "--json").stdout == "--json: not a valid step\n"


def test_the_documented_exit_codes_are_those_of_the_code(root):
    source = (root / "tools/tidemark/exit_code.h").read_text()
    coded = {int(code): name.lower() for name, code in re.findall(r"\bk(\w+) = (\d+),", source)}
    document = (root / "docs/cli.md").read_text()
    documented = {int(code): name for code, name in re.findall(r"^\| (\d) \| (\w+) \|", document, re.MULTILINE)}
    assert coded == documented == {0: "ok", 1: "error", 2: "usage", 3: "infeasible", 4: "limit"}


def test_version_is_that_of_the_header(cli, root):
    version = re.search(r'TIDEMARK_VERSION "([0-9.]+)"', (root / "tidemark/version.h").read_text()).group(1)
    assert cli("--version").stdout == f"tidemark {version}\n"
    assert cli.json("--version") == {"name": "tidemark", "version": version, "step_format": "1.0"}
