"""tidemark.plan, its result, and plan files."""

import copy
import fnmatch
import json
import pickle
import subprocess
import sys

import pytest

import tidemark

pytestmark = pytest.mark.fast


# The worked example of docs/how_memory_is_counted.md: the peak is in the gradients, 1,956 B, and no plan lowers it.
def test_the_example_fits_or_cannot(example):
    fits = tidemark.plan(example, 1956)
    assert (fits.termination, fits.peak_bytes, fits.recompute_ms, len(fits.plan)) == ("fits", 1956, 0, 0)
    assert (fits.smallest_peak_bytes, fits.unplanned_peak_bytes, fits.start_bytes) == (1956, 1956, 1792)
    cannot = tidemark.plan(example, 1955)
    assert cannot.termination == "infeasible" and cannot.plan is None and cannot.smallest_peak_bytes == 1956


def test_budgets_are_texts_percentages_or_bytes(example):
    assert tidemark.plan(example, "2KiB").budget_bytes == 2048
    assert tidemark.plan(example, "50%").budget_bytes == tidemark.find_device("cpu").memory_bytes // 2
    assert tidemark.plan(example, 4000, reserve="1kB").reserve_bytes == 1000
    with pytest.raises(tidemark.Error, match="unit"):
        tidemark.plan(example, "2048")
    with pytest.raises(tidemark.Error, match="no budget"):
        tidemark.plan(example, 3.5)
    with pytest.raises(tidemark.Error, match="when_needed"):
        tidemark.plan(example, 4000, rng="sometimes")
    with pytest.raises(tidemark.Error):
        tidemark.plan(example, 4000, units=["no.such.module"])


# Of a captured step on a CPU, 4 KiB of the budget are left for numbers that no hook sees; the plan file says so.
def test_captured_steps_have_a_reserve(example):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())
    step = tidemark.capture_batch(model, torch.ones(4, 8), lambda y: y.sum())
    result = tidemark.plan(step, "1MiB")
    assert result.reserve_bytes == result.plan.reserve_bytes == json.loads(result.plan.to_json())["reserve_bytes"] == 4096
    needed = result.smallest_peak_bytes
    assert tidemark.plan(step, needed + 4096).plan is not None and tidemark.plan(step, needed + 4095).plan is None
    assert tidemark.plan(step, needed, reserve=0).plan is not None
    assert tidemark.plan(step, 1).termination == "infeasible" and tidemark.plan(step, 1).reserve_bytes == 4096
    assert tidemark.plan(example, 4000).reserve_bytes == 0  # a step of a file


def test_plans_are_pickled(gpt):
    plan = tighter(gpt.step).plan
    for again in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert again == plan and again.hash == plan.hash and len(again) == len(plan)
    with pytest.raises(tidemark.Error, match="does not know its step"):
        pickle.dumps(tidemark.Plan(gpt.full.units))


