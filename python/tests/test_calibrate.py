"""tidemark.calibrate: every op of a step timed on this machine, into a device file that can be continued."""

import json
import time

import pytest

torch = pytest.importorskip("torch")

import tidemark  # noqa: E402
from tidemark._calibrate import op_call, overheads  # noqa: E402
from tidemark._calibrate.rerun import Rerun  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _hurry():
    """Nobody looks at how long anything took."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overheads, "_ROUNDS", (3, 3))
        patch.setattr(overheads, "_BETWEEN_BYTES", 1 << 10)
        patch.setattr(overheads, "_ALL_BYTES", 1 << 12)
        yield


@pytest.fixture(scope="module")
def step():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(16, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    return tidemark.capture_batch(model, torch.randn(4, 8), lambda y: y.square().mean(), optimizer, workspace=False)


@pytest.fixture(scope="module")
def written(step, tmp_path_factory):
    """What calibrate wrote for the step."""
    path = tmp_path_factory.mktemp("calibrated") / "mine.json"
    assert tidemark.calibrate(step, path, seconds_per_op=0.001, workspace=False, progress=False) == []
    return path.read_text()


@pytest.fixture
def path(written, tmp_path):
    (tmp_path / "mine.json").write_text(written)
    return tmp_path / "mine.json"


def test_every_op_gets_a_time(step, path):
    file = json.loads(path.read_text())
    rows = {key: (median, spread) for key, median, spread, *_ in file["measured"]["ops"]}
    assert rows.pop("checkpoint region")[0] >= 0
    assert rows.pop("checkpoint random state")[0] > 0
    assert rows.pop("checkpoint save")[0] >= 0
    for kind in ("forward", "backward", "optimizer"):
        assert rows.pop(f"op overhead {kind}")[0] >= 0
        assert rows.pop(f"view overhead {kind}")[0] >= 0
        assert rows.pop(f"pass overhead {kind}")[0] >= 0
    assert rows.pop("parameter overhead optimizer")[0] >= 0
    assert rows.keys() == {tidemark.workspace_key(step, op.id) for op in step.ops}
    assert all(median > 0 and spread >= 0 for median, spread in rows.values())
    assert file["name"] == "mine"
    assert file["kind"] == "cpu"
    assert file["measured"]["source"] in file["sources"]


def test_a_run_that_was_interrupted_is_continued(step, path):
    file = json.loads(path.read_text())
    (key, *_), *rest = file["measured"]["ops"]
    file["measured"]["ops"] = [[other, 7, 1] for other, *_ in rest]  # what is there stays, and an older version wrote it
    path.write_text(json.dumps(file))
    tidemark.calibrate(step, path, seconds_per_op=0.001, workspace=False, progress=False)
    ops = json.loads(path.read_text())["measured"]["ops"]
    assert all(len(row) == (4 if "(" in row[0] else 3) for row in ops)  # what ops ask of the device is added to it
    rows = {key: median for key, median, *_ in ops}
    assert rows.pop(key) > 0
    assert set(rows.values()) == {7}


def test_passes_of_a_whole_step_survive_an_interruption(step, path, monkeypatch):
    """The third pass is interrupted: the first warms up, so one is kept. The median of an op then has four passes, as it
    has without an interruption: one from before, three from after another pass to warm up."""
    from tidemark._calibrate import rerun

    file = json.loads(path.read_text())
    keys = {key for key, *_ in file["measured"]["ops"] if "(" in key}
    file["measured"]["ops"] = [row for row in file["measured"]["ops"] if row[0] not in keys]
    path.write_text(json.dumps(file))
    passes, once = [], rerun.Rerun.once

    def interrupted(self, before=None):
        if len(passes) == 2:
            raise KeyboardInterrupt
        passes.append(once(self, before))
        return passes[-1]

    monkeypatch.setattr(rerun.Rerun, "once", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tidemark.calibrate(step, path, seconds_per_op=0, workspace=False, progress=False)
    kept = json.loads((path.parent / "mine.json.passes.json").read_text())
    assert (kept["count"], len(kept["times"])) == (1, len(step.ops))
    assert {len(taken) for taken in kept["times"].values()} == {1}

    again = []
    monkeypatch.setattr(rerun.Rerun, "once", lambda self, before=None: again.append(once(self, before)) or again[-1])
    assert tidemark.calibrate(step, path, seconds_per_op=0, workspace=False, progress=False) == []
    assert len(again) == 4
    assert not (path.parent / "mine.json.passes.json").exists()
    assert {key for key, *_ in json.loads(path.read_text())["measured"]["ops"]} >= keys


def rows_of(step, scale):
    """A row for each op of the step, at `scale` microseconds for each byte it touches and one to launch it; views take none."""
    works = tidemark._core.op_works(step, [op.id for op in step.ops])
    found = {}
    for op, work in zip(step.ops, works):
        bytes_ = next((int(word[5:]) for word in work.split() if word.startswith("bytes")), 0)
        found[tidemark.workspace_key(step, op.id)] = [0 if work.startswith("free") else 1000 + int(1000 * scale * bytes_), 0, work]
    return [[key, *row] for key, row in found.items()]


def small_step(batch):
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    return tidemark.capture_batch(model, torch.randn(batch, 64), lambda y: y.square().mean(), optimizer, workspace=False)


def test_rows_of_one_shape_teach_the_price_of_another(step, path):
    """The table has another step, at 1 ns for each byte and 1 us for a launch: no row is of an op of this one that depends on
    the batch, but they are priced like that."""
    file = json.loads(path.read_text())
    other, this = small_step(1024), small_step(1536)
    file["measured"]["ops"] = rows_of(other, 0.001)
    file["bandwidth_bytes_per_s"][0], file["peak_flops"]["float32"][0] = 20 * 10**9, 80 * 10**9  # whatever was measured
    path.write_text(json.dumps(file))
    cost = tidemark.price(this, str(path))
    for row in file["measured"]["ops"]:
        del row[3:]
    (path.parent / "old.json").write_text(json.dumps(file))
    old = tidemark.price(this, str(path.parent / "old.json"))
    relu = next(op.id for op in this.ops if op.name == "aten.relu.default")
    mm = next(op.id for op in this.ops if op.name == "aten.addmm.default")
    assert cost.ops["source"][relu] == cost.ops["source"][mm] == "modelled"
    # 1536 rows of 128 floats, read and written, and a launch of 1 us
    assert cost.ops["ms"][relu] == pytest.approx((1 + 2 * 1536 * 128 * 4 / 1000) / 1000, rel=0.01)
    # 1536 x 64 by 64 x 128, and a bias of 128: by its bytes it would be (1536 * 64 + 64 * 128 + 128 + 1536 * 128) * 4 ns, which
    # the model, by FLOPs or bytes, scales in a way of its own
    assert cost.ops["ms"][mm] == pytest.approx((1536 * 64 + 64 * 128 + 128 + 1536 * 128) * 4 / 1e6, rel=0.5)
    assert old.ops["ms"][mm] < cost.ops["ms"][mm]  # an older file has no product that both steps have


def test_a_calibrated_step_teaches_one_of_another_size(step, path):
    """Measured rows, not made-up ones: what is fitted differs from the device without them, and is modelled."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(16, 4))
    other = tidemark.capture_batch(
        model, torch.randn(6, 8), lambda y: y.square().mean(), torch.optim.AdamW(model.parameters()), workspace=False
    )
    cost = tidemark.price(other, str(path))
    file = json.loads(path.read_text())
    del file["measured"]
    (path.parent / "bare.json").write_text(json.dumps(file))
    bare = tidemark.price(other, str(path.parent / "bare.json"))
    keys = {row[0] for row in json.loads(path.read_text())["measured"]["ops"]}
    taught = [op.id for op in other.ops if tidemark.workspace_key(other, op.id) not in keys and bare.ops["ms"][op.id] > 0]
    assert len(taught) > 5
    for op in taught:
        assert cost.ops["source"][op] == "modelled"
        assert cost.ops["ms"][op] != bare.ops["ms"][op]


