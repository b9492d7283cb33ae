"""tidemark plan and tidemark verify: the cheapest plan under a budget, its file, and what checks it."""

import json

import pytest

pytestmark = pytest.mark.fast

GPT2 = ["gpt2", "--batch", "8", "--device", "t4", "--budget", "90%"]


def test_the_example_plan_is_what_the_command_writes(cli, tmp_path):
    cli("plan", *GPT2, "-o", str(tmp_path / "plan.json"))
    written = (tmp_path / "plan.json").read_text()
    assert written == open("examples/plans/gpt2.json").read(), "examples/plans/gpt2.json is old: write it again"
    proof = (tmp_path / "plan.certificate.json").read_text()
    assert proof == open("examples/plans/gpt2.certificate.json").read(), "its certificate is old: write it again"


def test_a_plan_fits_and_is_cheaper_than_those_written_by_hand(cli):
    found = cli.json("plan", *GPT2)
    assert found["termination"] == "optimal"
    assert found["bound_ms"] == found["recompute_ms"] > 0
    assert found["smallest_peak_bytes"] <= found["peak_bytes"] <= found["budget_bytes"] - found["reserve_bytes"]
    assert found["unplanned_peak_bytes"] > found["budget_bytes"] - found["reserve_bytes"]
    by_hand = [policy["recompute_ps"] for policy in found["policies"] if policy["fits"]]
    assert by_hand and found["recompute_ps"] < min(by_hand)


def test_budgets_from_the_smallest_peak_up(cli):
    """At the smallest peak there is a plan, one byte below there is none, and more budget never costs more."""
    options = ["resnet18", "--device", "cpu", "--batch", "2", "--optimizer", "sgd"]
    ends = cli.json("plan", *options, "--budget", "1TB")
    assert (ends["termination"], ends["units"]) == ("fits", 0)
    least, most = ends["smallest_peak_bytes"], ends["unplanned_peak_bytes"]
    assert least < most
    none = cli("plan", *options, "--budget", f"{least - 1}B", "--json", check=False)
    assert none.returncode == 3
    assert json.loads(none.stdout)["termination"] == "infeasible"
    times = []
    for budget in [least, (least + most) // 2, most - 1, most]:
        found = cli.json("plan", *options, "--budget", f"{budget}B")
        assert found["peak_bytes"] <= budget
        times.append(found["recompute_ps"])
    assert times == sorted(times, reverse=True) and times[-1] == 0 < times[-2]


def test_a_plan_that_was_edited_does_not_hold(cli, tmp_path):
    path = tmp_path / "plan.json"
    plan = json.load(open("examples/plans/gpt2.json"))
    plan["units"] = []
    path.write_text(json.dumps(plan))
    result = cli("verify", "gpt2", str(path), "--batch", "8", "--target", "cuda", check=False)
    assert result.returncode == 1
    assert "changed after it was written" in result.stderr


def test_a_certificate_is_checked_with_its_plan(cli, tmp_path):
    plan, proof = tmp_path / "plan.json", tmp_path / "plan.certificate.json"
    options = ["gpt2", "--batch", "2", "--seq", "64", "--device", "t4", "--reserve", "0B"]
    found = cli.json("plan", *options, "--budget", "90%")
    room = (found["smallest_peak_bytes"] + found["unplanned_peak_bytes"]) // 2
    made = cli.json("plan", *options, "--budget", f"{room}B", "-o", str(plan))
    assert made["certificate"] == str(proof)
    model = ["gpt2", str(plan), "--batch", "2", "--seq", "64", "--target", "cuda"]
    assert "optimal, confirmed" in cli("verify", *model).stdout
    verdict = cli.json("verify", *model)["certificate"]
    assert (verdict["claim"], verdict["holds"], verdict["bound_ps"]) == ("optimal", True, made["recompute_ps"])
    # On another device the same ops take another time.
    other = cli("verify", *model, "--device", "h100-sxm", check=False)
    assert other.returncode == 1 and "other times" in other.stdout
    # Of another plan, and then of none: an old certificate does not stay beside a new plan.
    cli("plan", *options, "--budget", f"{room + 2**20}B", "-o", str(tmp_path / "other.json"))
    wrong = cli("verify", *model, "--certificate", str(tmp_path / "other.certificate.json"), check=False)
    assert wrong.returncode == 1 and "the certificate is of another plan" in wrong.stdout
    cli("plan", *options, "--budget", f"{room}B", "-o", str(plan), "--no-certificate")
    assert not proof.exists() and "confirmed" not in cli("verify", *model).stdout


def test_that_nothing_fits_has_a_certificate(cli, tmp_path):
    plan, proof = tmp_path / "plan.json", tmp_path / "plan.certificate.json"
    options = ["gpt2", "--batch", "2", "--seq", "64"]
    made = cli("plan", *options, "--device", "t4", "--budget", "1GiB", "-o", str(plan), check=False)
    assert made.returncode == 3 and proof.exists() and not plan.exists()
    result = cli("verify", *options, "--target", "cuda", "--certificate", str(proof))
    assert "infeasible, confirmed" in result.stdout
    proof.write_text(proof.read_text().replace('"room_bytes": ', '"room_bytes": 1'))
    assert "changed after it was written" in cli(
        "verify", *options, "--target", "cuda", "--certificate", str(proof), check=False
    ).stderr


def test_a_plan_is_of_one_step(cli):
    result = cli("verify", "gpt2", "examples/plans/gpt2.json", "--batch", "4", "--target", "cuda", check=False)
    assert result.returncode == 1
    assert "the plan is of another step" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budget", "13"], "unit"),
        (["--budget", "200MiB"], "there is nothing left of the budget"),
        (["--budget", "8000PB"], "[--budget] a budget is at most 2^62 bytes"),
        (["--budget", "90%", "--units", "layers.*"], "it matches nothing in this step"),
        (["--budget", "90%", "--never-save", "aten.nothing"], "it matches nothing in this step"),
    ],
)
def test_what_makes_no_sense_is_refused(cli, options, words):
    result = cli("plan", "gpt2", "--device", "t4", *options, check=False)
    assert result.returncode == 1
    assert words in result.stderr


