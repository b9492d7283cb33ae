"""tidemark plan --method: every method on the command line, and the programs it writes."""

import json

import pytest

pytestmark = pytest.mark.fast

STEP = ["resnet18", "--device", "cpu", "--batch", "2", "--optimizer", "sgd"]
METHODS = ["exact", "greedy", "milp", "exact-milp", "reference-policy", "knapsack"]


@pytest.fixture(scope="module")
def budget(cli):
    ends = cli.json("plan", *STEP, "--budget", "1TB")
    return (ends["smallest_peak_bytes"] + 3 * ends["unplanned_peak_bytes"]) // 4


@pytest.fixture(scope="module")
def best(cli, budget):
    found = cli.json("plan", *STEP, "--budget", f"{budget}B")
    assert found["termination"] == "optimal"
    return found


@pytest.mark.parametrize("method", METHODS)
def test_a_plan_of_any_method_holds(cli, tmp_path, budget, best, method):
    path = tmp_path / "plan.json"
    found = cli.json("plan", *STEP, "--budget", f"{budget}B", "--method", method, "-o", str(path))
    assert found["method"] == method
    assert found["termination"] in ("optimal", "feasible")
    assert found["peak_bytes"] <= budget
    assert found["recompute_ps"] >= best["recompute_ps"] >= found["bound_ps"]
    assert ("own_model" in found) == (method in ("milp", "exact-milp"))
    verified = cli("verify", *STEP[:1], str(path), "--batch", "2", "--optimizer", "sgd")
    assert verified.returncode == 0, verified.stderr
    if method == "exact-milp":
        assert found["recompute_ps"] == best["recompute_ps"]


@pytest.mark.parametrize("method", METHODS)
def test_nothing_fits_below_the_smallest_peak(cli, best, method):
    result = cli("plan", *STEP, "--budget", f"{best['smallest_peak_bytes'] - 1}B", "--method", method, "--json")
    assert result.returncode == 3, result.stderr
    assert json.loads(result.stdout)["termination"] == "infeasible"


def test_a_method_that_finds_nothing_says_so(cli, best):
    """Checkpointing every block whole needs more than the smallest peak here."""
    args = ["plan", *STEP, "--budget", f"{best['smallest_peak_bytes']}B", "--method", "greedy"]
    result = cli(*args, "--json")
    assert result.returncode == 4
    assert json.loads(result.stdout)["termination"] == "not_found"
    assert "the method greedy found no plan that fits" in cli(*args).stdout


@pytest.mark.parametrize("method", ["milp", "exact-milp"])
def test_programs_are_written_without_a_solver(cli, tmp_path, budget, method):
    mps, lp = tmp_path / "model.mps", tmp_path / "model.lp"
    result = cli("plan", *STEP, "--budget", f"{budget}B", "--method", method, "--write-mps", str(mps), "--write-lp",
                 str(lp), "--highs", "/nowhere/libhighs.so")
    assert result.returncode == 1
    assert "/nowhere/libhighs.so" in result.stderr and "pip install highsbox" in result.stderr
    assert mps.read_text().endswith("ENDATA\n") and lp.read_text().endswith("End\n")


def test_what_has_no_program_writes_none(cli, tmp_path, budget):
    result = cli("plan", *STEP, "--budget", f"{budget}B", "--write-mps", str(tmp_path / "model.mps"))
    assert result.returncode == 1
    assert "it solves no linear program" in result.stderr
    assert not (tmp_path / "model.mps").exists()


def test_only_milp_goes_by_other_times(cli, budget):
    args = ["plan", *STEP, "--budget", f"{budget}B", "--cost", "reference-m"]
    result = cli(*args, "--method", "exact-milp")
    assert result.returncode == 2
    assert "[--cost]" in result.stderr and "expected --method milp" in result.stderr