def test_what_a_row_says_wrongly_is_named(step, path):
    file = json.loads(path.read_text())
    at = next(i for i, row in enumerate(file["measured"]["ops"]) if len(row) == 4)
    file["measured"]["ops"][at][3] = "matmul of something"
    path.write_text(json.dumps(file))
    with pytest.raises(tidemark.Error, match=rf"mine.json: measured: ops\[{at}\]\] the work of the op cannot be read.*\"of\""):
        tidemark.price(step, str(path))


def test_a_file_of_another_machine_is_refused(step, path):
    file = json.loads(path.read_text())
    file["sources"]["calibrate"] = "elsewhere"
    path.write_text(json.dumps(file))
    with pytest.raises(ValueError, match="another machine.*got 'elsewhere'"):
        tidemark.calibrate(step, path, progress=False)


def test_workspace_is_written_beside_it(step, path):
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
    with pytest.raises(ValueError, match="seconds_per_op is -1; expected a number of seconds, 0 or more"):
        tidemark.calibrate(step, tmp_path / "a.json", seconds_per_op=-1)
    with pytest.raises(ValueError, match="there is no folder .*nowhere' for the file 'a.json'"):
        tidemark.calibrate(step, tmp_path / "nowhere" / "a.json")
    with pytest.raises(TypeError, match="step is 'foo'; expected a Step"):
        tidemark.calibrate("foo", tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


def test_a_step_is_run_as_it_was_recorded(step):
    run = Rerun(step, "cpu", time.perf_counter_ns)
    with torch.no_grad():
        first, second = run.once(), run.once()
    assert first.keys() == second.keys() == {op.id for op in step.ops}  # none of them failed
    # What is held at the end is what the replay says is alive then.
    assert run.alive == {row["id"] for row in tidemark.simulate(step).alive_at_end}


def test_a_run_works_on_what_the_ops_before_have_made(step):
    seen = []

    class Watching(Rerun):
        def _run(self, op, times):
            super()._run(op, times)
            row = step.ops[op]
            made = [step.tensors[t].storage for t, alias, _ in row.outputs if alias == "fresh"]
            seen.append(all(self._storages[s].nbytes() == step.storages[s].bytes for s in made))

    with torch.no_grad():
        Watching(step, "cpu", time.perf_counter_ns).once()
    assert seen and all(seen)


def test_values_pass_from_op_to_op(step):
    """relu of what addmm made, not of something made up: nothing below zero leaves it, and something does leave it."""
    found = {}

    class Watching(Rerun):
        def _keep(self, outputs, out):
            super()._keep(outputs, out)
            for tensor, _ in outputs:
                found[tensor] = self._tensor(tensor).clone()

    with torch.no_grad():
        Watching(step, "cpu", time.perf_counter_ns).once()
    relu = next(op for op in step.ops if op.name == "aten.relu.default")
    assert torch.equal(found[relu.outputs[0][0]], found[relu.inputs[0]].relu())


def resized_step():
    """A program that empties a parameter's storage by hand and fills it again, as sharded training does."""
    b = tidemark.StepBuilder()
    b.add_module(None, "", "M")
    forward = b.add_pass("forward")
    layout = b.intern_layout("float32", [4], [1])
    weight = b.add_tensor(b.add_storage(16, "cpu", "parameter"), layout)
    out = b.add_storage(16, "cpu", "plain")
    made = b.add_tensor(out, layout)
    args = b.intern_args({"self": range(0, 1)})
    op = b.add_op("aten.neg.default", pass_=forward, args=args, inputs=[weight], outputs=[(made, "fresh", None)])
    b.phase(forward)
    b.resize(0, 0)
    b.resize(0, 16)
    b.begin(op)
    b.alloc(out)
    b.end(op)
    b.free(out)
    return b.finish()


def test_storages_change_their_size_where_the_record_says():
    sizes = []

    class Watching(Rerun):
        def _resize(self, storage, count):
            super()._resize(storage, count)
            sizes.append(self._storages[storage].nbytes())

    run = Watching(resized_step(), "cpu", time.perf_counter_ns)
    with torch.no_grad():
        assert run.once().keys() == run.once().keys() == {0}
    assert sizes == [0, 16, 0, 16]


def test_an_op_that_cannot_be_run_in_order_is_run_alone(step, path, monkeypatch):
    plain = Rerun.once

    def some(self):
        return {op: ns for op, ns in plain(self).items() if self._calls[op].func is not torch.ops.aten.relu.default}

    monkeypatch.setattr(Rerun, "once", some)
    file = json.loads(path.read_text())
    file["measured"]["ops"] = [row for row in file["measured"]["ops"] if not row[0].startswith("aten.")]
    path.write_text(json.dumps(file))
    assert tidemark.calibrate(step, path, seconds_per_op=0.001, workspace=False, progress=False) == []
    keys = {key.split("(")[0] for key, *_ in json.loads(path.read_text())["measured"]["ops"]}
    assert "aten.relu.default" in keys


def test_the_program_goes_on_as_if_nothing_had_been(step, tmp_path):
    torch.manual_seed(7)
    state = torch.get_rng_state()
    with torch.no_grad():  # where it is called from does not matter
        tidemark.calibrate(step, tmp_path / "mine.json", seconds_per_op=0.001, workspace=False, progress=False)
        assert not torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), state)
    tiny = torch.tensor([1e-40])
    assert (tiny * 0.5).item() > 0  # denormal numbers are numbers again


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sources": {}}', '{"sources": {}, "measured": {"ops": [["key"]]}}'])
def test_a_file_that_is_none_is_refused(step, tmp_path, text):
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="not a file that calibrate wrote.*try another path"):
        tidemark.calibrate(step, path, progress=False)
    assert path.read_text() == text