def test_patterns_are_followed(cli, tmp_path):
    path = tmp_path / "plan.json"
    cli("plan", *GPT2, "--units", "transformer.h.*.mlp", "--always-save", "aten.addmm", "-o", str(path))
    units = json.load(open(path))["units"]
    assert units
    for unit in units:
        assert unit["module"].startswith("transformer.h.") and unit["module"].endswith(".mlp")
        assert unit["saved"]["aten.addmm.default"] == [0, 1]


def test_the_text_answers_the_questions(cli):
    text = cli("plan", *GPT2).stdout
    for words in ["no plan that fits is cheaper (proved)", "held by", "checkpointed", "of the step", "plans written by hand"]:
        assert words in text
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 100


def test_what_does_not_fit_says_what_holds_it(cli):
    result = cli("plan", "gpt2", "--batch", "8", "--device", "t4", "--budget", "4GiB", check=False)
    assert result.returncode == 3
    for words in ["it does not fit: the smallest peak that any plan reaches is", "(proved)", "held by", "would help"]:
        assert words in result.stdout
    assert len(result.stdout.splitlines()) <= 40


def test_a_limit_without_a_plan_is_4(cli, tmp_path):
    """Reserved bytes are replayed, not modelled, so that no proof says that a byte less is too little."""
    options = ["plan", "gpt2", "--seq", "64", "--device", "t4", "--against", "reserved"]
    ends = cli.json(*options, "--budget", "90%")
    budget = f"{ends['smallest_peak_bytes'] + ends['reserve_bytes'] - 1}B"
    result = cli(*options, "--budget", budget, "-o", str(tmp_path / "plan.json"), "--json", check=False)
    assert json.loads(result.stdout)["termination"] == "limit"
    assert result.returncode == 4
    assert list(tmp_path.iterdir()) == []
    text = " ".join(cli(*options, "--budget", budget, check=False).stdout.split())
    assert "no plan was found that fits with the fragments of the allocator's cache" in text
    assert "as far as is known" in text and "smallest known" in text


@pytest.mark.parametrize(
    "options",
    [
        ["gpt2", "--seq", "64", "--device", "t4", "--against", "reserved", "--budget", "SMALLER"],
        ["bert-base", "--batch", "32", "--device", "t4", "--method", "greedy", "--budget", "8.5GB"],
    ],
)
def test_without_a_plan_all_figures_are_of_the_smallest_known(cli, options):
    if options[-1] == "SMALLER":
        ends = cli.json("plan", *options[:-1], "90%")
        options = [*options[:-1], f"{ends['smallest_peak_bytes'] + ends['reserve_bytes'] - 1}B"]
    found = cli.json("plan", *options, code=4)
    assert found["units"] > 0 and found["peak_bytes"] == found["smallest_peak_bytes"]
    assert found["recompute"]["ms"] == found["recompute_ms"] > 0
    assert "the smallest plan checkpoints" in cli("plan", *options, check=False).stdout


