"""Completion scripts, tried in the shells themselves."""

import os
import pty
import select
import shutil
import subprocess
import time

import pytest

pytestmark = pytest.mark.fast

INSPECT = {"--help", "--json", "--dump", "--largest", "--ops"} | {
    f"--{name}" for name in "batch seq image dtype precision attention micro-batches clip-norm optimizer form target".split()
}
COMMANDS = {"models", "capture", "inspect", "validate", "memory", "time", "plan", "frontier", "max",
            "verify", "sac", "devices", "completion"}


def need(shell: str) -> str:
    path = shutil.which(shell, path="/usr/bin:/bin")
    if path is None:
        pytest.skip(f"{shell} is not installed")
    return path


@pytest.fixture
def folder(tmp_path):
    """A folder with a few files, and the scripts beside it."""
    folder = tmp_path / "work"
    (folder / "steps").mkdir(parents=True)
    for name in ("mine.step.jsonl", "two words.step.jsonl", "steps/deep.step.jsonl"):
        (folder / name).touch()
    return folder


@pytest.fixture
def script(cli, tmp_path):
    def write(shell: str):
        path = tmp_path / shell / "_tidemark"
        path.parent.mkdir()
        path.write_text(cli("completion", shell).stdout)
        return path

    return write


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_reads_as_it_was_accepted(cli, golden, shell):
    text = cli("completion", shell).stdout
    golden(f"completion.{shell}", text)
    assert cli.json("completion", shell) == {"shell": shell, "script": text}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_flag_is_in_the_script(cli, shell):
    text = cli("completion", shell).stdout
    for command in cli.json("--help")["commands"]:
        assert command["name"] in text
        for option in command["options"]:
            for flag in option["flags"]:
                assert (f"-l {flag[2:]} " if shell == "fish" and flag.startswith("--") else flag.lstrip("-")) in text


def bash_candidates(cli, script, folder, *words: str) -> set[str]:
    """What bash would offer for the last of `words`."""
    program = f"""
        set -eu
        source "$1"; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _tidemark
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    result = subprocess.run([need("bash"), "--norc", "-c", program, "bash", script, "tidemark", *words],
                            cwd=folder, env=cli.env, capture_output=True, text=True, timeout=30)
    assert (result.returncode, result.stderr) == (0, "")
    return set(result.stdout.split("\n")) - {""}


def test_bash_offers_what_the_command_takes(cli, script, folder):
    path = script("bash")

    def offered(*words):
        return bash_candidates(cli, path, folder, *words)

    assert offered("") == COMMANDS
    assert offered("--json", "") == COMMANDS
    assert offered("ins") == {"inspect"}
    assert offered("--v") == {"--version"}
    assert offered("completion", "") == {"bash", "zsh", "fish"}
    assert offered("inspect", "--") == INSPECT
    assert offered("inspect", "--largest", "") == set()
    assert offered("inspect", "") == {"mine.step.jsonl", "two words.step.jsonl", "steps"}
    assert offered("validate", "mine.step.jsonl", "steps/") == {"steps/deep.step.jsonl"}
    assert offered("inspect", "--ops", "3", "mi") == {"mine.step.jsonl"}


class Terminal:
    """A person at an interactive shell."""

    def __init__(self, command, env, folder):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(command[0], command, env)

    def type(self, keys: str, until: str) -> str:
        """Types the keys and returns what the terminal shows until `until` appears."""
        os.write(self.descriptor, keys.encode())
        shown, deadline = "", time.monotonic() + 20
        while until not in shown:
            ready, _, _ = select.select([self.descriptor], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{until!r} did not appear after {keys!r}: {shown!r}"
            shown += os.read(self.descriptor, 65536).decode(errors="replace")
        return shown

    def close(self):
        os.write(self.descriptor, b"\x15exit\n")
        os.waitpid(self.pid, 0)
        os.close(self.descriptor)


# In place of the command: a function that shows its arguments. Quotes keep the echo of what is typed from looking
# like the prompt and the answer that the test waits for.
ANSWER = "tidemark() { printf 'ra''n:'; printf '<%s>' \"$@\"; printf '\\n'; }; PS1='rea''dy$ '\n"


def start_bash(cli, path, folder):
    terminal = Terminal([need("bash"), "--norc", "--noprofile", "-i"], cli.env, folder)
    terminal.type(f"bind 'set bell-style none'; source {path}; {ANSWER}", "ready$ ")
    return terminal


def start_zsh(cli, path, folder, load):
    # Without the user's own settings; -D and -u keep compinit from writing and asking.
    terminal = Terminal([need("zsh"), "-f", "-i"], cli.env, folder)
    setup = {
        "sourced": f"autoload -U compinit; compinit -D -u; source {path}",
        "from fpath": f"fpath=({path.parent} $fpath); autoload -U compinit; compinit -D -u",
    }[load]
    terminal.type(f"unsetopt beep; {setup}; {ANSWER}", "ready$ ")
    return terminal


TYPED = [
    ("tidemark insp\t\n", "<inspect>"),
    ("tidemark completion f\t\n", "<completion><fish>"),
    ("tidemark --ver\t\n", "<--version>"),
    ("tidemark inspect --lar\t4 mi\t\n", "<inspect><--largest><4><mine.step.jsonl>"),
    ("tidemark validate two\t mi\t\n", "<validate><two words.step.jsonl><mine.step.jsonl>"),
    ("tidemark validate ste\tde\t\n", "<validate><steps/deep.step.jsonl>"),
]


def check_typed(terminal):
    try:
        for keys, arguments in TYPED:
            terminal.type(keys, f"ran:{arguments}\r\n")
    finally:
        terminal.close()


def test_bash_completes_what_a_person_types(cli, script, folder):
    check_typed(start_bash(cli, script("bash"), folder))


@pytest.mark.parametrize("load", ["sourced", "from fpath"])
def test_zsh_completes_what_a_person_types(cli, script, folder, load):
    check_typed(start_zsh(cli, script("zsh"), folder, load))


def fish_candidates(cli, script, folder, line: str) -> set[str]:
    result = subprocess.run([need("fish"), "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line],
                            cwd=folder, env=cli.env, capture_output=True, text=True, timeout=30)
    assert (result.returncode, result.stderr) == (0, "")
    return {row.split("\t")[0] for row in result.stdout.splitlines()}


def test_fish_offers_what_the_command_takes(cli, script, folder):
    path = script("fish")

    def offered(line):
        return fish_candidates(cli, path, folder, line)

    assert offered("tidemark ") == COMMANDS
    assert offered("tidemark ins") == {"inspect"}
    assert offered("tidemark --json ") == COMMANDS
    assert offered("tidemark completion ") == {"bash", "zsh", "fish"}
    assert offered("tidemark inspect --") == INSPECT
    assert offered("tidemark inspect --largest ") == set()
    assert offered("tidemark inspect mi") == {"mine.step.jsonl"}
    assert offered("tidemark validate mine.step.jsonl steps/") == {"steps/deep.step.jsonl"}