def test_peaks_of_all_types_and_a_bandwidth_that_is_reached(path):
    """Rates are what was measured, so that nothing is taken off them again; a device file takes them."""
    file = json.loads(path.read_text())
    assert set(file["peak_flops"]) == set(file["achieved_permille"]) == {"float64", "float32", "float16", "bfloat16"}
    assert file["stream_permille"][0] == 1000
    assert {rate for rate, _ in file["achieved_permille"].values()} == {1000}


def test_lists_of_one_tensor_are_lists():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 4, bias=False)

        def forward(self, x):
            return torch.cat([self.inner(x)])[torch.zeros(3, dtype=torch.int64)]

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    step = tidemark.capture_batch(model, torch.ones(2, 4), lambda y: y.sum(), optimizer, workspace=False)
    run = Rerun(step, "cpu", time.perf_counter_ns)
    with torch.no_grad():
        done = run.once()
    missing = {op.name for op in step.ops if op.id not in done}
    assert any(op.name == "aten.cat.default" for op in step.ops)
    assert missing <= {"aten.lift_fresh.default"}


def test_steps_that_share_a_file_share_its_workspace(step, path):
    def keys():
        return {key for key, *_ in tidemark.WorkspaceTable.load(f"{path}.workspace.jsonl").rows}

    tidemark.calibrate(step, path, seconds_per_op=0, progress=False)
    first = keys()
    other = small_step(3)
    tidemark.calibrate(other, path, seconds_per_op=0, progress=False)
    assert first and keys() > first
    assert {key.removesuffix(" watched") for key in keys() - first} <= {tidemark.workspace_key(other, op.id) for op in other.ops}


