"""Reading, writing and looking at a Step."""

import gc
import json
import os
import pickle
import subprocess
import sys

import pytest

import tidemark
from tidemark import Error, Step

pytestmark = pytest.mark.fast


def broken(example: Step, before: str, after: str) -> str:
    text = example.text()
    assert text.count(before) == 1
    return text.replace(before, after)


# --- files ---


def test_what_is_saved_loads_as_an_equal_step_and_has_the_same_bytes(example, example_path, tmp_path):
    example.save(tmp_path / "copy.jsonl")
    assert (tmp_path / "copy.jsonl").read_bytes() == example_path.read_bytes()
    assert Step.load(tmp_path / "copy.jsonl") == example


def test_a_name_that_ends_in_zst_is_written_compressed(example, tmp_path):
    path = tmp_path / "step.jsonl.zst"
    example.save(path)
    assert path.read_bytes()[:4] == b"\x28\xb5\x2f\xfd"  # zstd's magic number
    assert Step.load(path) == example


def test_compressed_bytes_parse_too(example, tmp_path):
    example.save(tmp_path / "step.zst")
    assert Step.parse((tmp_path / "step.zst").read_bytes()) == example


class Somewhere:
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return str(self.path)


@pytest.mark.parametrize("kind", [str, Somewhere, lambda path: path])
def test_paths_may_be_strings_or_path_like(example, tmp_path, kind):
    path = kind(tmp_path / "näme with space.jsonl")
    example.save(path)
    assert Step.load(path) == example


def test_text_parses_from_str_and_bytes(example):
    assert Step.parse(example.text()) == example
    assert Step.parse(example.text().encode()) == example


def test_a_saved_file_is_what_the_shipped_one_is(example, example_path):
    assert example.text() == example_path.read_text()


# --- errors ---


def test_a_missing_file_is_an_io_error_with_its_path(tmp_path):
    with pytest.raises(Error) as caught:
        Step.load(tmp_path / "none.jsonl")
    assert caught.value.kind == "io"
    assert "none.jsonl" in str(caught.value)


def test_a_file_name_that_is_no_utf8_still_shows_in_the_error(tmp_path):
    with pytest.raises(Error, match=r"\\xff\.jsonl"):
        Step.load(os.fsencode(tmp_path) + b"/\xff.jsonl")


def test_a_folder_that_cannot_be_written_is_an_io_error_and_leaves_nothing(example, tmp_path):
    with pytest.raises(Error) as caught:
        example.save(tmp_path / "no such folder" / "step.jsonl")
    assert caught.value.kind == "io"
    assert list(tmp_path.iterdir()) == []


def test_an_error_is_a_value_error_whose_text_is_made_of_its_parts(example):
    text = broken(example, '[12,0,1,0,null,[1,4,6]', '[12,0,1,0,null,[1,4,600]')
    with pytest.raises(ValueError) as caught:
        Step.parse(text, name="mine.jsonl")
    error = caught.value
    assert type(error) is Error
    assert error.kind == "input"
    line = 1 + next(i for i, row in enumerate(text.splitlines()) if "600" in row)
    assert error.place == f"mine.jsonl, line {line}: ops[1].inputs[2]"
    assert error.problem and error.expected
    assert error.got == "600"
    assert str(error) == f"[{error.place}] {error.problem}; expected {error.expected}, got {error.got}"


def test_an_error_without_some_parts_has_them_empty():
    with pytest.raises(Error) as caught:
        Step.parse("")
    for part in ("place", "problem", "expected", "got", "remedy"):
        assert isinstance(getattr(caught.value, part), str)


def test_an_error_reaches_another_process_whole(example):
    with pytest.raises(Error) as caught:
        Step.parse(broken(example, '"forward"', '"foreward"'))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert vars(copy) == vars(caught.value)


def test_python_code_words_its_own_errors_the_same_way():
    from tidemark import _core

    with pytest.raises(Error) as caught:
        _core.fail("capture", "the step runs no backward", expected="backward()", got="none", remedy="call it")
    assert str(caught.value) == "[capture] the step runs no backward; expected backward(), got none; try: call it"


# --- the value ---


def test_equality_hash_and_fingerprint_follow_the_content(example):
    same = Step.parse(example.text())
    other = Step.parse(broken(example, '"reduction"', '"reductions"'))
    assert same == example and hash(same) == hash(example) and same.fingerprint == example.fingerprint
    assert other != example and other.fingerprint != example.fingerprint
    assert example != "a step"
    assert len(example.fingerprint) == 32 and int(example.fingerprint, 16)


def test_metadata_does_not_change_the_fingerprint(example):
    assert Step.parse(broken(example, "examples/build_a_step.cpp", "someone")).fingerprint == example.fingerprint


def test_repr_counts_and_dump_tells_the_story(example):
    assert repr(example) == f"<Step of 27 ops, 22 storages, {len(example.events)} events>"
    assert "aten.mse_loss_backward.default" in example.dump()


def test_summary_is_plain_data(example):
    summary = example.summary(largest_count=2)
    assert summary["fingerprint"] == example.fingerprint
    assert summary["meta"] == example.meta
    assert summary["ops"] == len(example.ops) == 27
    assert summary["passes"] == [
        {"kind": "forward", "passes": 1, "ops": 5},
        {"kind": "loss", "passes": 1, "ops": 1},
        {"kind": "backward", "passes": 1, "ops": 17},
        {"kind": "optimizer", "passes": 1, "ops": 4},
    ]
    assert summary["op_counts"][0] == {"name": "aten.t.default", "count": 9}
    parameters = next(row for row in summary["roles"] if row["role"] == "parameter")
    # (8 * 16 + 16 + 16 * 4 + 4) floats of 4 bytes
    assert parameters == {"role": "parameter", "storages": 4, "bytes": 848, "resident_bytes": 848}
    assert [(row["storage"], row["bytes"]) for row in summary["largest"]] == [(0, 512), (6, 512)]
    assert all(isinstance(sentence, str) for sentence in summary["missing"])


