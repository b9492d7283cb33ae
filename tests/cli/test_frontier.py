"""tidemark frontier: the least time for every budget, as a plot, as CSV and as JSON."""

import csv
import io
import json

import pytest

pytestmark = pytest.mark.fast

GPT2 = ["gpt2", "--seq", "256", "--batch", "8", "--optimizer", "sgd", "--device", "t4"]


@pytest.fixture(scope="module")
def coarse(cli):
    return cli.json("frontier", *GPT2)


def test_64_budgets_from_the_smallest_to_that_without_a_plan(coarse):
    points = coarse["points"]
    assert len(points) == 64
    budgets = [point["budget_bytes"] - coarse["reserve_bytes"] for point in points]
    assert (budgets[0], budgets[-1]) == (coarse["smallest_peak_bytes"], coarse["unplanned_peak_bytes"])
    steps = {b - a for a, b in zip(budgets, budgets[1:])}
    assert max(steps) - min(steps) <= 1
    times = [point["recompute_ps"] for point in points]
    assert times == sorted(times, reverse=True) and times[-1] == 0 < times[0]
    for point in points:
        assert point["peak_bytes"] + coarse["reserve_bytes"] <= point["budget_bytes"]
        assert point["bound_ps"] <= point["recompute_ps"]
        assert point["proved"] == (point["bound_ps"] == point["recompute_ps"])
        assert point["termination"] == ("fits" if point["units"] == 0 else "optimal" if point["proved"] else "feasible")


def test_its_points_are_what_plan_says(cli, coarse):
    for point in coarse["points"][:: 21]:
        found = cli.json("plan", *GPT2, "--budget", f"{point['budget_bytes']}B")
        if point["proved"]:
            assert found["recompute_ps"] >= point["recompute_ps"]
        if found["termination"] in ("optimal", "fits"):
            assert found["recompute_ps"] <= point["recompute_ps"]


def test_policies_are_never_below_it(coarse):
    for policy in coarse["policies"]:
        best = [p["bound_ps"] for p in coarse["points"] if p["budget_bytes"] >= policy["budget_bytes"]]
        assert not best or best[0] <= policy["recompute_ps"]
    assert [p["policy"] for p in coarse["policies"]] == ["none", "full", "every:2", "every:3", "every:4", "selective"]


def test_csv_has_what_json_has(cli, coarse):
    rows = list(csv.DictReader(io.StringIO(cli("frontier", *GPT2, "--csv").stdout)))
    points = [row for row in rows if row["kind"] == "frontier"]
    assert [int(row["budget_bytes"]) for row in points] == [p["budget_bytes"] for p in coarse["points"]]
    assert [float(row["recompute_ms"]) for row in points] == [p["recompute_ms"] for p in coarse["points"]]
    assert [row["name"] for row in rows if row["kind"] == "policy"][0] == "none"


def test_the_text_fits_a_screen(cli):
    text = cli("frontier", *GPT2).stdout
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 100
    for words in ["64 budgets", "plans written by hand", "*", "selective"]:
        assert words in text


def test_every_breakpoint_of_a_small_step(cli, example, golden):
    full = cli.json("frontier", example, "--device", "cpu", "--full")
    assert full["missing"] == [] and all(point["proved"] for point in full["points"])
    for before, point in zip([None, *full["points"]], full["points"]):
        at = cli.json("plan", example, "--device", "cpu", "--budget", f"{point['budget_bytes']}B")
        assert at["recompute_ps"] == point["recompute_ps"]
        below = cli("plan", example, "--device", "cpu", "--budget", f"{point['budget_bytes'] - 1}B", "--json")
        if before is None:
            assert below.returncode == 3
        else:
            assert json.loads(below.stdout)["recompute_ps"] == before["recompute_ps"]
    golden("frontier_example.txt", cli("frontier", example, "--device", "cpu", "--full").stdout)
    golden("frontier_example.csv", cli("frontier", example, "--device", "cpu", "--full", "--csv").stdout)


def test_a_limit_says_what_is_missing(cli):
    full = cli.json("frontier", *GPT2, "--full", "--max-work", "3000000")
    assert full["missing"]
    assert all(gap["first_budget_bytes"] <= gap["last_budget_bytes"] for gap in full["missing"])
    text = cli("frontier", *GPT2, "--full", "--max-work", "3000000").stdout
    assert "the work limit was reached with" in " ".join(text.split())


def test_a_bar_only_on_a_terminal(cli):
    """A bar is for searches of half a second and more, so this one must take that long."""
    arguments = ["frontier", *GPT2, "--full", "--max-work", "60000000"]
    assert cli(*arguments).stderr == ""
    shown = cli.on_terminal(*arguments, stream="stderr")
    assert "budgets solved" in shown and shown.endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--budgets", "1"], 1, "2 to 65536"),
        (["--csv", "--json"], 2, "two ways to say the same"),
        (["--units", "nothing.*"], 1, "it matches nothing in this step"),
    ],
)
def test_what_makes_no_sense_is_refused(cli, options, code, words):
    result = cli("frontier", *GPT2, *options)
    assert result.returncode == code
    assert words in result.stderr


def test_lists_what_has_no_price(cli, step, tmp_path):
    """relu reads and writes 128 bytes; it counts as nothing, and says so in every form."""
    step.rename("aten.relu.default", "mine.magic.default")
    path = tmp_path / "unknown.step.jsonl"
    path.write_text(step.text())
    arguments = ("frontier", path, "--device", "t4", "--budgets", "2")
    data = cli.json(*arguments)
    assert data["unpriced"] == [{"op": "mine.magic.default", "count": 1, "bytes": 256}]
    assert (data["step_ops"]["unpriced_ops"], data["step_ops"]["unpriced_bytes"]) == (1, 256)
    assert "without a price, counted as nothing\n  1  256 B  mine.magic.default\n" in cli(*arguments).stdout
    rows = list(csv.DictReader(io.StringIO(cli(*arguments, "--csv").stdout)))
    assert [(row["name"], row["ops"], row["bytes"]) for row in rows if row["kind"] == "unpriced"] == [("mine.magic.default", "1", "256")]


def test_times_carry_an_interval(cli, coarse):
    assert coarse["step_ops"]["low_ms"] < coarse["step_ops_ms"] < coarse["step_ops"]["high_ms"]
    for point in coarse["points"] + coarse["policies"]:
        if point["recompute_ms"]:
            assert point["recompute_low_ms"] < point["recompute_ms"] < point["recompute_high_ms"]
