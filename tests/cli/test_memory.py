"""tidemark memory: the peak of a step under a plan, and everything that adds up to it."""

import csv
import json
import shutil

import pytest

pytestmark = pytest.mark.fast

PLANS = ["none", "full", "every:2", "selective"]


@pytest.mark.parametrize("view", ["category", "module", "moment"])
def test_reads_as_it_was_accepted(cli, golden, example, view):
    result = cli("memory", example, "--plan", "selective", "--by", view)
    assert (result.returncode, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 100
    golden(f"memory_example_{view}.txt", result.stdout)


def test_json_reads_as_it_was_accepted(cli, golden, example):
    golden("memory_example.json", cli("memory", example, "--plan", "every:2", "--json").stdout)


@pytest.mark.parametrize("plan", PLANS)
def test_every_breakdown_adds_up_to_the_peak(cli, example, plan):
    found = cli.json("memory", example, "--plan", plan)
    peak = found["peak_bytes"]
    assert found["peak"]["bytes"] == peak
    assert sum(found["by_category"].values()) == peak
    assert sum(row["peak_share_bytes"] for row in found["modules"]) == peak
    assert sum(row["bytes"] for row in found["alive_at_peak"]) == peak
    assert sum(row["bytes"] for row in found["alive_at_end"]) == found["end_bytes"]
    assert all(moment["bytes"] <= peak for moment in found["runners_up"])


def test_depth_gathers_modules(cli, example):
    whole = cli.json("memory", example, "--depth", "0")["modules"]
    assert [row["module"] for row in whole] == ["", None]
    assert sum(row["peak_share_bytes"] for row in whole) == cli.json("memory", example)["peak_bytes"]


def test_switches_of_checkpoints(cli, example):
    def peak(*options):
        return cli.json("memory", example, "--plan", "full", *options)["peak_bytes"]

    assert peak() - peak("--no-rng") > 5056
    assert peak("--no-rng", "--no-early-stop") >= peak("--no-rng")


def test_csv_holds_every_change(cli, example, tmp_path):
    path = tmp_path / "changes.csv"
    found = cli.json("memory", example, "--plan", "full", "--csv", path)
    rows = list(csv.DictReader(path.open()))
    total = found["start_bytes"]
    for row in rows:
        total += int(row["bytes"]) * (1 if row["change"] == "alloc" else -1)
        assert total == int(row["total_bytes"])
    assert total == found["end_bytes"]
    assert max(int(row["total_bytes"]) for row in rows) == found["peak_bytes"]
    assert any(row["recomputed_call"] and row["block"] == "copy" for row in rows)


def workspace(path, *rows):
    first = {"tidemark": "workspace", "version": [1, 0], "device": "test", "rows": len(rows)}
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in [first, *rows]))


RELU = ["aten.relu.default(float32[2,16;16,1]){}", [[1, 100000], [0, 0]], True]


def test_workspace_beside_the_step_is_used_and_said(cli, example, root, tmp_path):
    step = tmp_path / "mine.step.jsonl"
    shutil.copy(root / example, step)
    table = tmp_path / "mine.step.jsonl.workspace.jsonl"
    workspace(table, RELU)
    result = cli("memory", step, "--json")
    assert result.stderr == f"tidemark: using the workspace table {table}\n"
    found = json.loads(result.stdout)
    assert found["by_category"]["workspace"] == 100000
    assert found["peak"]["op_name"] == "aten.relu.default"
    assert found["workspace"] == str(table)
    assert any("26 ops" in line for line in found["not_counted"])
    assert any("1 estimate" in line for line in found["not_counted"])
    # One that is named is used instead, and needs no message.
    other = tmp_path / "other.jsonl"
    workspace(other)
    result = cli("memory", step, "--workspace", other, "--json")
    assert result.stderr == ""
    assert json.loads(result.stdout)["by_category"]["workspace"] == 0


@pytest.mark.parametrize("arguments, says", [
    (["--plan", "evry:2"], "[--plan] there is no such policy"),
    (["--plan", "every:0"], "whole number above zero"),
    (["--workspace", "README.md"], "README.md"),
])
def test_bad_input_is_explained(cli, example, arguments, says):
    result = cli("memory", example, *arguments)
    assert (result.returncode, result.stdout) == (1, "")
    assert says in result.stderr


def test_a_wrong_view_is_a_wrong_command_line(cli, example):
    assert cli("memory", example, "--by", "colour").returncode == 2


