"""tidemark.calibrate: every op of a step timed on this machine, into a device file that can be continued."""

import json

import pytest

torch = pytest.importorskip("torch")

import tidemark  # noqa: E402


@pytest.fixture
def step():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(16, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    return tidemark.capture_batch(model, torch.randn(4, 8), lambda y: y.square().mean(), optimizer, workspace=False)


def test_every_op_gets_a_time(step, tmp_path):
    path = tmp_path / "mine.json"
    assert tidemark.calibrate(step, path, seconds_per_op=0.001, workspace=False, progress=False) == []
    file = json.loads(path.read_text())
    rows = {key: (median, spread) for key, median, spread in file["measured"]["ops"]}
    assert rows.pop("checkpoint region")[0] > 0
    assert rows.pop("checkpoint random state")[0] >= 0
    assert rows.pop("op overhead")[0] >= 0
    assert rows.keys() == {tidemark.workspace_key(step, op.id) for op in step.ops}
    assert all(median > 0 and spread >= 0 for median, spread in rows.values())
    assert file["name"] == "mine"
    assert file["kind"] == "cpu"
    assert file["measured"]["source"] in file["sources"]


def test_a_run_that_was_interrupted_is_continued(step, tmp_path):
    path = tmp_path / "mine.json"
    tidemark.calibrate(step, path, seconds_per_op=0.001, workspace=False, progress=False)
    file = json.loads(path.read_text())
    (key, _, _), *rest = file["measured"]["ops"]
    file["measured"]["ops"] = [[other, 7, 1] for other, _, _ in rest]  # what is there stays
    path.write_text(json.dumps(file))
    tidemark.calibrate(step, path, seconds_per_op=0.001, workspace=False, progress=False)
    rows = {key: median for key, median, _ in json.loads(path.read_text())["measured"]["ops"]}
    assert rows.pop(key) > 7
    assert set(rows.values()) == {7}


def test_a_file_of_another_machine_is_refused(step, tmp_path):
    path = tmp_path / "mine.json"
    tidemark.calibrate(step, path, seconds_per_op=0.001, workspace=False, progress=False)
    file = json.loads(path.read_text())
    file["sources"]["calibrate"] = "elsewhere"
    path.write_text(json.dumps(file))
    with pytest.raises(ValueError, match="another machine.*got 'elsewhere'"):
        tidemark.calibrate(step, path, progress=False)


def test_workspace_is_written_beside_it(step, tmp_path):
    path = tmp_path / "mine.json"
    tidemark.calibrate(step, path, seconds_per_op=0.001, progress=False)
    table = tidemark.WorkspaceTable.load(f"{path}.workspace.jsonl")
    keys = {key for key, _, _ in table.rows}
    assert any(key.startswith("aten.addmm.default(") for key in keys)


def test_what_cannot_be_is_refused(step, tmp_path):
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="no CUDA device"):
            tidemark.calibrate(step, tmp_path / "a.json", device="cuda")
    with pytest.raises(ValueError, match="clock is 'sun'"):
        tidemark.calibrate(step, tmp_path / "a.json", clock="sun")
    assert not (tmp_path / "a.json").exists()
