"""Terminals and pipes: colours, characters that must not reach a terminal, output that nobody takes."""

import os
import re
import signal
import unicodedata

import pytest

pytestmark = pytest.mark.fast

ESCAPE = "\x1b"
BOLD = "\x1b[1m"
RED = "\x1b[1;31m"


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_terminal_gets_colours_and_the_same_words(cli, example):
    shown = cli.on_terminal("inspect", example)
    assert shown.startswith(BOLD + example)
    assert without_colours(shown) == cli("inspect", example).stdout


def test_errors_are_red_on_a_terminal(cli):
    shown = cli.on_terminal("inspect", "no/such/file", stream="stderr")
    assert shown.startswith(f"tidemark: {RED}error:")
    assert without_colours(shown) == cli("inspect", "no/such/file").stderr


def test_only_the_stream_that_is_a_terminal_gets_colours(cli, example, tmp_path):
    with open(tmp_path / "out", "w+") as out:
        assert ESCAPE not in cli.on_terminal("inspect", example, stream="stderr")
        cli("inspect", example, stdout=out)
        out.seek(0)
        assert ESCAPE not in out.read()


@pytest.mark.parametrize("env, coloured", [
    ({"NO_COLOR": "1"}, False),
    ({"NO_COLOR": "0"}, False),
    ({"NO_COLOR": ""}, True),
    ({"TERM": "dumb"}, False),
    ({"TERM": "screen"}, True),
], ids=str)
def test_no_color_is_honoured(cli, example, env, coloured):
    assert (ESCAPE in cli.on_terminal("inspect", example, env=env)) == coloured
    assert (ESCAPE in cli.on_terminal("inspect", "nothing", stream="stderr", env=env)) == coloured


def test_json_and_dump_are_never_coloured(cli, example):
    assert cli.on_terminal("inspect", example, "--json") == cli("inspect", example, "--json").stdout
    assert cli.on_terminal("inspect", example, "--dump") == cli("inspect", example, "--dump").stdout


# Clears the screen, names the window, starts a line of its own, uses a C1 control, turns text around, beeps, deletes.
HOSTILE = "\x1b[2J\x1b]0;owned\x07\nvalid step\r\t\x9b31m\u202egnp\u2066\u2028\x7f"
HARMLESS = r"\u001b[2J\u001b]0;owned\u0007\nvalid step\u000d\u0009\u009b31m\u202egnp\u2066\u2028\u007f"


@pytest.fixture
def hostile_names(step, tmp_path):
    """The example with hostile text wherever a file may have text of its own."""
    step.sections["meta"].append(["key" + HOSTILE, "value" + HOSTILE])
    for name in ("Linear", "weight", "cpu", "AddmmBackward0", "aten.t.default", "aten.mm.default", "dim"):
        step.rename(name, name + HOSTILE)
    step.rename("0", HOSTILE)
    step.sections["notes"].append([step.string("kind" + HOSTILE), step.string("note" + HOSTILE), 0])
    path = tmp_path / "hostile.step.jsonl"
    path.write_text(step.text())
    return str(path)


def is_harmless(text: str) -> bool:
    return all(c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Zl", "Zp") for c in text)


@pytest.mark.parametrize("options", [[], ["--dump"], ["--json"], ["--dump", "--json"]], ids=str)
def test_names_have_no_power_over_a_terminal(cli, hostile_names, options):
    result = cli("inspect", hostile_names, "--largest", "99", "--ops", "99", *options)
    assert (result.returncode, result.stderr) == (0, "")
    assert is_harmless(result.stdout)
    if "--json" not in options:
        assert "aten.mm.default" + HARMLESS[:50] in result.stdout
        assert "--dump" not in options or "aten.mm.default" + HARMLESS in result.stdout
        assert not re.search(r"^ *valid step", result.stdout, re.MULTILINE)


def test_json_gives_names_back_as_they_are(cli, hostile_names):
    summary = cli.json("inspect", hostile_names)
    assert summary["meta"]["key" + HOSTILE] == "value" + HOSTILE
    assert summary["op_counts"][0]["name"] == "aten.t.default" + HOSTILE


def test_errors_quote_names_without_harm(cli, step, tmp_path):
    step.sections["events"][0][0] = HOSTILE
    path = tmp_path / "hostile.step.jsonl"
    path.write_text(step.text())
    result = cli("inspect", path)
    assert result.returncode == 1
    assert is_harmless(result.stderr)
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("args", [["inspect"], ["inspect", "--json"], ["inspect", "--dump"], ["validate"]], ids=str)
def test_a_full_disk_is_an_error(cli, example, args):
    with open("/dev/full", "w") as full:
        result = cli(*args, example, stdout=full)
    assert result.returncode == 1
    assert result.stderr == ("tidemark: error: [stdout] cannot write the result: No space left on device; "
                             "try: check where the output goes and whether there is room\n")


def test_a_closed_stdout_is_an_error(cli, example):
    result = cli.shell(f"build/tidemark inspect {example} >&-")
    assert result.returncode == 1
    assert "cannot write the result: Bad file descriptor" in result.stderr


def test_a_closed_stderr_changes_no_exit_code(cli):
    assert cli.shell("build/tidemark inspect nothing 2>&-").returncode == 1
    assert cli.shell("build/tidemark nothing 2>&-").returncode == 2


@pytest.fixture
def closed_pipe():
    read_end, write_end = os.pipe()
    os.close(read_end)
    yield write_end
    os.close(write_end)


def test_a_reader_that_went_away_ends_the_command_quietly(cli, example, closed_pipe):
    result = cli("inspect", example, "--dump", stdout=closed_pipe)
    assert (result.returncode, result.stderr) == (-signal.SIGPIPE, "")


def test_a_reader_that_went_away_is_an_error_where_the_signal_is_ignored(cli, example, closed_pipe):
    result = cli("inspect", example, stdout=closed_pipe, restore_signals=False)  # Python itself ignores SIGPIPE
    assert result.returncode == 1
    assert result.stderr.startswith("tidemark: error: [stdout] cannot write the result: Broken pipe")
    assert result.stderr.count("\n") == 1


def test_head_takes_the_first_line(cli, example):
    result = cli.shell(f"build/tidemark inspect {example} | head -1")
    assert (result.stdout, result.stderr) == (example + "\n", "")
