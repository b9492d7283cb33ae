"""tidemark verify: what it finds wrong with plans and certificates whose hashes fit."""

import json
import re

import pytest

pytestmark = pytest.mark.fast

GPT2 = ["gpt2", "--batch", "8", "--seq", "256"]
HASH = re.compile(r"changed after it was written; expected ([0-9a-f]{32})")


@pytest.fixture
def room(cli):
    """Half way between the smallest peak and that of plain training."""
    found = cli.json("plan", *GPT2, "--device", "t4", "--reserve", "0B", "--budget", "90%")
    return (found["smallest_peak_bytes"] + found["unplanned_peak_bytes"]) // 2


@pytest.fixture
def verify_changed(cli, tmp_path):
    """Verifies a plan file without its certificate, after a change that its hash goes along with."""

    def run(path, change):
        plan = json.loads(path.read_text())
        change(plan)
        changed = tmp_path / "changed.json"
        for _ in range(2):
            changed.write_text(json.dumps(plan))
            result = cli("verify", *GPT2, str(changed), "--target", "cuda", check=False)
            if not (found := HASH.search(result.stderr)):
                break
            plan["hash"] = found[1]
        return result

    return run


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda plan: plan["predicted"].update(recompute_ps=plan["predicted"]["recompute_ps"] + 1), "the file says that recomputing takes"),
        (lambda plan: plan["predicted"].update(recompute_ps=0, bound_ps=0), "the file says that recomputing takes 0 ps"),
        (lambda plan: plan["predicted"].update(smallest_peak_bytes=1), "plans reach a peak of 1 B"),
        (lambda plan: plan["predicted"].update(peak_bytes=1), "the file says a peak of 1 B"),
        (lambda plan: plan.update(termination="fits"), "the file says that the step fits without a plan"),
        (lambda plan: plan.update(unpriced=[["aten.mm.default", 3, 4]]), "without a price"),
    ],
)
def test_wrong_figures_are_named(cli, room, tmp_path, verify_changed, change, words):
    path = tmp_path / "plan.json"
    cli("plan", *GPT2, "--device", "t4", "--reserve", "0B", "--budget", f"{room}B", "-o", str(path))
    assert cli.json("verify", *GPT2, str(path), "--target", "cuda")["wrong_figures"] == []
    result = verify_changed(path, change)
    assert words in result.stdout, result
    assert result.returncode == 0  # the plan itself is as good as before


@pytest.mark.parametrize(("key", "word"), [("termination", "banana"), ("termination", "infeasible"), ("against", "banana")])
def test_unknown_words_are_refused(cli, room, tmp_path, verify_changed, key, word):
    path = tmp_path / "plan.json"
    cli("plan", *GPT2, "--device", "t4", "--reserve", "0B", "--budget", f"{room}B", "-o", str(path))
    result = verify_changed(path, lambda plan: plan.update({key: word}))
    assert result.returncode == 1
    assert f"{key}] this word is not known" in result.stderr


def test_the_device_rounds_not_the_certificate(cli, root, tmp_path):
    """On the device as it is everything fits; rounded up to GiBs nothing does."""
    device = json.loads((root / "data/devices/t4.json").read_text())
    device["allocator_rounding_bytes"][0] = 2**30
    path = tmp_path / "t4.json"
    path.write_text(json.dumps(device))
    made = cli("plan", *GPT2, "--device", str(path), "--budget", "90%", "-o", str(tmp_path / "plan.json"), check=False)
    assert made.returncode == 3
    check = ["verify", *GPT2, "--target", "cuda", "--certificate", str(tmp_path / "plan.certificate.json")]
    refused = cli(*check, check=False)
    assert refused.returncode == 1
    assert "rounded up to 1073741824 B, and the device rounds them up to 512 B" in refused.stdout
    assert "infeasible, confirmed" in cli(*check, "--device", str(path)).stdout


def test_reserved_bytes_are_what_such_a_plan_promises(cli, tmp_path, verify_changed):
    options = [*GPT2, "--device", "t4", "--against", "reserved", "--reserve", "0B"]
    ends = cli.json("plan", *options, "--budget", "90%")
    room = (ends["smallest_peak_bytes"] + ends["unplanned_peak_bytes"]) // 2
    path = tmp_path / "plan.json"
    made = cli.json("plan", *options, "--budget", f"{room}B", "-o", str(path))
    found = cli.json("verify", *GPT2, str(path), "--target", "cuda")
    assert found["holds"] and found["reserved_bytes"] == made["peak_bytes"] > found["peak_bytes"]
    assert "are reserved" in cli("verify", *GPT2, str(path), "--target", "cuda").stdout
    # One byte less than is reserved, which is still more than the tensors need.
    result = verify_changed(path, lambda plan: plan.update(budget_bytes=made["peak_bytes"] - 1))
    assert result.returncode == 1 and "does not hold" in result.stdout


