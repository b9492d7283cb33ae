"""The stages of ./test: all of them run, a failure is named, and both runners' summaries stand at the end."""

import pytest

pytestmark = pytest.mark.fast

CTEST = """echo "1/1 Test #1: a ... Passed"; echo; echo "100% tests passed, 0 tests failed out of 1"
    echo "Total Test time (real) = 0.01 sec"; exit ${CTEST_STATUS:-0}"""
PYTEST = """echo "tests/a.py F"; echo "assert 1 == 2"
    if [[ -n ${PYTEST_STATUS:-} ]]; then echo "=== short test summary info ==="; echo "FAILED tests/a.py"; fi
    echo "=== 1 counted in 0.01s ==="; exit ${PYTEST_STATUS:-0}"""


def run_stages(project, **env):
    project.add_tool("ctest", CTEST)
    project.add_tool("fake-pytest", PYTEST)
    (project.root / ".venv/bin").mkdir(parents=True)
    (project.root / ".venv/bin/pytest").symlink_to(project.tools / "fake-pytest")
    return project.shell("source scripts/lib/stages.sh; stage_ctest Cpp release; stage_pytest; summarize", **env)


def test_both_summaries_stand_at_the_end(project):
    done = run_stages(project)
    assert done.returncode == 0, done.stderr
    end = done.stdout.split("All stages passed.\n")[1]
    assert end.splitlines() == [
        "", "ctest-release:", "100% tests passed, 0 tests failed out of 1", "Total Test time (real) = 0.01 sec",
        "", "pytest:", "=== 1 counted in 0.01s ===",
    ]  # fmt: skip


@pytest.mark.parametrize("runner, label", [("CTEST_STATUS", "Cpp"), ("PYTEST_STATUS", "Python, command line")])
def test_a_failed_stage_is_named_and_the_others_still_run(project, runner, label):
    done = run_stages(project, **{runner: "8"})
    assert done.returncode == 1
    named = [line for line in done.stdout.splitlines() if line.startswith("FAILED: ")]
    assert len(named) == 1 and named[0].startswith(f"FAILED: {label}") and "build/logs/" in named[0]
    assert "100% tests passed" in done.stdout
    assert done.stdout.endswith("=== 1 counted in 0.01s ===\n")


def test_pytests_list_of_failures_belongs_to_its_summary(project):
    done = run_stages(project, PYTEST_STATUS="1")
    end = done.stdout.split("\npytest:\n")[1]
    assert end.splitlines() == ["=== short test summary info ===", "FAILED tests/a.py", "=== 1 counted in 0.01s ==="]


def test_a_build_that_fails_fails_its_stage(project):
    project.remove_tool("cmake")
    project.add_tool("cmake", "echo no compiler; exit 1")
    done = project.shell("source scripts/lib/stages.sh; stage_clang; stage_lint; summarize")
    assert done.returncode == 1
    assert "FAILED: clang build (full output: build/logs/configure-clang.log)" in done.stdout
    assert "FAILED: clang-tidy (not run" in done.stdout


def test_accepting_goldens_is_for_the_option_alone(project):
    done = project.run("bash", "-c", "source scripts/lib/common.sh; echo ${TIDEMARK_ACCEPT-unset}", TIDEMARK_ACCEPT="1")
    assert done.stdout == "unset\n"
