"""What tidemark.plan returns beside the plan: explanations, other methods, files with a certificate."""

import json
import subprocess
from pathlib import Path

import pytest

import tidemark

pytestmark = pytest.mark.fast

COMMAND = Path(__file__).parents[2] / "build" / "tidemark"
WISHES = {"batch": 8, "seq": 128}


@pytest.fixture(scope="module")
def step():
    return tidemark.native("gpt2", optimizer="adamw", target="cuda", **WISHES)


@pytest.fixture(scope="module")
def result(step):
    found = tidemark.frontier(step, "t4", budgets=3)
    return tidemark.plan(step, found.points[1]["budget_bytes"], "t4")


def command(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)


def command_plan(result, *arguments):
    shape = [word for name, value in WISHES.items() for word in (f"--{name}", value)]
    return command("plan", "gpt2", *shape, "--optimizer", "adamw", "--device", "t4", "--budget", f"{result.budget_bytes}B", *arguments)


def test_it_explains_as_the_command_does(result):
    assert result.termination == "optimal"
    explained = result.explain(name="gpt2", why=["transformer.h.0"])
    printed = command_plan(result, "--explain", "--why", "transformer.h.0")
    assert printed.returncode == 0, printed.stderr
    assert str(explained) == explained.text == printed.stdout
    data = json.loads(command_plan(result, "--explain", "--why", "transformer.h.0", "--json").stdout)
    assert explained.data == data["explanation"]
    assert explained.data["moments"][0]["bytes"] == result.peak_bytes
    with pytest.raises(tidemark.Error, match="nothing"):
        result.explain(why=["no.such.module"])


def test_what_does_not_fit_is_explained_too(step, result):
    none = tidemark.plan(step, result.smallest_peak_bytes + result.reserve_bytes - 1, "t4")
    assert none.termination == "infeasible" and none.plan is None
    assert "it does not fit" in none.explain().text


@pytest.mark.parametrize("method", ["greedy", "reference-policy", "knapsack"])
def test_other_methods_choose_plans_that_are_no_better(step, result, method):
    other = tidemark.plan(step, result.budget_bytes, "t4", method=method)
    assert (result.method, other.method) == ("exact", method)
    if other.termination == "not_found":
        assert other.plan is None
    else:
        assert other.termination == "feasible" and other.plan is not None
        assert other.peak_bytes <= result.budget_bytes - result.reserve_bytes
        assert other.recompute_ms >= result.recompute_ms


@pytest.fixture(scope="module")
def toy():
    return tidemark.native("toy-gpt", batch=2, optimizer="sgd")


def middle(step, **options):
    return tidemark.frontier(step, "cpu", budgets=3, **options).points[1]["budget_bytes"]


def test_a_method_that_finds_nothing_gives_no_plan():
    # Checkpointing every block whole needs more than the smallest peak here.
    step = tidemark.native("resnet18", batch=2, optimizer="sgd")
    smallest = tidemark.plan(step, "1TB").smallest_peak_bytes
    assert tidemark.plan(step, smallest).plan is not None
    other = tidemark.plan(step, smallest, method="greedy")
    assert other.termination == "not_found" and other.plan is None
    assert "the method greedy found no plan" in other.explain().text


def test_the_second_engine_agrees(toy):
    budget = middle(toy)
    exact = tidemark.plan(toy, budget)
    second = tidemark.plan(toy, budget, method="exact-milp")
    assert exact.own_model is None and second.own_model["termination"] == "optimal"
    assert second.recompute_ms == pytest.approx(exact.recompute_ms, rel=1e-6)


def test_an_unknown_method_is_refused(step):
    with pytest.raises(tidemark.Error, match="method"):
        tidemark.plan(step, "8GB", "t4", method="guess")


def test_files_and_their_certificate(step, result, tmp_path):
    step_path = tmp_path / "gpt2.step.jsonl"
    step.save(step_path)
    files = result.save(tmp_path / "plan.json")
    assert Path(files.plan).read_text() == result.plan.to_json()
    assert files.certificate is not None and files.no_certificate is None
    checked = command("verify", step_path, files.plan)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "no plan" in checked.stdout  # what the certificate proves
    # One that is not asked for does not stay.
    again = result.save(tmp_path / "plan.json", certificate=False)
    assert again.certificate is None and not Path(files.certificate).exists()


def test_a_certificate_that_nothing_fits(step, result, tmp_path):
    none = tidemark.plan(step, result.smallest_peak_bytes + result.reserve_bytes - 1, "t4")
    files = none.save(tmp_path / "none.json")
    assert files.plan is None and not (tmp_path / "none.json").exists()
    assert files.certificate is not None and Path(files.certificate).exists()


def test_times_carry_an_interval(step, result):
    for total in (result.recompute, result.step_ops):
        assert 0 < total["low_ms"] < total["ms"] < total["high_ms"]
    assert (result.recompute["ms"], result.step_ops["ms"]) == (result.recompute_ms, result.step_ms)
    low, high = tidemark.price(step, "t4").step_interval_ms
    assert low < tidemark.price(step, "t4").step_ms < high
    found = tidemark.frontier(step, "t4", budgets=2)
    assert found.step_ops == result.step_ops
    assert found.points[0]["recompute_low_ms"] < found.points[0]["recompute_ms"] < found.points[0]["recompute_high_ms"]