@pytest.mark.parametrize(
    ("wish", "budget"),
    [(["--units", "transformer.h.0.attn"], "90%"), (["--rng", "never"], "7.5GB"), (["--always-save", "*::addmm"], "9GB")],
)
def test_options_that_stand_in_the_way_are_named(cli, wish, budget):
    """`full` comes to 6.33 GiB (README.md) and fits each of these budgets, but none of these options allows it."""
    result = cli("plan", "gpt2", "--batch", "8", "--device", "t4", "--budget", budget, *wish, "--explain", check=False)
    text = " ".join(result.stdout.split())
    assert result.returncode == 3
    named = f"{wish[0]} {wish[1]}" if wish[0] == "--rng" else f"{wish[0]} '{wish[1]}'"
    assert f"the smallest peak that any plan with {named} reaches is" in text
    assert f"That is with {named}: without, more may be recomputed; the policy full comes to 6.33 GiB" in text
    assert "cannot help" not in text


@pytest.fixture
def page_card(tmp_path):
    """A T4 whose allocator hands out pages of 4 KiB."""
    file = json.load(open("data/devices/t4.json")) | {"name": "page-card", "aliases": []}
    file["allocator_rounding_bytes"][0] = 4096
    path = tmp_path / "page-card.json"
    path.write_text(json.dumps(file))
    return path


def test_a_plan_rounds_as_its_device_does(cli, page_card, tmp_path):
    """The predicted peak is that of `tidemark memory`, which rounds each size up to the device's figure."""
    plan, model = tmp_path / "plan.json", ["resnet18", "--batch", "2", "--optimizer", "sgd"]
    options = [*model, "--device", page_card, "--reserve", "0B"]
    most = cli.json("plan", *options, "--budget", "100%")
    assert most["unplanned_peak_bytes"] == cli.json("memory", *model, "--device", page_card, "--allocator", "rounded")["peak_bytes"]
    assert most["unplanned_peak_bytes"] % 4096 == 0
    budget = (most["unplanned_peak_bytes"] + most["smallest_peak_bytes"]) // 2
    found = cli.json("plan", *options, "--budget", f"{budget}B", "-o", plan)
    assert found["units"] > 0 and found["rounding_bytes"] == 4096
    again = cli.json("memory", *model, "--device", page_card, "--allocator", "rounded", "--plan", plan)
    assert again["peak_bytes"] == found["peak_bytes"]
    assert json.loads(plan.read_text())["rounding_bytes"] == 4096
    assert json.loads((tmp_path / "plan.certificate.json").read_text())["rounding_bytes"] == 4096
    verified = cli("verify", *model, "--target", "cuda", plan, "--device", page_card)
    assert (verified.returncode, "optimal, confirmed" in verified.stdout) == (0, True)
    # Whose blocks are of 512 B has more room than the plan counts with, but the plan is for another allocator.
    other = cli("verify", *model, "--target", "cuda", plan, "--device", "t4")
    assert other.returncode == 1
    assert "the file rounds sizes up to 4096 B, and t4 does to 512 B" in other.stdout
    points = cli.json("frontier", *options, "--budgets", "3")["points"]
    assert [point["peak_bytes"] % 4096 for point in points] == [0] * len(points)
    least = cli.json("max", *options, "--of", "budget")
    assert least["smallest"] == most["smallest_peak_bytes"]


def test_a_rounding_that_was_changed_is_refused(cli, page_card, tmp_path):
    path, model = tmp_path / "plan.json", ["gpt2", "--batch", "1", "--seq", "16"]
    cli("plan", *model, "--device", page_card, "--budget", "100%", "-o", path)
    plan = json.loads(path.read_text())
    for value, says in [
        (512, "changed after it was written"),
        (0, "sizes cannot be rounded up to that"),
        (2**30 + 1, "1 to 2^30 for rounded ones, got 1073741825"),
        (-1, "this is no count"),
        (512.5, "this is no count"),
    ]:
        path.write_text(json.dumps(plan | {"rounding_bytes": value}))
        result = cli("verify", *model, "--target", "cuda", path, "--device", page_card)
        assert (result.returncode, result.stdout) == (1, "")
        assert says in result.stderr
    proof = tmp_path / "plan.certificate.json"
    path.write_text(json.dumps(plan, indent=1))
    certificate = json.loads(proof.read_text())
    proof.write_text(json.dumps(certificate | {"rounding_bytes": 512}))
    assert "changed after it was written" in cli("verify", *model, "--target", "cuda", path, "--device", page_card).stderr
    proof.write_text(json.dumps(certificate | {"rounding_bytes": 0}))
    assert "sizes cannot be rounded up to that" in cli("verify", *model, "--target", "cuda", path, "--device", page_card).stderr


