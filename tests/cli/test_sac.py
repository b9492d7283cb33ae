"""tidemark sac: the tables of one module, by our rules and by those of PyTorch's estimator, and the exported file."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.fast

DEVICES = Path(__file__).resolve().parents[2] / "data/devices"


@pytest.mark.parametrize("cost, device", [("tidemark", "a100"), ("reference-m", "a100-80-pcie"), ("reference-b", "h100-sxm"), ("reference-n", "b200")])
def test_totals_are_those_of_the_rows(cli, cost, device):
    data = cli.json("sac", "toy-gpt", "--module", "layers.0", "--device", device, "--cost", cost)
    assert data["total_bytes"] == sum(o["bytes"] for o in data["operators"])
    assert data["total_ms"] == pytest.approx(sum(o["ms"] for o in data["operators"]))
    assert data["rules"] == ("reference-m" if cost == "reference-n" else cost)
    members = [m for c in data["candidates"] for m in c["members"]] + data["stored"] + data["recomputed"]
    assert sorted(members) == list(range(len(data["operators"])))  # every op is in one group
    frontier = [(p["given_up_bytes"], p["recompute_ms"]) for p in data["frontier"]]
    assert frontier == sorted(set(frontier))
    assert frontier[-1][0] == data["total_bytes"]
    # The greedy order is one way among those that the frontier is the best of.
    given_up, cost_ms = 0, sum(data["operators"][i]["ms"] for i in data["recomputed"])
    for candidate in data["candidates"]:
        given_up, cost_ms = given_up + candidate["bytes"], cost_ms + candidate["ms"]
        assert min(ms for size, ms in frontier if size >= given_up) <= cost_ms + 1e-9


def test_the_text_fits_and_names_its_parts(cli):
    result = cli("sac", "toy-gpt", "--module", "layers.0", "--device", "a100")
    assert (result.returncode, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 100
    for part in ("layers.0: ", "given up in greedy order", "fitted: ", "frontier: "):
        assert part in result.stdout


def test_exports_what_pytorchs_planner_reads(cli, tmp_path):
    path = tmp_path / "modules.json"
    done = cli("sac", "toy-gpt", "--module", "", "--device", "a100-80-pcie", "--cost", "reference-m", "--export", path)
    assert done.returncode == 0, done.stderr
    info = json.loads(path.read_text())
    names = [stats["fqn"] for stats in info["mod_stats"]]
    assert names == info["mod_order"]["fw_pre_order"]
    assert sorted(info["mod_order"]["fw_post_order"]) == sorted(names)
    root = info["mod_stats"][0]
    assert root["param_per_module"] > 0 and root["fw_runtime_per_module"] > 0 and not root["is_leaf"]


@pytest.mark.parametrize("arguments, message", [
    (["--module", "layer.0", "--device", "a100"], 'no module of this name runs in the step; expected the full name of a '
     'module, "" for the whole model, got layer.0; try: the nearest is "layers.0"'),
    (["--module", "layers.0", "--device", "a1000"], "try: a100"),
    (["--module", "layers.0", "--device", "a1000", "--cost", "reference-m"], "try: a100"),
    (["--module", "nope", "--device", "a100"], 'try: the nearest is "norm"'),
    (["--module", "layers.0", "--device", "a100", "--call", "2"], "the module is not called so often; expected 1 to 1, got 2"),
])
def test_says_what_is_wrong(cli, arguments, message):
    result = cli("sac", "toy-gpt", *arguments)
    assert (result.returncode, result.stdout) == (1, "")
    assert message in result.stderr


def test_lists_what_has_no_price(cli, step, example, tmp_path):
    """An op that nobody knows is never free in silence; what moving its bytes may take widens the interval."""
    step.rename("aten.relu.default", "mine.magic.default")
    path = tmp_path / "unknown.step.jsonl"
    path.write_text(step.text())
    arguments = ("--module", "", "--device", "t4")
    known, unknown = cli.json("sac", example, *arguments), cli.json("sac", path, *arguments)
    assert known["unpriced"] == []
    assert [row["op"] for row in unknown["unpriced"]] == ["mine.magic.default"]
    assert unknown["sum"]["unpriced_ops"] == unknown["unpriced"][0]["count"] == 1
    assert unknown["sum"]["ms"] < known["sum"]["ms"] < unknown["sum"]["high_ms"]
    text = cli("sac", path, *arguments).stdout
    assert "; 1 op of 256 B without a price\n" in text and "without a price, counted as nothing" in text
    # It is given up by no point of the frontier, nor scored: relu's 128 bytes are kept.
    relu = next(i for i, o in enumerate(unknown["operators"]) if o["unpriced"])
    assert unknown["stored_unpriced"] == [relu] and all(relu not in c["members"] for c in unknown["candidates"])
    assert known["frontier"][-1]["given_up_bytes"] - unknown["frontier"][-1]["given_up_bytes"] == 128
    assert " free " not in text and "no price" in text
    assert "without a price" not in cli("sac", example, *arguments).stdout


def test_totals_carry_an_interval(cli):
    data = cli.json("sac", "toy-gpt", "--module", "layers.0", "--device", "a100")
    assert data["sum"]["low_ms"] < data["sum"]["ms"] < data["sum"]["high_ms"]
    assert data["sum"]["ms"] == pytest.approx(data["total_ms"])
    assert data["sum"]["modelled_ms"] == data["sum"]["ms"]
    text = cli("sac", "toy-gpt", "--module", "layers.0", "--device", "a100").stdout
    assert "; 0.0 % measured, 100.0 % modelled" in text
    # PyTorch's own estimators have none.
    assert cli.json("sac", "toy-gpt", "--module", "layers.0", "--device", "a100-80-pcie", "--cost", "reference-m")["sum"] is None


def test_reference_times_of_any_device(cli, tmp_path):
    """An alias stands for its device; a file's own figures go into the formula: half the bandwidth, no less time."""
    def times(device, cost):
        return [o["ms"] for o in cli.json("sac", "toy-gpt", "--module", "layers.0", "--device", device, "--cost", cost)["operators"]]

    assert times("h100", "reference-b") == times("h100-sxm", "reference-b")
    assert times("h100", "reference-n") == times("h100-sxm", "reference-n")
    file = json.loads((DEVICES / "t4.json").read_text())
    (tmp_path / "whole.json").write_text(json.dumps(file))
    file["bandwidth_bytes_per_s"][0] //= 2
    file["peak_flops"] = {key: [flops // 2, source] for key, (flops, source) in file["peak_flops"].items()}
    (tmp_path / "half.json").write_text(json.dumps(file))
    whole, half = (times(tmp_path / name, "reference-m") for name in ("whole.json", "half.json"))
    assert whole == times("t4", "reference-m")
    assert half == pytest.approx([2 * ms for ms in whole])


def test_each_call_of_a_module(cli):
    """With two micro-batches every module is called twice; calls alike cost alike."""
    arguments = ("sac", "toy-gpt", "--module", "layers.0", "--device", "a100", "--micro-batches", "2")
    first, second = cli.json(*arguments), cli.json(*arguments, "--call", "2")
    assert [(data["call"], data["calls"]) for data in (first, second)] == [(1, 2), (2, 2)]
    assert first["operators"][0]["op"] < second["operators"][0]["op"]
    assert first["total_bytes"] == second["total_bytes"]
    assert "  call 1 of 2; --call shows another\n" in cli(*arguments).stdout


def test_what_changes_buffers_can_be_run_again(cli):
    """Batch norm changes its statistics, which whoever runs it again restores; its result, which a relu changes in place, cannot
    be saved. So both always run again, and nothing of the block never does."""
    data = cli.json("sac", "resnet18", "--device", "t4", "--batch", "2", "--module", "layer1.0")
    names = [operator["name"] for operator in data["operators"]]
    norms = [i for i, name in enumerate(names) if name == "native_batch_norm"]
    assert len(norms) == 2 and data["operators"][norms[0]]["changes"] is None
    assert data["stored"] == []
    assert norms[0] in data["recomputed"]
    assert names[norms[0] + 1] == "relu_" and norms[0] + 1 in data["recomputed"]
