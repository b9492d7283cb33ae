"""tidemark inspect. The numbers of the example follow from what it records:

Sequential(Linear(8, 16), ReLU(), Linear(16, 4)), mse_loss, SGD, a batch of 2, all float32 (4 bytes each).
"""

import json
import re
import unicodedata

import pytest

pytestmark = pytest.mark.fast

# weight and bias of both layers: 8*16 + 16 + 16*4 + 4 = 212 floats
PARAMETER_BYTES = 4 * (8 * 16 + 16 + 16 * 4 + 4)
# x is 2x8 and y is 2x4: 24 floats
INPUT_BYTES = 4 * (2 * 8 + 2 * 4)
# hidden, active and their gradients are 2x16 each; out and its gradient are 2x4 each; mse_loss squares 2x4 numbers into
# the storage of the loss before it is one number, whose gradient is one: 4*32 + 2*8 + 8 + 1 = 153 floats
PLAIN_BYTES = 4 * (4 * 2 * 16 + 2 * 2 * 4 + 2 * 4 + 1)
# Autograd keeps active (2x16, for ReLU and for the second layer) and out (2x4, for the loss); x, y and the second
# weight, which it keeps too, are inputs and parameters.
SAVED_BYTES = 4 * (2 * 16 + 2 * 4)
SAVES = 6  # x | active | active, second weight | out, y

OPS = {
    "forward": 5,  # t, addmm | relu | t, addmm
    "loss": 1,  # mse_loss
    # ones_like, mse_loss_backward | second layer: t, mm (for its input), t, mm, t, sum, view, t | threshold_backward |
    # first layer: t, mm, t, sum, view, t
    "backward": 2 + 8 + 1 + 6,
    "optimizer": 4,  # one add_ for each parameter
}
STORAGES = {"parameter": 4, "input": 2, "gradient": 8, "plain": 8}  # gradients: of the last step and of this one
# Each op makes one tensor; 4 parameters, x and y are there before.
TENSORS = 27 + 6
EVENTS = (
    4  # phases
    + 2 * 4  # enter and exit of 4 calls
    + 2 * 27  # begin and end of every op
    + 8 + 4  # allocations of plain storages and of this step's gradients
    + 8 + 4  # frees of plain storages and of the last step's gradients
    + 4 * SAVES  # pack, unpack, drop, release
    + 2 * 4  # start and end of 4 nodes
)


def columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def test_the_example_is_summarised_as_it_was_accepted(cli, example, golden):
    text = cli("inspect", example).stdout
    golden("inspect_example.txt", text)
    lines = text.splitlines()
    assert len(lines) <= 40, "more than one screen"
    assert max(map(columns, lines)) <= 100
    assert not any(line.endswith(" ") for line in lines)


def test_the_example_as_json(cli, example, golden):
    result = cli("inspect", example, "--json")
    golden("inspect_example.json", result.stdout)
    summary = json.loads(result.stdout)
    assert summary["file"] == example
    assert summary["modules"] == 4  # Sequential and its three children
    assert summary["calls"] == 4
    assert summary["ops"] == sum(OPS.values()) == 27
    assert summary["tensors"] == TENSORS
    assert summary["storages"] == sum(STORAGES.values())
    assert summary["events"] == EVENTS
    assert summary["saves"] == SAVES
    assert summary["saved_bytes"] == SAVED_BYTES
    assert {row["kind"]: row["ops"] for row in summary["passes"]} == OPS
    assert all(row["passes"] == 1 for row in summary["passes"])
    assert {row["role"]: row["storages"] for row in summary["roles"]} == STORAGES
    assert {row["role"]: row["bytes"] for row in summary["roles"]} == {
        "parameter": PARAMETER_BYTES, "input": INPUT_BYTES, "gradient": 2 * PARAMETER_BYTES, "plain": PLAIN_BYTES}
    assert {row["role"]: row["resident_bytes"] for row in summary["roles"]} == {
        "parameter": PARAMETER_BYTES, "input": INPUT_BYTES, "gradient": PARAMETER_BYTES, "plain": 0}


def test_json_agrees_with_the_text(cli, example):
    text = cli("inspect", example, "--ops", "100", "--largest", "100").stdout
    summary = cli.json("inspect", example, "--largest", "100")
    squeezed = re.sub(" +", " ", text)
    assert f"fingerprint {summary['fingerprint']}\n" in squeezed
    for key, value in summary["meta"].items():
        assert f" {key} {value}\n" in squeezed
    for noun in ("modules", "calls", "ops", "tensors", "storages", "events"):
        assert f"{summary[noun]} {noun}" in squeezed
    assert f"{summary['saves']} saves by autograd, holding {summary['saved_bytes']} B" in squeezed
    for row in summary["passes"]:
        assert f"{row['kind']}: {row['ops']} op" in squeezed
    for row in summary["op_counts"]:
        assert f" {row['count']} {row['name']}\n" in squeezed
    assert len(summary["largest"]) == summary["storages"]
    for row in summary["largest"]:
        description = row["description"] or "there at the start"
        assert f" {row['bytes']} B s{row['storage']} {row['role']} {description}\n" in squeezed
    for line in summary["missing"]:
        assert f"  {line}\n" in text


def test_the_largest_storages_say_what_they_are(cli, example):
    rows = cli.json("inspect", example)["largest"]
    # The first weight, 16*8 floats, and its gradients of the last step and of this one; then the second, 4*16 floats.
    assert [row["bytes"] for row in rows] == [4 * 16 * 8] * 3 + [4 * 4 * 16] * 2
    assert [(row["role"], row["description"]) for row in rows] == [
        ("parameter", "0.weight"), ("gradient", "of 0.weight"), ("gradient", "aten.mm.default in 0"),
        ("parameter", "2.weight"), ("gradient", "of 2.weight")]