def test_what_the_device_must_have(cli, example):
    # Thirteen blocks of at most 512 B are alive at most: they fit into one small segment of 2 MiB.
    plain = cli.json("memory", example)
    assert (plain["allocator"], plain["reserved_bytes"], plain["device_bytes"]) == ("exact", None, plain["peak_bytes"])
    rounded = cli.json("memory", example, "--allocator", "rounded")
    assert all(row["bytes"] % 512 == 0 for row in rounded["alive_at_peak"])
    assert rounded["peak_bytes"] == 512 * len(rounded["alive_at_peak"])
    for model in ("caching", "expandable"):
        found = cli.json("memory", example, "--allocator", model, "--overhead", "1MiB")
        assert found["peak_bytes"] == rounded["peak_bytes"]
        assert (found["reserved_bytes"], found["overhead_bytes"], found["device_bytes"]) == (2 << 20, 1 << 20, 3 << 20)
    text = cli("memory", example, "--allocator", "caching", "--overhead", "1MiB").stdout
    assert "overhead, as declared" in text and "3,145,728 B" in text
    assert "on the device" not in cli("memory", example).stdout


def test_an_overhead_needs_a_unit_and_has_an_end(cli, example):
    result = cli("memory", example, "--overhead", "5")
    assert (result.returncode, result.stdout) == (1, "")
    assert "has no unit" in result.stderr
    result = cli("memory", example, "--overhead", "8191PiB", "--allocator", "caching")
    assert result.returncode == 0
    result = cli("memory", example, "--overhead", "9223372036854775807B")
    assert (result.returncode, result.stdout) == (1, "")
    assert "does not fit 63 bits" in result.stderr


def test_a_device_brings_its_allocator_overhead_and_memory(cli, example):
    found = cli.json("memory", example, "--device", "t4")
    assert (found["device"], found["allocator"], found["overhead_bytes"]) == ("t4", "caching", 500 << 20)
    assert found["device_memory_bytes"] == 16_000_000_000
    text = cli("memory", example, "--device", "t4", "--overhead", "15.999GB").stdout
    # One small segment of 2,097,152 B beside 15,999,000,000 B.
    assert "memory of t4" in text and "too little by" in text and "1,097,152 B" in text
    own = cli.json("memory", example, "--device", "cpu")
    assert (own["allocator"], own["device_bytes"]) == ("exact", own["peak_bytes"])


def test_sizes_are_rounded_as_the_device_does(cli, example, root, tmp_path):
    """Each block of the example has at most 512 B: 4,096 B each on a device with such pages."""
    file = json.loads((root / "data/devices/t4.json").read_text())
    file["allocator_rounding_bytes"][0] = 4096
    path = tmp_path / "pages.json"
    path.write_text(json.dumps(file))
    found = cli.json("memory", example, "--allocator", "rounded", "--device", path)
    assert {row["bytes"] for row in found["alive_at_peak"]} == {4096}
    assert found["peak_bytes"] == 4096 * len(found["alive_at_peak"])
    # PyTorch's cache has a rounding of its own.
    cached = cli.json("memory", example, "--allocator", "caching", "--device", path)
    assert cached["peak_bytes"] == cli.json("memory", example, "--allocator", "rounded")["peak_bytes"]


def test_a_plan_file_says_what_is_checkpointed(cli, example):
    plan = json.load(open("examples/plans/mlp.json"))
    found = cli.json("memory", example, "--plan", "examples/plans/mlp.json")
    assert found["peak_bytes"] == plan["predicted"]["peak_bytes"]
    assert found["plan"]["policy"] == "examples/plans/mlp.json" and len(found["plan"]["units"]) == len(plan["units"])
    result = cli("memory", example, "--plan", "examples/plans/mlp.json", "--no-rng")
    assert result.returncode == 2 and "leave out --no-early-stop and --no-rng" in result.stderr
    result = cli("memory", "toy-gpt", "--plan", "examples/plans/mlp.json")
    assert (result.returncode, result.stdout) == (1, "")
    assert cli("memory", example, "--plan", "nowhere.json").returncode == 1


def model_step(cli, *options):
    return json.loads(cli("memory", "toy-gpt", *options, "--json").stdout)


def test_a_model_is_run_as_asked(cli):
    small, large = model_step(cli, "--batch", "1"), model_step(cli, "--batch", "4")
    assert small["start_bytes"] < large["start_bytes"]  # the batch is there from the start
    assert small["peak_bytes"] < large["peak_bytes"]


def test_a_model_runs_the_kernels_of_the_device(cli):
    # On CUDA the optimizer works on lists, and every allocation is rounded to 512 B.
    assert "_foreach_" in cli("inspect", "toy-gpt", "--target", "cuda", "--dump").stdout
    assert "_foreach_" not in cli("inspect", "toy-gpt", "--dump").stdout
    assert model_step(cli, "--device", "t4")["peak"] == model_step(cli, "--target", "cuda", "--allocator", "caching")["peak"]
    assert model_step(cli, "--device", "t4", "--target", "cpu")["peak"] != model_step(cli, "--device", "t4")["peak"]


@pytest.mark.parametrize("command", [["memory"], ["inspect"], ["time", "--device", "t4"]])
def test_options_of_models_do_not_suit_a_file(cli, example, command):
    done = cli(*command, str(example), "--batch", "2")
    assert done.returncode == 1
    assert "[--batch] the option is for models" in done.stderr
