"""Debian packages: only what is missing is installed, by whoever may, and nobody else is asked."""

import pytest

pytestmark = pytest.mark.fast


def without(project, *missing: str) -> str:
    """What dpkg-query reports when these packages are not installed."""
    return " ".join(p for p in project.packages("build") + project.packages("test") if p not in missing)


def test_nothing_missing_calls_neither_apt_nor_sudo(project):
    for uid in ("0", "1000"):
        done = project.shell("install_packages build test", FAKE_UID=uid)
        assert done.returncode == 0, done.stderr
        assert "nothing missing" in done.stdout
    assert project.calls() == []


def test_nothing_missing_needs_no_sudo_to_be_there(project):
    project.remove_tool("sudo")
    project.remove_tool("apt-get")
    assert project.shell("install_packages build test", FAKE_UID="1000").returncode == 0


def test_root_installs_exactly_the_missing_packages(project):
    done = project.shell("install_packages build", FAKE_INSTALLED=without(project, "libfmt-dev", "cmake", "fish"))
    assert done.returncode == 0, done.stderr
    update, install = project.calls()
    assert update.endswith(" update")
    assert install.startswith("apt-get ")
    assert install.endswith(" install --yes --no-install-recommends cmake libfmt-dev")


def test_on_a_bare_system_everything_is_missing(project):
    assert project.shell("install_packages build test", FAKE_INSTALLED="").returncode == 0
    assert sorted(project.calls()[-1].split("--no-install-recommends ")[1].split()) == sorted(
        project.packages("build") + project.packages("test")
    )


def test_test_packages_are_installed_for_the_tests_only(project):
    installed = without(project, "fish")
    assert project.shell("install_packages build", FAKE_INSTALLED=installed).returncode == 0
    assert project.calls() == []
    assert project.shell("install_packages build test", FAKE_INSTALLED=installed).returncode == 0
    assert project.calls()[-1].endswith(" fish")


def test_a_package_removed_but_for_its_settings_counts_as_missing(project):
    rows = project.root / "scripts/debian-packages.txt"
    rows.write_text(rows.read_text() + "build removed-earlier its settings are still there\n")
    assert project.shell("install_packages build").returncode == 0
    assert project.calls()[-1].endswith(" removed-earlier")


def test_a_user_with_sudo_installs_through_it(project):
    done = project.shell("install_packages build", FAKE_UID="1000", FAKE_INSTALLED=without(project, "cmake"))
    assert done.returncode == 0, done.stderr
    calls = project.calls()
    assert [call.split()[0] for call in calls] == ["sudo", "apt-get", "sudo", "apt-get"]
    assert "DEBIAN_FRONTEND=noninteractive" in calls[2]
    assert calls[3].endswith(" cmake")


def test_a_user_without_sudo_is_told_the_packages_in_one_sentence(project):
    project.remove_tool("sudo")
    done = project.shell("install_packages build", FAKE_UID="1000", FAKE_INSTALLED=without(project, "cmake", "g++"))
    assert done.returncode == 1
    assert project.calls() == []
    assert done.stderr == (
        "error: Debian packages are missing and this user is neither root nor has sudo; ask an administrator to run: "
        "apt-get update && apt-get install --no-install-recommends cmake g++\n"
    )


def test_a_failed_installation_shows_the_log_and_keeps_it(project):
    project.add_tool("apt-get", 'echo "E: Unable to locate package $*"; exit 100')
    done = project.shell("install_packages build", FAKE_INSTALLED=without(project, "cmake"))
    assert done.returncode == 1
    assert "E: Unable to locate package" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: Debian packages could not be installed; check the network")
    assert "E: Unable to locate" in (project.root / "build/logs/apt-install.log").read_text()


def test_the_failure_ends_quickstart_itself(project):
    for command in ("./quickstart", "./test"):
        done = project.run(command, FAKE_INSTALLED=without(project, "cmake"), FAKE_APT_STATUS="100")
        assert done.returncode == 1
        assert done.stderr.count("error:") == 1
        assert not (project.root / ".venv").exists()


def test_another_system_is_refused_with_the_way_out(project):
    project.remove_tool("dpkg-query")
    done = project.shell("install_packages build")
    assert done.returncode == 1
    assert done.stderr.startswith("error: this is not a Debian system")
    assert project.shell("install_packages build", TIDEMARK_SKIP_PACKAGES="1").returncode == 0


def test_every_listed_package_says_why(project):
    for line in (project.root / "scripts/debian-packages.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            kind, _, *why = line.split()
            assert kind in ("build", "test") and len(why) >= 2, line
