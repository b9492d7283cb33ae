"""tidemark time: how long a step takes on a device, and what adds up to it."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.fast

DEVICES = Path(__file__).resolve().parents[2] / "data/devices"


@pytest.mark.parametrize("view", [[], ["--by", "op"], ["--by", "module"]])
def test_reads_as_it_was_accepted(cli, golden, example, view):
    result = cli("time", example, "--device", "a100-80-sxm", *view)
    assert (result.returncode, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 100
    golden(f"time_example_{view[-1] if view else 'kind'}.txt", result.stdout)


def test_json_reads_as_it_was_accepted(cli, golden, example):
    golden("time_example.json", cli("time", example, "--device", "cpu", "--json").stdout)


@pytest.mark.parametrize("device", ["h100-sxm", "t4", "mi300x", "cpu"])
def test_every_breakdown_adds_up_to_the_sum(cli, device):
    found = cli.json("time", "bert-base", "--device", device, "--seq", "64", "--depth", "1")
    total = found["sum"]["ms"]
    assert total > 0
    assert sum(row["ms"] for row in found["by_op"]) == pytest.approx(total)
    assert sum(part["sum"]["ms"] for part in found["passes"].values()) == pytest.approx(total)
    assert sum(part["step_ms"] for part in found["passes"].values()) == pytest.approx(found["step_ms"])
    roots = [row["ms"] for row in found["by_module"] if row["module"] in ("", None)]
    assert sum(roots) == pytest.approx(total)
    assert found["sum"]["low_ms"] < total < found["sum"]["high_ms"]
    assert found["tokens"] == 64
    assert found["tokens_per_s"] == pytest.approx(64e3 / found["step_ms"])
    assert found["unpriced"] == []
    assert len(found["most_expensive"]) == 20


def test_a_faster_device_is_faster(cli):
    def step(device, *options):
        return cli.json("time", "gpt2", "--device", device, "--batch", "8", "--form", "fused", *options)

    assert step("h100-sxm", "--dtype", "bfloat16")["step_ms"] < step("a100-80-sxm", "--dtype", "bfloat16")["step_ms"]
    assert step("a100-80-sxm", "--dtype", "bfloat16")["step_ms"] < step("a100-80-sxm")["step_ms"]
    assert 0 < step("a100-80-sxm")["mfu"] < 1


def test_a_device_file_of_ones_own_with_measured_ops(cli, example, tmp_path):
    file = json.loads((DEVICES / "t4.json").read_text())
    key = "aten.relu.default(float32[2,16;16,1]){}"
    file["measured"] = {"source": "t4", "ops": [[key, 5000000, 10], ["checkpoint region", 1000, 0]]}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(file))
    found = cli.json("time", example, "--device", path)
    relu = next(row for row in found["by_op"] if row["op"] == "aten.relu.default")
    assert found["checkpoint_region_ms"] == 0.001
    assert relu["ms"] == 5  # 5,000,000 ns
    assert found["sum"]["measured_ms"] == 5
    file["measured"]["ops"] *= 2
    path.write_text(json.dumps(file))
    result = cli("time", example, "--device", path)
    assert (result.returncode, result.stdout) == (1, "")
    assert "the op is listed twice" in result.stderr


def test_ops_without_a_price_are_listed(cli, step, tmp_path):
    step.rename("aten.relu.default", "mine.relu.default")
    path = tmp_path / "a.step.jsonl"
    path.write_text(step.text())
    found = cli.json("time", path, "--device", "t4")
    assert [(row["op"], row["count"]) for row in found["unpriced"]] == [("mine.relu.default", 1)]
    assert found["unpriced"][0]["bytes"] > 0
    assert "mine.relu.default" in cli("time", path, "--device", "t4").stdout.split("without a price, counted")[1]


def test_an_unknown_device_is_an_error_with_near_names(cli, example):
    result = cli("time", example, "--device", "h100-sxn")
    assert (result.returncode, result.stdout) == (1, "")
    assert "h100-sxm" in result.stderr


def test_a_step_that_takes_no_time_has_no_rate(cli, step, tmp_path):
    """Only ops that nobody can price, on a device that is its own host."""
    for name in ("addmm", "mm", "mse_loss", "mse_loss_backward", "ones_like", "relu", "t", "threshold_backward", "view"):
        step.rename(f"aten.{name}.default", f"mine.{name}.default")
    step.rename("aten.add_.Tensor", "mine.add_.Tensor")
    step.rename("aten.sum.dim_IntList", "mine.sum.default")
    path = tmp_path / "a.step.jsonl"
    path.write_text(step.text())
    found = cli.json("time", path, "--device", "cpu")
    assert found["step_ms"] == 0, found["by_op"]
    assert found["samples_per_s"] is None
    assert "/s " not in cli("time", path, "--device", "cpu").stdout


def test_tokens_of_all_micro_batches_count(cli):
    """Two micro-batches of 3 x 64 tokens."""
    found = cli.json("time", "gpt2", "--device", "t4", "--seq", "64", "--batch", "3", "--micro-batches", "2")
    assert found["tokens"] == 384
    assert found["tokens_per_s"] == pytest.approx(384e3 / found["step_ms"])


def test_only_a_device_with_a_host_beside_it_overlaps(cli, example):
    assert "host and device overlapped" in cli("time", example, "--device", "t4").stdout
    assert "overlapped" not in cli("time", example, "--device", "cpu").stdout


def test_every_total_carries_an_interval(cli):
    found = cli.json("time", "bert-base", "--device", "h100-sxm", "--seq", "64", "--depth", "1")
    assert found["step_low_ms"] <= found["step_ms"] <= found["step_high_ms"]
    for part in found["passes"].values():
        assert part["step_low_ms"] <= part["step_ms"] <= part["step_high_ms"]
    for row in found["by_module"] + found["by_op"]:
        assert row["low_ms"] < row["ms"] < row["high_ms"]
        assert row["measured_ms"] + row["modelled_ms"] == pytest.approx(row["ms"])
