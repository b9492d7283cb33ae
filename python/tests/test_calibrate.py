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


def test_a_step_is_run_as_it_was_recorded(step):
    from tidemark import calibration

    run = calibration._Run(step, "cpu", calibration.time.perf_counter_ns)
    with torch.no_grad():
        first, second = run.once(), run.once()
    assert first.keys() == second.keys() == {op.id for op in step.ops}  # none of them failed
    # What is held at the end is what the replay says is alive then.
    alive = {storage for storage, holders in run._holders.items() if holders}
    assert alive == {row["id"] for row in tidemark.simulate(step).alive_at_end}


def test_a_run_works_on_what_the_ops_before_have_made(step):
    from tidemark import calibration

    seen = []

    class Watching(calibration._Run):
        def _run(self, op, times):
            super()._run(op, times)
            row = step.ops[op]
            made = [step.tensors[t].storage for t, alias, _ in row.outputs if alias == "fresh"]
            seen.append(all(self._storages[s].nbytes() == step.storages[s].bytes for s in made))

    with torch.no_grad():
        Watching(step, "cpu", calibration.time.perf_counter_ns).once()
    assert seen and all(seen)


def test_an_op_that_cannot_be_run_in_order_is_run_alone(step, tmp_path, monkeypatch):
    from tidemark import calibration

    plain = calibration._Run._run

    def some(self, op, times):
        plain(self, op, times)
        if self._ops[op].name == "aten.relu.default":
            times.pop(op)

    monkeypatch.setattr(calibration._Run, "_run", some)
    path = tmp_path / "mine.json"
    assert tidemark.calibrate(step, path, seconds_per_op=0.001, workspace=False, progress=False) == []
    keys = {key.split("(")[0] for key, _, _ in json.loads(path.read_text())["measured"]["ops"]}
    assert "aten.relu.default" in keys