@pytest.mark.parametrize("shown, folded", [(0, (27, 11)), (1, (18, 10)), (10, (1, 1)), (11, None), (999, None)])
def test_kinds_of_ops_beyond_n_are_folded(cli, example, shown, folded):
    # 27 ops of 11 kinds; the most frequent is t: 2 in forward, 4 in the second layer's backward, 3 in the first's.
    text = cli("inspect", example, "--ops", str(shown)).stdout
    section = re.search(r"ops by kind\n(.*?)\n\n", text, re.DOTALL).group(1).splitlines()
    rest = [line.strip() for line in section if " and " in line]
    if folded:
        assert re.sub(" +", " ", rest[0]) == f"{folded[0]} and {folded[1]} other{'' if folded[1] == 1 else 's'}"
    assert len(rest) == (1 if folded else 0)
    assert len(section) - len(rest) == min(shown, 11)
    assert shown == 0 or re.sub(" +", " ", section[0]) == " 9 aten.t.default"


@pytest.mark.parametrize("count", [0, 1, 22, 1000])
def test_n_storages_are_listed(cli, example, count):
    assert len(cli.json("inspect", example, "--largest", str(count))["largest"]) == min(count, 22)
    text = cli("inspect", example, "--largest", str(count)).stdout
    assert len(re.findall(r"^ +\d+ B  s\d+ ", text, re.MULTILINE)) == min(count, 22)
    assert ("largest storages" in text) == (count > 0)


def test_the_last_of_repeated_options_counts(cli, example):
    assert cli("inspect", example, "--ops=3", "--ops", "4").stdout == cli("inspect", example, "--ops", "4").stdout


def test_the_dump_reads_as_it_was_accepted(cli, example, golden):
    text = cli("inspect", "--dump", example).stdout
    golden("inspect_example_dump.txt", text)
    assert cli.json("inspect", "--dump", example)["dump"] == text
    assert "dump" not in cli.json("inspect", example)


def zstd_frame(data: bytes) -> bytes:
    """A zstd frame (RFC 8878) of one block that is not compressed: any zstd reader takes it."""
    assert len(data) < 128 * 1024  # the largest block
    one_segment_with_4_bytes_of_size = b"\xa0"
    last_raw_block = (len(data) << 3 | 1).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd" + one_segment_with_4_bytes_of_size + len(data).to_bytes(4, "little") + last_raw_block + data


@pytest.mark.parametrize("name", ["example.step.jsonl.zst", "no_matter_the_name"])
def test_a_compressed_step_is_read_too(cli, example, root, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(zstd_frame((root / example).read_bytes()))
    assert cli.json("inspect", path)["fingerprint"] == cli.json("inspect", example)["fingerprint"]


def test_a_pipe_is_read_too(cli, example):
    result = cli.shell(f"build/tidemark validate <(cat {example})")
    assert (result.returncode, result.stderr) == (0, "")
    assert "valid step, 27 ops" in result.stdout


def test_long_names_are_cut_to_100_columns(cli, step, tmp_path):
    step.sections["meta"] += [["key " + "k" * 300, "v" * 300], ["prose", "word " * 300], ["wide", "模型" * 300]]
    step.rename("aten.t.default", "aten." + "t" * 300)
    step.rename("weight", "重み" * 100)
    text_id = step.string("a long note: " + "lorem ipsum " * 60 + "x" * 300)
    step.sections["notes"].append([step.string("imitated"), text_id, None])
    path = tmp_path / "long.step.jsonl"
    path.write_text(step.text())
    lines = cli("inspect", path).stdout.splitlines()[1:]  # the first is the path, which may be as long as it likes
    assert max(map(columns, lines)) <= 100
    assert sum("..." in line for line in lines) >= 5
    assert sum("lorem ipsum" in line for line in lines) > 1, "prose is wrapped, not cut"
    summary = cli.json("inspect", path)  # nothing is cut here
    assert summary["meta"]["wide"] == "模型" * 300
    assert summary["op_counts"][0]["name"] == "aten." + "t" * 300


def test_long_lists_are_folded_in_the_text_only(cli, step, tmp_path):
    step.sections["meta"] = [[f"key{i}", "value"] for i in range(30)]
    kind = step.string("imitated")
    for i in range(30):
        step.sections["notes"].append([kind, step.string(f"note {i}"), i % 27])
    path = tmp_path / "notes.step.jsonl"
    path.write_text(step.text())
    text = cli("inspect", path).stdout
    assert len(text.splitlines()) <= 60
    assert "\n  and 20 others\n" in text  # 30 keys, 10 of them shown
    assert "\n  and 22 others\n" in text  # 30 notes, no source lines, no workspace: 32, 10 of them shown
    summary = cli.json("inspect", path)
    assert len(summary["meta"]) == 30
    assert len(summary["missing"]) == 32


def test_a_step_without_anything_is_summarised_too(cli, step, tmp_path):
    step.sections = {name: [] for name in step.sections}
    path = tmp_path / "empty.step.jsonl"
    path.write_text(step.text())
    text = cli("inspect", path).stdout
    assert "0 modules, 0 calls, 0 ops, 0 tensors, 0 storages, 0 events" in text
    assert "  passes       none\n" in text
    assert "no backward pass is recorded" in text
    assert cli.json("inspect", path)["largest"] == []