def tighter(step):
    """The plan in the middle between the smallest peak and none."""
    loose = tidemark.plan(step, 1 << 50)
    return tidemark.plan(step, (loose.smallest_peak_bytes + loose.unplanned_peak_bytes) // 2)


def test_a_plan_is_what_its_replay_and_the_policies_say(gpt):
    result = tighter(gpt.step)
    assert result.termination in ("optimal", "feasible")
    assert tidemark.simulate(gpt.step, result.plan).peak_bytes == result.peak_bytes <= result.budget_bytes
    assert result.plan.check(gpt.step) == []
    by_name = {row["policy"]: row for row in result.policies}
    assert by_name["none"]["recompute_ms"] == 0 and not by_name["none"]["fits"]
    assert all(result.recompute_ms <= row["recompute_ms"] for row in result.policies if row["fits"])
    assert result.bound_ms <= result.recompute_ms


def test_a_plan_file_is_the_same_plan(gpt, tmp_path):
    plan = tighter(gpt.step).plan
    path = tmp_path / "plan.json"
    plan.save(path)
    alone = tidemark.Plan.load(path)
    with_step = tidemark.Plan.load(path, gpt.step)
    assert alone == plan and with_step == plan and with_step.units == plan.units
    assert alone.hash == plan.hash == json.loads(path.read_text())["hash"]
    assert (alone.peak_bytes, alone.budget_bytes, alone.fingerprint) == (plan.peak_bytes, plan.budget_bytes, plan.fingerprint)
    assert tidemark.simulate(gpt.step, alone).peak_bytes == plan.peak_bytes
    with pytest.raises(tidemark.Error, match="Plan.load"):
        alone.units
    code = f"import tidemark; print(tidemark.Plan.load({str(path)!r}).hash)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip() == plan.hash


def test_plans_by_hand_can_be_saved_when_they_know_their_step(gpt, example, tmp_path):
    plan = tidemark.Plan(gpt.full.units, step=gpt.step)
    plan.save(tmp_path / "plan.json")
    assert tidemark.Plan.load(tmp_path / "plan.json", gpt.step) == gpt.full
    assert plan.peak_bytes == tidemark.simulate(gpt.step, gpt.full).peak_bytes
    with pytest.raises(tidemark.Error, match="step=step"):
        tidemark.Plan(gpt.full.units).save(tmp_path / "other.json")
    with pytest.raises(tidemark.Error, match="another step"):
        tidemark.Plan.load(tmp_path / "plan.json", example)


def test_units_name_ops_that_run_in_them(gpt):
    content = json.loads(gpt.selective.to_json())
    assert [unit["module"] for unit in content["units"]] == ["blocks.0", "blocks.1", "blocks.2"]
    assert len(content["bodies"]) == 1  # equal layers share it
    body = content["bodies"][0]
    assert body["inputs"] == [["float32", [8, 32, 32]]]
    assert body["ops"][0] == "aten.native_layer_norm.default"
    assert content["calls"] == {"blocks.0": [1], "blocks.1": [1], "blocks.2": [1]}
    unit = content["units"][0]
    # The last tensor that the block saves is dropout's mask for the product: the sum after it is not run again.
    assert body["ops"][unit["reach"] :][-1] == "aten.add.Tensor"
    assert ["head.weight", "float32", [64, 32], True] in content["model"]["parameters"]


def test_fit_knows_the_gpu_by_its_drivers_name(monkeypatch):
    torch = pytest.importorskip("torch")
    from types import SimpleNamespace

    from tidemark._apply.fit import _device_of

    on_gpu = SimpleNamespace(parameters=lambda: iter([SimpleNamespace(device=torch.device("cuda", 0))]))
    for name, expected in (("NVIDIA A100-SXM4-80GB", "a100-80-sxm"), ("NVIDIA H100 80GB HBM3", "h100-sxm")):
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device, name=name: name)
        assert _device_of(on_gpu) == expected
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Imaginary GPU 9000")
    with pytest.raises(tidemark.Error, match="no times of; expected a device, got Imaginary GPU 9000.*tidemark.devices"):
        _device_of(on_gpu)
    assert _device_of(torch.nn.Linear(2, 2)) == "cpu"


# docs/apply.md, "Changing a plan": patterns when planning, and a list by hand.
def test_patterns_choose_units_and_ops(gpt):
    loose = tidemark.plan(gpt.step, 1 << 50)
    budget = (loose.smallest_peak_bytes + loose.unplanned_peak_bytes) // 2

    def names(plan):
        return [unit["module"] for unit in json.loads(plan.to_json())["units"]]

    whole = tidemark.plan(gpt.step, budget, units=["blocks.*"], not_units=["blocks.*.*"]).plan
    assert names(whole) and all(name.count(".") == 1 for name in names(whole))
    without = tidemark.plan(gpt.step, budget, not_units=["blocks.*.mlp"]).plan
    assert names(without) and not any(name.endswith(".mlp") for name in names(without))
    keeping = tidemark.plan(gpt.step, budget, units=["blocks.?"], always_save=["blocks.*::aten._scaled_dot_product_*"]).plan
    for unit in json.loads(keeping.to_json())["units"]:
        assert any(name.startswith("aten._scaled_dot_product_") for name in unit["saved"])

    chosen = [call.id for call in gpt.step.calls if fnmatch.fnmatch(gpt.step.modules[call.module].fqn, "blocks.*.mlp")]
    by_hand = tidemark.Plan([(call, []) for call in chosen], step=gpt.step)
    assert by_hand.check(gpt.step) == [] and names(by_hand) == ["blocks.0.mlp", "blocks.1.mlp", "blocks.2.mlp"]
    assert by_hand.peak_bytes == tidemark.simulate(gpt.step, by_hand).peak_bytes < loose.unplanned_peak_bytes