def test_summary_has_the_words_and_values_of_the_command_line(example, example_path, root):
    command = os.environ.get("TIDEMARK_CLI", root / "build/tidemark")
    run = subprocess.run([command, "inspect", example_path, "--json"], check=True, capture_output=True, timeout=60)
    printed = json.loads(run.stdout)
    assert printed.pop("file") == str(example_path)
    assert printed == example.summary()


# --- tables ---


def test_modules_know_their_names_from_their_parents(example):
    assert [(m.fqn, m.type, m.parent) for m in example.modules] == [
        ("", "Sequential", None),
        ("0", "Linear", 0),
        ("1", "ReLU", 0),
        ("2", "Linear", 0),
    ]


def test_rows_give_their_fields(example):
    op = example.ops[1]
    assert (op.id, op.name, op.inputs, op.outputs) == (1, "aten.addmm.default", (1, 4, 6), [(7, "fresh", None)])
    assert (op.pass_, op.call, op.node, op.region, op.source, op.group) == (0, 1, 0, None, None, "")
    assert (op.flags, op.stream, op.flops, op.read_bytes) == (frozenset(), 0, 2 * 2 * 8 * 16, None)
    assert (op.args, op.args_id) == ({}, None)
    tensor = example.tensors[op.inputs[2]]
    assert (tensor.shape, tensor.stride, tensor.dtype, tensor.is_view) == ((8, 16), (1, 8), "float32", True)
    assert (tensor.version, tensor.offset) == (0, 0)
    storage = example.storages[tensor.storage]
    assert (storage.bytes, storage.device, storage.role, storage.of) == (512, "cpu", "parameter", None)
    assert example.layouts[tensor.layout].shape == tensor.shape
    assert [(b.name, b.kind, b.trainable) for b in example.bindings][:2] == [
        ("weight", "parameter", True),
        ("bias", "parameter", True),
    ]
    call, node, save = example.calls[2], example.nodes[0], example.saves[3]
    assert (call.module, call.parent, call.index, call.pass_) == (2, 0, 0, 0)
    assert (call.inputs, call.outputs) == ((7,), (8,))  # relu: what addmm made, what it made of it
    assert (node.name, node.sequence, node.pass_) == ("AddmmBackward0", 0, 0)
    assert (save.node, save.slot, save.tensor, save.hooked) == (2, 1, 9, True)
    assert [p.kind for p in example.passes] == ["forward", "loss", "backward", "optimizer"]
    assert len(example.regions) == len(example.notes) == len(example.sources) == len(example.resizes) == 0


def test_events_are_pairs_of_kind_and_id(example):
    assert example.events[0] == ("phase", 0)
    assert list(example.events)[-1] == example.events[-1]
    assert {kind for kind, _ in example.events} <= set(tidemark.EVENT_KINDS)


def test_a_table_is_a_sequence(example):
    ops = example.ops
    assert len(ops) == 27
    assert ops[-1] == ops[26]
    assert [op.id for op in ops] == list(range(27))
    assert [op.id for op in ops[3:9:2]] == [3, 5, 7]
    assert ops[100:] == []
    for index in (27, -28, 2**40):
        with pytest.raises(IndexError, match=f"id {index} of a table of 27 rows"):
            ops[index]


def test_rows_are_equal_when_they_are_the_same_row_of_the_same_step(example):
    assert example.ops[3] == example.ops[3] and hash(example.ops[3]) == hash(example.ops[3])
    assert example.ops[3] != example.ops[4]
    assert example.ops[3] != example.tensors[3]
    assert example.ops[3] != Step.parse(example.text()).ops[3]


def test_rows_say_what_they_are(example):
    assert repr(example.ops[1]) == "<Op 1 aten.addmm.default>"
    assert repr(example.modules[1]) == "<Module 1 '0'>"
    assert repr(example.tensors[6]) == "<Tensor 6 float32[8,16]:[1,8]>"
    assert repr(example.storages[0]) == "<Storage 0 512 bytes, parameter>"
    assert repr(example.saves[0]) == "<Save 0>"
    assert repr(example.ops) == "<Table of 27 rows>"


def test_rows_and_tables_are_read_only(example):
    with pytest.raises(AttributeError):
        example.ops[0].name = "other"
    with pytest.raises(AttributeError):
        example.ops = []
    with pytest.raises(TypeError):
        example.ops[0] = example.ops[1]
    example.meta["model"] = "another"
    assert example.meta["model"].startswith("Sequential")


def test_rows_outlive_the_variable_that_held_their_step(example_path):
    ops = Step.load(example_path).ops
    gc.collect()
    op = ops[1]
    del ops
    gc.collect()
    assert op.name == "aten.addmm.default"


def test_a_step_cannot_be_made_without_a_builder():
    with pytest.raises(TypeError):
        Step()


def test_nothing_leaks_at_exit(example_path):
    code = f"import tidemark; rows = list(tidemark.Step.load({str(example_path)!r}).ops); b = tidemark.StepBuilder()"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert run.stderr == ""
