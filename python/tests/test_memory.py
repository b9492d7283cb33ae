"""Plans, replay and workspace tables as Python sees them. The figures of the example are worked out in the C++ tests
and in docs; here it is about names, types and sums."""

from pathlib import Path

import pytest

import tidemark

pytestmark = pytest.mark.fast

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/steps/two_layer_mlp.step.jsonl"


@pytest.fixture(scope="module")
def step():
    return tidemark.Step.load(EXAMPLE)


def test_the_peak_adds_up(step):
    timeline = tidemark.simulate(step)
    assert timeline.peak["bytes"] == timeline.peak_bytes
    assert sum(timeline.by_category.values()) == timeline.peak_bytes
    assert sum(row["bytes"] for row in timeline.alive_at_peak) == timeline.peak_bytes
    assert sum(row["peak_share_bytes"] for row in timeline.modules) == timeline.peak_bytes
    assert sum(row["bytes"] for row in timeline.alive_at_end) == timeline.end_bytes
    assert [row["fqn"] for row in timeline.modules] == ["", "0", "1", "2", None]
    assert step.ops[timeline.peak["op"]].pass_ == timeline.peak["pass"]


def test_events_are_columns_and_only_kept_when_asked_for(step):
    assert tidemark.simulate(step).events["bytes"] == []
    timeline = tidemark.simulate(step, tidemark.Plan.policy(step, "full"), events=True)
    events = timeline.events
    assert {len(column) for column in events.values()} == {timeline.change_count}
    total = timeline.start_bytes
    for kind, size, after in zip(events["kind"], events["bytes"], events["total_bytes"]):
        total += size if kind == "alloc" else -size
        assert total == after
    assert max(events["total_bytes"]) == timeline.peak_bytes
    assert {"original", "copy", "rng_state"} == set(events["block"])


def test_no_plan_is_a_plan_without_units(step):
    plain = tidemark.simulate(step, events=True).events
    assert tidemark.simulate(step, tidemark.Plan(), events=True).events == plain
    assert tidemark.Plan.policy(step, "none") == tidemark.Plan()


def test_plans_are_values(step):
    plan = tidemark.Plan([(1, []), (3, [4])], preserve_rng=False)
    assert plan.units == [(1, []), (3, [4])]
    assert plan == tidemark.Plan([(1, []), (3, [4])], preserve_rng=False)
    assert plan != tidemark.Plan([(1, []), (3, [4])])
    assert plan.check(step) == []
    (violation,) = tidemark.Plan([(0, []), (1, [])]).check(step)
    assert (violation["kind"], violation["unit"], violation["op"]) == ("overlap", 1, None)
    assert [call for call, _ in tidemark.Plan.policy(step, "full").units] == [1, 2, 3]


def test_switches_hold_for_all_units(step):
    plan = tidemark.Plan.policy(step, "full")
    assert tidemark.simulate(step, plan).by_category["other"] > 0
    assert tidemark.simulate(step, plan, preserve_rng=False).by_category["other"] == 0


def test_what_is_wrong_raises(step):
    with pytest.raises(tidemark.Error, match="no such policy"):
        tidemark.Plan.policy(step, "fullest")
    with pytest.raises(tidemark.Error, match="lies inside"):
        tidemark.simulate(step, tidemark.Plan([(0, []), (1, [])]))
    with pytest.raises(tidemark.Error, match="no such call"):
        tidemark.groups(step, 99)
    with pytest.raises(tidemark.Error, match="no such op"):
        tidemark.workspace_key(step, 99)
    with pytest.raises(tidemark.Error, match="freed before"):
        tidemark.WorkspaceTable([("key", [(2, 0)], False)])
    with pytest.raises(tidemark.Error, match="no such kind"):
        tidemark.WorkspaceTable([("key", [(7, 0)], False)])


def test_groups(step):
    transpose, product = tidemark.groups(step, 1)
    assert (transpose.ops, transpose.savers, transpose.can_save, transpose.obstacle) == ([0], [], False, "nothing_fresh")
    assert (product.ops, product.savers, product.can_save, product.saved_bytes) == ([1], [1], True, 128)
    assert not (product.must_save or product.is_random)


def test_workspace(step, tmp_path):
    relu = next(i for i, op in enumerate(step.ops) if op.name == "aten.relu.default")
    key = tidemark.workspace_key(step, relu)
    assert key == "aten.relu.default(float32[2,16;16,1]){}"
    table = tidemark.WorkspaceTable([(key, [(1, 100_000), (0, 0)], True)], device="here")
    timeline = tidemark.simulate(step, workspace=table)
    assert timeline.by_category["workspace"] == 100_000
    assert timeline.peak["op"] == relu
    table.save(tmp_path / "table.jsonl")
    again = tidemark.WorkspaceTable.load(tmp_path / "table.jsonl")
    assert again == table and again.rows == table.rows and again.device == "here" and len(again) == 1


def test_rounding(step):
    assert tidemark.simulate(step, round_to_bytes=512).peak_bytes % 512 == 0


def test_reserved_by_the_caching_allocator(step):
    # A few kilobytes: one small segment of 2 MiB, in which 512 B are the smallest block.
    reserved = tidemark.simulate(step, events=True).reserved()
    assert (reserved["peak_reserved_bytes"], reserved["segments"]) == (2 << 20, 1)
    assert reserved["peak_allocated_bytes"] % 512 == 0
    assert tidemark.simulate(step, events=True).reserved(expandable_segments=True)["segments"] == 1


def test_the_references_tracker(step):
    record = tidemark.reference_tracker(step)
    assert record["peak"]["Total"] == sum(size for name, size in record["peak"].items() if name != "Total")
    assert [module["fqn"] for module in record["modules"]] == ["", "0", "1", "2"]
    (before,) = record["modules"][0]["snapshots"]["Pre-Forward"]
    assert before["Parameter"] == record["modules"][0]["parameter_bytes"] == 848
    assert tidemark.reference_tracker(step, "cuda:0")["peak"]["Total"] == 0