def test_lists_what_has_no_price(cli, step, tmp_path):
    """relu reads and writes 128 bytes; nobody knows what `magic` takes, and every form of the report says so."""
    step.rename("aten.relu.default", "mine.magic.default")
    path = tmp_path / "unknown.step.jsonl"
    path.write_text(step.text())
    arguments = ("plan", path, "--device", "cpu", "--budget", "2KiB")
    data = cli.json(*arguments)
    assert data["unpriced"] == [{"op": "mine.magic.default", "count": 1, "bytes": 256}]
    assert (data["step_ops"]["unpriced_ops"], data["step_ops"]["unpriced_bytes"]) == (1, 256)
    section = "without a price, counted as nothing\n  1  256 B  mine.magic.default\n"
    for more in ([], ["--explain"]):
        text = cli(*arguments, *more).stdout
        assert text.count(section) == 1 and "; 1 op of 256 B without a price" in text
        assert "recomputes" not in text  # with so much memory, nothing runs again
    assert data["recomputed_unpriced"] == []
    assert cli.json(*arguments, "--explain")["explanation"]["unpriced"] == data["unpriced"]
    found = cli("max", path, "--device", "cpu", "--of", "budget")
    assert section in found.stdout


def test_says_what_of_the_recompute_has_no_price(cli, tmp_path):
    """Nobody knows the activation of toy-gpt's two layers; at the smallest peak, one of them at least is run again."""
    path = tmp_path / "unknown.step.jsonl"
    cli("capture", "toy-gpt", "--batch", "2", "-o", path)
    path.write_text(path.read_text().replace('"aten.gelu.default"', '"mine.magic.default"'))
    whole = cli.json("plan", path, "--device", "cpu", "--budget", "100%")
    (unknown,) = whole["unpriced"]
    assert (unknown["op"], unknown["count"]) == ("mine.magic.default", 2)
    budget = f"{whole['smallest_peak_bytes']}B"
    arguments = ("plan", path, "--device", "cpu", "--budget", budget, "-o", tmp_path / "plan.json")
    found = cli.json(*arguments)
    (again,) = found["recomputed_unpriced"]
    assert again["op"] == "mine.magic.default" and 1 <= again["count"] <= 2
    assert again["bytes"] == unknown["bytes"] // 2 * again["count"]
    assert (found["recompute"]["unpriced_ops"], found["recompute"]["unpriced_bytes"]) == (again["count"], again["bytes"])
    for command in (arguments, ("max", path, "--device", "cpu", "--of", "budget")):
        text = cli(*command).stdout
        assert f"recomputes {again['count']} op" in text and "without a price" in text
    assert json.loads((tmp_path / "plan.json").read_text())["unpriced"] == [["mine.magic.default", again["count"], again["bytes"]]]
    assert cli("verify", path, tmp_path / "plan.json").returncode == 0


def test_times_carry_an_interval(cli):
    data = cli.json("plan", "gpt2", "--batch", "8", "--device", "t4", "--budget", "60%")
    for total in (data["recompute"], data["step_ops"]):
        assert 0 < total["low_ms"] < total["ms"] < total["high_ms"]
        assert total["modelled_ms"] == total["ms"]
    assert data["recompute"]["ms"] == data["recompute_ms"]
    assert data["step_ops"]["ms"] == data["step_ops_ms"]