def test_paths_that_cannot_be_written_are_refused(step, tmp_path):
    for path, said in (tmp_path, "is a folder"), ("", "expected where the device file goes"), (3, "expected where"):
        with pytest.raises(ValueError, match=said):
            tidemark.calibrate(step, path, progress=False)


def test_overheads_are_resumed(step, path, monkeypatch):
    """What checkpoints cost is in the file before what ops cost is measured; a second run measures the rest only."""
    file = json.loads(path.read_text())
    file["measured"]["ops"] = [row for row in file["measured"]["ops"] if " overhead " not in row[0]]
    path.write_text(json.dumps(file))
    monkeypatch.setattr(overheads, "time_regions", lambda *_: pytest.fail("measured again"))
    tidemark.calibrate(step, path, seconds_per_op=0.001, workspace=False, progress=False)
    assert sum(" overhead " in row[0] for row in json.loads(path.read_text())["measured"]["ops"]) == 10

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.undo()
    monkeypatch.setattr(overheads, "_ROUNDS", (3, 3))
    file["measured"]["ops"] = [row for row in file["measured"]["ops"] if "checkpoint" not in row[0]]
    path.write_text(json.dumps(file))
    monkeypatch.setattr(overheads, "time_op_overheads", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tidemark.calibrate(step, path, seconds_per_op=0.001, workspace=False, progress=False)
    assert any(row[0] == "checkpoint save" for row in json.loads(path.read_text())["measured"]["ops"])


def test_denormal_numbers_stay_as_they_were(step, path):
    assert torch.set_flush_denormal(True)
    try:
        tidemark.calibrate(step, path, seconds_per_op=0, workspace=False, progress=False)
        assert not torch.tensor([1e-40]).mul(0.5).any()
    finally:
        torch.set_flush_denormal(False)


def test_what_calling_costs_is_not_counted():
    """A clock that advances by one millisecond at each reading: an op takes one, as does calling it, less its share of the
    list of 200 in which no call is counted: one millisecond less a two-hundredth."""
    ticks = iter(range(0, 10**15, 10**6))
    assert overheads.call_ns(lambda: next(ticks)) == 10**6 - 10**6 // 200


@pytest.mark.parametrize(
    "counts, times, each, off",
    [
        ([(4, 0), (5, 10)], [80.5, 131], (20, 3), [0, 0]),  # 4 * 20 and 5 * 20 + 10 * 3, and a little for what doubles round
        # Views below nothing: 720 / 41 = 17.56 for an op, (4 * 80 + 5 * 80) / (4 * 4 + 5 * 5); off by 9.76 and 7.80.
        ([(4, 0), (5, 10)], [80, 80], (17, 0), [9, 7]),
        ([(4, 0), (5, 10)], [-8, 100.5], (0, 10), [8, 0]),  # ops below nothing
        ([(4, 0), (5, 0)], [80.2, 100.25], (20, 0), [0, 0]),  # optimizers have no views
        ([(4, 0), (5, 10)], [-80, -80], (0, 0), [80, 80]),
        ([(1, 4, 0), (1, 5, 10), (1, 1, 0)], [85.5, 136.7, 25.3], (5, 20, 3), [0, 0, 0]),  # 5 for the pass
    ],
)
def test_what_is_around_ops_is_shared_between_passes_ops_and_views(counts, times, each, off):
    assert overheads.shares(times, counts, [1] * len(times)) == (list(each), off)


def test_what_is_in_doubt_says_less():
    """Two programs of one thing each that say 10 and 40.5, the second in doubt by twice as much: (10 + 40.5 / 4) / (1 + 1 / 4) is
    16.1, off by 6.1 and 24.4."""
    assert overheads.shares([10, 40.5], [(1,), (1,)], [10, 20]) == ([16], [6, 24])


def test_views_have_an_overhead_of_their_own(step, path):
    """And as much as other ops where the file was written before they had."""
    file = json.loads(path.read_text())
    rows = {row[0]: row for row in file["measured"]["ops"]}
    rows["op overhead forward"][1], rows["view overhead forward"][1] = 5_000_000, 1_000_000
    path.write_text(json.dumps(file))
    del file["measured"]["ops"][file["measured"]["ops"].index(rows["view overhead forward"])]
    older = path.parent / "older.json"
    older.write_text(json.dumps(file))
    view, relu = (next(op.id for op in step.ops if op.name == f"aten.{name}.default") for name in ("t", "relu"))
    for device, of_view in (path, 1), (older, 5):
        cost = tidemark.price(step, str(device))
        for op, more in (view, of_view), (relu, 5):
            assert cost.ops["ms"][op] == pytest.approx(rows[tidemark.workspace_key(step, op)][1] / 1e6 + more)


def test_the_steps_own_ops_run_between(step):
    """One with work at a time, views before it, and from the start again where only the optimizer is left."""
    ran = []

    class Watching(Rerun):
        def _run(self, op, times):
            super()._run(op, times)
            ran.append(op)

    works = tidemark._core.op_works(step, [op.id for op in step.ops])
    worked = {op.id for op, work in zip(step.ops, works) if not work.startswith("free")}
    trained = [op.id for op in step.ops if step.passes[op.pass_].kind != "optimizer"]
    run = Watching(step, "cpu", time.perf_counter_ns)
    between = overheads.Between("cpu", step, run)
    ran.clear()  # it has looked how long they take
    count = len(worked & set(trained))
    for turn in range(1, count + 2):
        between()
        assert ran[-1] in worked
        assert len(worked & set(ran)) == min(turn, count)
    first = trained[: trained.index(max(worked & set(trained))) + 1]
    assert ran[: len(first)] == first
    assert ran[len(first) :] == first[: len(ran) - len(first)]
    between.close()
    assert set(run._storages) == set(run._kept)  # what the walk had made is gone


def test_something_else_passes_between_where_no_step_does():
    parts = overheads.Between._scratch("cpu", overheads._BETWEEN_BYTES)
    for _ in range(5):
        next(parts)
    assert [int(part[0]) for part in parts.gi_frame.f_locals["parts"]] == [2, 1, 1, 1]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
def test_made_up_numbers_differ(dtype):
    """Kernels that branch on values are quicker on equal ones."""
    flat = torch.zeros(64, dtype=getattr(torch, dtype))
    op_call.make_up_floats(flat)
    found = flat.float()
    assert len(found.unique()) > 8
    assert 0 < found.min() and found.max() < 0.1


def test_prices_come_from_the_file(step, path):
    cost = tidemark.price(step, str(path))
    assert set(cost.ops["source"]) == {"measured"}
    assert cost.sum["measured_ms"] == cost.sum["ms"] == cost.step_ms > 0
    assert cost.unpriced == []
    rows = {key: median for key, median, *_ in json.loads(path.read_text())["measured"]["ops"]}
    assert cost.checkpoint_save_ms == rows["checkpoint save"] / 1e6


def test_price_answers_in_the_words_of_the_command_line(step):
    cost = tidemark.price(step, tidemark.find_device("a100-40-pcie"))
    assert cost.step_ms >= cost.sum["ms"] > 0
    assert len(cost.ops["ms"]) == len(cost.ops["source"]) == len(step.ops)
    assert cost.total_of(range(len(step.ops))) == cost.sum
    assert cost.total_of([])["ms"] == 0
    assert sum(row["ms"] for row in cost.passes.values()) == pytest.approx(cost.sum["ms"])
    assert sum(row["step_ms"] for row in cost.passes.values()) == pytest.approx(cost.step_ms)
    assert 0 < cost.mfu < 1
    assert "a100-40-pcie" in repr(cost)
    with pytest.raises(tidemark.Error, match="no such op; expected numbers below"):
        cost.total_of([len(step.ops)])
    with pytest.raises(tidemark.Error, match="a100"):
        tidemark.price(step, "a100-40-pci")
    with pytest.raises(TypeError):
        tidemark.price(step, None)