def test_a_claim_is_of_the_plans_that_the_options_allow(cli, room, tmp_path):
    path = tmp_path / "plan.json"
    options = [*GPT2, "--device", "t4", "--reserve", "0B", "--units", "transformer.h.*", "--no-early-stop", "-o", str(path)]
    cli("plan", *options, "--budget", f"{room}B")
    check = ["verify", *GPT2, str(path), "--target", "cuda"]
    assert ", of plans with --units 'transformer.h.*' --no-early-stop\n" in cli(*check).stdout
    space = cli.json(*check)["certificate"]["space"]
    assert (space["units"], space["early_stop"], space["rng"]) == (["transformer.h.*"], False, "when_needed")
    path.unlink()
    cli("plan", *options[:-2], "--units", "transformer.h.0", "--budget", "1GiB", "-o", str(path), check=False)
    proof = tmp_path / "plan.certificate.json"
    text = cli("verify", *GPT2, "--target", "cuda", "--certificate", str(proof)).stdout
    assert "infeasible, confirmed" in text and "of plans with --units 'transformer.h.*' --units 'transformer.h.0'" in text


def test_times_of_an_unknown_device_are_not_checked(cli, root, room, tmp_path):
    device = json.loads((root / "data/devices/t4.json").read_text())
    device["name"] = "mine"
    (tmp_path / "mine.json").write_text(json.dumps(device))
    plan = tmp_path / "plan.json"
    cli("plan", *GPT2, "--device", str(tmp_path / "mine.json"), "--reserve", "0B", "--budget", f"{room}B", "-o", str(plan), "--no-certificate")
    check = ["verify", *GPT2, str(plan), "--target", "cuda"]
    assert "its times were not checked: the device mine is not known here" in cli(*check).stdout
    assert cli.json(*check, "--device", str(tmp_path / "mine.json"))["not_checked"] == ""


def test_a_plan_of_an_unknown_device_is_checked_without_its_certificate(cli, root, room, tmp_path):
    device = json.loads((root / "data/devices/t4.json").read_text()) | {"name": "mine"}
    (tmp_path / "mine.json").write_text(json.dumps(device))
    plan = tmp_path / "plan.json"
    cli("plan", *GPT2, "--device", str(tmp_path / "mine.json"), "--reserve", "0B", "--budget", f"{room}B", "-o", str(plan))
    check = ["verify", *GPT2, str(plan), "--target", "cuda"]
    text = cli(*check).stdout
    assert ": holds\n" in text and "nor was the certificate beside it" in text
    assert "optimal, confirmed" in cli(*check, "--device", str(tmp_path / "mine.json")).stdout
    named = cli(*check, "--certificate", str(tmp_path / "plan.certificate.json"), check=False)
    assert named.returncode == 1 and "--device FILE" in named.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda proof: proof["space"].update(units=["transformer.h.0.ln_1"]), "is a unit, which they leave out"),
        (lambda proof: proof["space"].update(early_stop=False), "stops its recompute at another place"),
        (lambda proof: proof.update(least_peak_bytes=5), "has a smallest peak"),
    ],
)
def test_a_claim_about_other_plans_is_none_about_this_one(cli, room, tmp_path, change, words):
    plan, proof = tmp_path / "plan.json", tmp_path / "plan.certificate.json"
    cli("plan", *GPT2, "--device", "t4", "--reserve", "0B", "--budget", f"{room}B", "-o", str(plan))
    claim = json.loads(proof.read_text())
    change(claim)
    for _ in range(2):
        proof.write_text(json.dumps(claim))
        result = cli("verify", *GPT2, str(plan), check=False)
        if not (found := HASH.search(result.stderr)):
            break
        claim["hash"] = found[1]
    assert result.returncode == 1 and words in result.stdout, result.stdout + result.stderr


def test_a_model_runs_the_kernels_of_the_plans_device(cli, room, tmp_path):
    path = tmp_path / "plan.json"
    cli("plan", *GPT2, "--device", "t4", "--reserve", "0B", "--budget", f"{room}B", "-o", str(path))
    assert "optimal, confirmed" in cli("verify", *GPT2, str(path)).stdout
    # Said otherwise, it is another step.
    other = cli("verify", *GPT2, str(path), "--target", "cpu", check=False)
    assert other.returncode == 1 and "the plan is of another step" in other.stderr
    cli("plan", *GPT2, "--device", "t4", "--budget", "1GiB", "-o", str(path), check=False)
    assert "infeasible, confirmed" in cli("verify", *GPT2, "--certificate", str(tmp_path / "plan.certificate.json")).stdout