def _checkpointed(text):
    """The rows of the table: names with their calls and what each takes in ms."""
    unit = {"ps": 1e-9, "ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}
    rows = []
    for line in text.split("\ncheckpointed\n")[1].split("\n\n")[0].splitlines()[1:-1]:
        name, calls, _, each, of_each, *_ = line.split()
        rows.append((name, int(calls), float(each) * unit[of_each]))
    return rows


@pytest.mark.parametrize(
    ("model", "budget", "names"),
    [
        # Names with two numbers, of which the first one varies.
        ("t5-small", "4836472422B", ["encoder.block.{0-5}.layer.1.DenseRelu...", "decoder.block.{0-5}.layer.2.DenseRelu..."]),
        ("bert-base", "5420115060B", ["bert.encoder"]),
        # The same module on smaller and smaller images takes less and less: these are not equal.
        ("unet", "2838596096B", None),
    ],
)
def test_the_rows_are_of_equal_layers_and_add_up(cli, model, budget, names):
    options = ["plan", model, "--device", "t4", "--batch", "8", "--budget", budget]
    rows = _checkpointed(cli(*options).stdout)
    found = cli.json(*options)
    assert sum(calls for _, calls, _ in rows) == found["units"]
    assert sum(calls * each for _, calls, each in rows) == pytest.approx(found["recompute_ms"], rel=0.005)  # three digits
    if names:
        assert [name for name, _, _ in rows] == names
    else:
        pools = [each for name, _, each in rows if name == "pool"]
        assert len(pools) == 3 and pools == sorted(pools, reverse=True) and pools[0] > pools[2]


def test_the_largest_budget(cli, example):
    assert cli.json("plan", example, "--device", "cpu", "--budget", "4096PiB")["termination"] == "fits"
    result = cli("plan", example, "--device", "cpu", "--budget", f"{2**62 + 1}B", check=False)
    assert result.returncode == 1 and "[--budget]" in result.stderr


@pytest.mark.parametrize("command", [["plan", "--budget", "2KiB"], ["max", "--of", "budget"]])
def test_what_is_read_is_not_overwritten(cli, root, example, tmp_path, command):
    step, device = tmp_path / "mine.step.jsonl", tmp_path / "cpu.json"
    for path, source in [(step, example), (device, "data/devices/cpu.json")]:
        path.write_bytes((root / source).read_bytes())
    (tmp_path / "link").symlink_to(step)
    name, *options = command
    for output in [step, device, tmp_path / "link"]:
        before = output.read_bytes()
        result = cli(name, str(step), "--device", str(device), *options, "-o", str(output), check=False)
        assert result.returncode == 2, result
        assert "this would overwrite a file that the command reads" in result.stderr
        assert output.read_bytes() == before
    assert cli(name, str(step), "--device", "cpu", *options, "-o", "", check=False).returncode == 2


def test_nothing_lies_beside_a_device_file(cli, example, tmp_path):
    """As with /dev/null, which the link leads to."""
    (tmp_path / "null").symlink_to("/dev/null")
    text = cli("plan", example, "--device", "cpu", "--budget", "2KiB", "-o", str(tmp_path / "null")).stdout
    assert "no certificate: the plan goes to no regular file" in text
    assert [path.name for path in tmp_path.iterdir()] == ["null"]


def test_a_plan_of_before_is_no_answer_when_nothing_fits(cli, example, tmp_path):
    plan, notes = tmp_path / "plan.json", tmp_path / "notes.json"
    options = ["plan", example, "--device", "cpu", "--budget"]
    cli(*options, "2KiB", "-o", str(plan))
    result = cli(*options, "1KiB", "-o", str(plan), check=False)
    assert result.returncode == 3 and f"the one of before was removed: {plan}" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["plan.certificate.json"]
    notes.write_text("{}")  # what is no plan is nobody's answer
    assert cli.json(*options, "1KiB", "-o", str(notes), code=3).get("removed") is None
    assert notes.read_text() == "{}"
    beside = tmp_path / "other.certificate.json"
    beside.write_text("{}")  # nor is what is no certificate
    cli(*options, "2KiB", "-o", str(tmp_path / "other.json"), "--no-certificate")
    assert beside.read_text() == "{}"


@pytest.mark.parametrize("pattern", ["transformer.h.*.mlp::aten.addmm", "transformer.h.*.mlp::addmm", "addmm", "*.mlp.c_*::aten.addmm.default"])
def test_an_op_pattern_means_what_runs_in_the_module(cli, tmp_path, pattern):
    """The products of an mlp run in its c_fc and c_proj."""
    path = tmp_path / "plan.json"
    cli("plan", *GPT2, "--units", "transformer.h.*.mlp", "--always-save", pattern, "--never-save", "aten.addmm", "-o", str(path))
    units = json.load(open(path))["units"]
    assert units and all(unit["saved"]["aten.addmm.default"] == [0, 1] for unit in units)
    never = [*GPT2, "--units", "transformer.h.*.mlp", "--never-save", pattern, "-o", str(path)]
    cli("plan", *never)
    units = json.load(open(path))["units"]
    assert units and all("aten.addmm.default" not in unit["saved"] for unit in units)


def test_an_op_pattern_means_no_other_module(cli, tmp_path):
    path = tmp_path / "plan.json"
    cli("plan", *GPT2, "--units", "transformer.h.?", "--never-save", "transformer.h.*.attn::addmm", "-o", str(path))
    # In a block: c_attn and c_proj of attention, then c_fc and c_proj of the mlp.
    saved = [unit["saved"].get("aten.addmm.default", []) for unit in json.load(open(path))["units"]]
    assert any(saved) and not any({0, 1} & set(ops) for ops in saved)
