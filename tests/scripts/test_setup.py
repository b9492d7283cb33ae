"""./quickstart and ./test: options, the lock, .venv, torch, the size of downloads, and build folders left behind."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

fast = pytest.mark.fast

SYSTEM_PYTHON = "/usr/bin/python3"


# --- options ---


@fast
@pytest.mark.parametrize("command", ["./quickstart", "./test"])
def test_an_unknown_option_is_a_usage_error_in_one_sentence(project, command):
    done = project.run(command, "--fast")
    assert done.returncode == 2
    assert done.stderr == f"error: unknown option '--fast'; see {command} --help\n"
    assert done.stdout == ""
    assert not (project.root / "build").exists()


@fast
@pytest.mark.parametrize(
    "arguments", [["--quick", "--accept"], ["--index-url"], ["--find-links="], ["--quick", "--", "x"], ["word"]]
)
def test_wrong_use_is_refused(project, arguments):
    done = project.run("./test", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


@fast
@pytest.mark.parametrize("command", ["./quickstart", "./test"])
def test_help_explains_options_and_environment(project, command):
    done = project.run(command, "--help")
    assert done.returncode == 0
    for word in ("--index-url", "--extra-index-url", "--find-links", "TIDEMARK_PYTHON", "TIDEMARK_PIP_INDEX_URL", "NO_COLOR"):
        assert word in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 120


@fast
def test_index_options_reach_pip(project, tmp_path):
    (tmp_path / "wheels").mkdir()
    body = """caller_folder=$PWD/..
        parse_index_option --index-url=https://a.example/simple; echo $taken
        parse_index_option --extra-index-url https://b.example/simple; echo $taken
        parse_index_option --find-links wheels; echo $taken
        pip_sources"""
    lines = project.shell(body).stdout.splitlines()
    assert lines[:3] == ["1", "2", "2"]
    assert lines[3:7] == ["--index-url", "https://a.example/simple", "--extra-index-url", "https://b.example/simple"]
    assert lines[7] == "--find-links" and Path(lines[8]).samefile(tmp_path / "wheels")


# --- running ---


@fast
def test_a_second_run_waits_for_the_first_and_says_so(project):
    (project.root / "build").mkdir()
    with open(project.root / "build/.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            ["bash", "-c", "source scripts/lib/common.sh; start_run; echo started"],
            cwd=project.root, env=project.env, text=True, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert waiting.stdout.readline() == "waiting for another run in this folder to end\n"
    assert waiting.communicate(timeout=10)[0] == "started\n"


@fast
def test_a_run_started_by_a_run_does_not_wait_for_it(project):
    body = "start_run; bash -c 'source scripts/lib/common.sh; start_run; echo inner started'"
    assert project.shell(body).stdout == "inner started\n"


@fast
def test_an_interrupt_ends_the_run_and_what_it_started(project):
    body = "source scripts/lib/common.sh; start_run; begin Phase; run_logged sleep sleep 60; echo not reached"
    running = subprocess.Popen(
        ["bash", "-c", body], cwd=project.root, env=project.env, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    log = project.root / "build/logs/sleep.log"
    while not log.exists():
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=10)
    assert running.returncode == -signal.SIGINT
    assert "not reached" not in out
    assert err == "interrupted; the next run picks up from here\n"


@fast
def test_the_machines_own_tools_come_first(project):
    body = "source scripts/lib/common.sh; echo $PATH; echo ${PYTHONPATH-none}"
    env = {"PATH": "/somewhere/newer:/usr/bin:/bin", "PYTHONPATH": "/somewhere", "TIDEMARK_SETUP_PATH": ""}
    assert project.run("bash", "-c", body, **env).stdout == "/usr/bin:/bin:/usr/sbin:/sbin\nnone\n"


@fast
def test_the_log_of_a_failure_is_shown_and_named(project):
    done = project.shell("begin Phase; run_logged thing bash -c 'echo details; exit 3' || fail 'it broke; try again'")
    assert done.returncode == 1
    assert "build/logs/thing.log" in done.stderr and "details" in done.stderr
    assert done.stderr.endswith("---\nerror: it broke; try again\n")


# --- .venv ---


def make_venv(project, **env) -> str:
    done = project.shell("ensure_venv", **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_venv_is_made_once_and_a_half_made_one_is_remade(project):
    """One scenario, since making a .venv takes seconds."""
    venv = project.root / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").write_text("half")
    assert "was incomplete" in make_venv(project)

    (venv / "kept").touch()
    assert ".venv is ready" in make_venv(project)

    # pip was cut short while it downloaded: nothing in .venv changed, so it stays.
    log = project.root / "build/logs/pip-test.log"
    log.write_text("Downloading torch\n")
    (venv / ".tidemark/installing").write_text("build/logs/pip-test.log\n")
    assert ".venv is ready" in make_venv(project)
    assert (venv / "kept").exists() and not (venv / ".tidemark/installing").exists()

    # Cut short while it unpacked: half a package may be there.
    log.write_text("Downloading torch\nInstalling collected packages: torch\n")
    (venv / ".tidemark/installing").write_text("build/logs/pip-test.log\n")
    assert "was cut short while installing" in make_venv(project)
    assert not (venv / "kept").exists()

    # The project was moved: the programs in .venv would start a Python that is no longer there.
    moved = project.root.with_name("moved")
    project.root.rename(moved)
    project.root = moved
    assert "elsewhere" in make_venv(project)
    assert subprocess.run([moved / ".venv/bin/pip", "--version"], capture_output=True).returncode == 0


@fast
def test_a_python_that_does_not_run_is_named(project):
    done = project.shell("ensure_venv", TIDEMARK_PYTHON="/no/such/python3")
    assert done.returncode == 1
    assert done.stderr.startswith("error: /no/such/python3 is not a working Python 3.10 or newer")
    assert not (project.root / ".venv").exists()


def fake_torch(folder: Path, version: str) -> None:
    (folder / "torch").mkdir(parents=True)
    (folder / "torch/__init__.py").write_text(f"__version__ = {version!r}\n")
    info = folder / f"torch-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")


def test_a_torch_of_the_base_python_is_used(project, tmp_path):
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    out = project.shell("$base_python -c 'import sys; print(\"python%d.%d\" % sys.version_info[:2])'").stdout.strip()
    fake_torch(tmp_path / f"base/lib/{out or version}/site-packages", "9.9.9")
    env = {"PYTHONUSERBASE": str(tmp_path / "base")}
    make_venv(project, **env)
    done = project.shell("use_present_torch && torch_is_known && cat $venv_notes/torch .venv/pyvenv.cfg", **env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("9.9.9\n")
    assert "include-system-site-packages = true" in done.stdout


# --- pins and the package ---


@fast
def test_pins_are_compared_with_what_is_really_installed(tmp_path, project):
    site = tmp_path / "site"
    for name, version, record in (("whole", "1.2", True), ("torch", "2.13.0+cpu", True), ("half", "1.0", False)):
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        if record:
            (info / "RECORD").write_text("")
    pins = tmp_path / "pins.txt"
    pins.write_text("# why\nwhole==1.2\ntorch==2.13.0  # any build of it\nhalf==1.0\nabsent==3\n")
    command = [sys.executable, project.root / "scripts/lib/missing_pins.py", pins]
    done = subprocess.run(command, env={"PYTHONPATH": str(site)}, text=True, capture_output=True)
    assert done.stdout.splitlines() == ["half==1.0", "absent==3"]


@fast
def test_the_package_is_built_again_when_and_only_when_an_input_changed(project):
    def state() -> str:
        done = project.shell(f"venv_python={SYSTEM_PYTHON}; package_inputs")
        assert done.returncode == 0, done.stderr
        return done.stdout

    for name in ("tidemark/base/a.h", "python/tidemark/__init__.py", "docs/concepts.md", "tests/a.cpp"):
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).touch()
    before = state()
    (project.root / "docs/concepts.md").write_text("new")
    (project.root / "tests/a.cpp").write_text("new")
    assert state() == before
    for name in ("tidemark/base/a.h", "python/tidemark/__init__.py"):
        (project.root / name).write_text("new")
        assert state() != before, name
        before = state()
    (project.root / "tidemark/base/a.h").rename(project.root / "tidemark/base/b.h")
    assert state() != before


# --- the size of downloads ---


def make_wheel(folder: Path, name: str, size: int) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/data", os.urandom(size))
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.mark.parametrize("notice_mb, said", [("0.1", True), ("50", False)])
def test_a_large_download_is_announced_with_its_measured_size(project, tmp_path, notice_mb, said):
    make_wheel(tmp_path / "wheels", "tiny_package", 345_678)
    body = f"venv_python={sys.executable}; begin Tools; announce_download tiny_package==1.0; end installed"
    done = project.shell(
        body,
        PIP_NO_INDEX="1",
        TIDEMARK_PIP_FIND_LINKS=str(tmp_path / "wheels"),
        TIDEMARK_DOWNLOAD_NOTICE_MB=notice_mb,
    )
    assert done.returncode == 0, done.stderr
    assert ("about to fetch 0.3 MB in 1 files for .venv (largest: tiny_package 0.3 MB)" in done.stdout) == said


def test_a_package_that_cannot_be_found_stops_before_venv_changes(project, tmp_path):
    body = f"venv_python={sys.executable}; begin Tools; announce_download no_such_package==1.0"
    done = project.shell(body, PIP_NO_INDEX="1")
    assert done.returncode == 1
    assert "No matching distribution found" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: pip found no way to install: no_such_package==1.0; check")


@fast
def test_an_unknown_size_is_said_and_cpu_builds_are_pointed_out(project, tmp_path):
    wheel = make_wheel(tmp_path / "wheels", "torch", 2_000_000)
    files = {"torch": wheel.as_uri(), "nvidia-x": (tmp_path / "gone.whl").as_uri()}
    report = tmp_path / "report.json"
    report.write_text(
        json.dumps({"install": [{"metadata": {"name": n}, "download_info": {"url": u}} for n, u in files.items()]})
    )
    command = [sys.executable, project.root / "scripts/lib/download_size.py", report, "--notice-mb", "50"]
    said = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    assert "about to fetch 2.0 MB in 2 files" in said
    assert "does not tell the size of 1 of them: nvidia-x" in said
    assert "CPUs only" in said and "--extra-index-url" in said


# --- build folders ---

CMAKE_PROJECT = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.25)\nproject(small NONE)\n",
    "CMakePresets.json": json.dumps(
        {
            "version": 6,
            "configurePresets": [{"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build"}],
            "buildPresets": [{"name": "release", "configurePreset": "release"}],
        }
    ),
}


@fast
@pytest.mark.parametrize("leftover", ["none", "another source folder", "unfinished", "unusable cache"])
def test_a_build_folder_left_behind_does_not_break_the_next_build(project, leftover):
    for name, text in CMAKE_PROJECT.items():
        (project.root / name).write_text(text)
    build = project.root / "build"
    if leftover == "another source folder":
        build.mkdir()
        (build / "CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n")
        (build / "build.ninja").touch()
    elif leftover == "unfinished":
        build.mkdir()
        (build / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={project.root}\n")
    elif leftover == "unusable cache":
        assert project.shell("build_release").returncode == 0
        cache = (build / "CMakeCache.txt").read_text()
        assert "CMAKE_GENERATOR:INTERNAL=Ninja" in cache
        (build / "CMakeCache.txt").write_text(cache.replace("GENERATOR:INTERNAL=Ninja", "GENERATOR:INTERNAL=Unix Makefiles"))
    done = project.shell("build_release")
    assert done.returncode == 0, done.stderr
    assert (build / "build.ninja").exists()