def test_what_times_assume_is_said():
    """A V100 has no units for bfloat16."""
    step = tidemark.native("toy-gpt", batch=2, dtype="bfloat16", target="cuda")
    note = "products in bfloat16 are priced at the rate of float32: the device has no figure for them"
    for found in (tidemark.plan(step, "90%", "v100"), tidemark.frontier(step, "v100", budgets=2), tidemark.price(step, "v100")):
        assert found.notes == [note]
    assert tidemark.plan(step, "90%", "a100").notes == []


def test_what_has_no_price_is_listed(tmp_path):
    """relu reads and writes 128 bytes each; an op that nobody knows moves as many."""
    text = (Path(__file__).parents[2] / "examples/steps/two_layer_mlp.step.jsonl").read_text()
    (tmp_path / "unknown.step.jsonl").write_text(text.replace('"aten.relu.default"', '"mine.magic.default"'))
    step = tidemark.Step.load(tmp_path / "unknown.step.jsonl")
    found = tidemark.plan(step, "2KiB", "cpu")
    assert found.unpriced == tidemark.frontier(step, "cpu", budgets=2).unpriced == [("mine.magic.default", 1, 256)]
    assert found.step_ops["unpriced_bytes"] == 256
    assert "mine.magic.default" in found.explain().text
    from tidemark._apply.fit import _unpriced

    assert _unpriced(found) == " Without a price, and counted as nothing: 1 x mine.magic.default of 256 B."


def test_what_of_the_recompute_has_no_price_is_said(tmp_path):
    from tidemark._apply.fit import _unpriced

    path = tmp_path / "unknown.step.jsonl"
    tidemark.native("toy-gpt", batch=2).save(path)
    path.write_text(path.read_text().replace('"aten.gelu.default"', '"mine.magic.default"'))
    step = tidemark.Step.load(path)
    whole = tidemark.plan(step, "100%", "cpu")
    least = tidemark.plan(step, whole.smallest_peak_bytes, "cpu", reserve=0)
    ops, bytes_ = least.recompute["unpriced_ops"], least.recompute["unpriced_bytes"]
    assert 1 <= ops <= 2
    assert _unpriced(least).endswith(f" The plan recomputes {ops} op{'s' * (ops > 1)} of {tidemark._core.format_bytes(bytes_)} without a price.")
    assert json.loads(least.plan.to_json())["unpriced"] == [["mine.magic.default", ops, bytes_]]


def test_a_plan_rounds_as_its_device_does(step, tmp_path):
    file = json.loads((Path(__file__).parents[2] / "data/devices/t4.json").read_text()) | {"name": "pages"}
    file["allocator_rounding_bytes"][0] = 4096
    (tmp_path / "pages.json").write_text(json.dumps(file))
    device = str(tmp_path / "pages.json")
    found = tidemark.plan(step, "100%", device)
    assert found.unplanned_peak_bytes == tidemark.simulate(step, round_to_bytes=4096).peak_bytes
    assert json.loads(found.plan.to_json())["rounding_bytes"] == 4096
    assert [point["peak_bytes"] % 4096 for point in tidemark.frontier(step, device, budgets=2).points] == [0, 0]


@pytest.mark.parametrize("find", [lambda step: tidemark.plan(step, "1GB"), tidemark.frontier])
@pytest.mark.parametrize("no_step", ["gpt2", None, 3])
def test_what_is_no_step_is_refused_with_a_hint(find, no_step):
    with pytest.raises(tidemark.Error, match="this is no step; expected a tidemark.Step, got .*; try: tidemark.capture"):
        find(no_step)


def test_a_search_cannot_be_allowed_less_than_nothing(step):
    with pytest.raises(tidemark.Error, match=r"\[max_work\].*got -1"):
        tidemark.plan(step, "2KiB", "cpu", max_work=-1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workspace": "x"}, r"\[workspace\] this is no table"),
        ({"rng": None}, r"\[rng\] this is no rule"),
        ({"reserve": 1.5}, r"\[reserve\] this is no count"),
        ({"reserve": True}, r"\[reserve\] this is no count"),
        ({"max_work": 1e9}, r"\[max_work\] this is no count"),
        ({"units": [5]}, r"\[units\] these are no patterns"),
        ({"ranks": 0}, r"\[ranks\]"),
    ],
)
def test_options_of_another_type_are_named(step, options, words):
    with pytest.raises(tidemark.Error, match=words):
        tidemark.plan(step, "2KiB", "cpu", **options)


@pytest.mark.parametrize("options", [{"max_work": 0}, {"max_work": -1}, {"budgets": 10**9}, {"budgets": 1}])
def test_a_frontier_has_limits(step, options):
    with pytest.raises(tidemark.Error, match=next(iter(options))):
        tidemark.frontier(step, "cpu", **options)


def test_one_question_may_be_a_text(result):
    assert str(result.explain(why="transformer.h.0")) == str(result.explain(why=["transformer.h.0"]))
