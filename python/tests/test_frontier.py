"""tidemark.frontier: what recomputing costs at least, for every budget."""

import pytest

import tidemark

pytestmark = pytest.mark.fast


@pytest.fixture(scope="module")
def step():
    return tidemark.native("gpt2", batch=8, seq=256, optimizer="sgd", target="cuda")


def test_its_points_are_what_plan_says(step):
    found = tidemark.frontier(step, "t4", budgets=5)
    assert len(found.points) == 5 and not found.is_full and found.missing == []
    budgets = [point["budget_bytes"] - found.reserve_bytes for point in found.points]
    assert (budgets[0], budgets[-1]) == (found.smallest_peak_bytes, found.unplanned_peak_bytes)
    times = [point["recompute_ms"] for point in found.points]
    assert times == sorted(times, reverse=True) and times[-1] == 0 < times[0] < found.step_ms
    for point in found.points:
        planned = tidemark.plan(step, point["budget_bytes"], "t4")
        if point["proved"] and planned.termination in ("fits", "optimal"):
            assert planned.recompute_ms == point["recompute_ms"]
    assert [policy["policy"] for policy in found.policies][:2] == ["none", "full"]


def test_a_limit_leaves_something_out(step):
    found = tidemark.frontier(step, "t4", full=True, max_work=2_000_000)
    assert found.is_full and found.missing
    assert all(first <= last for first, last in found.missing)


def test_what_makes_no_sense_is_refused(step):
    with pytest.raises(tidemark.Error, match="expected a whole number from 2 to 65536, got 1"):
        tidemark.frontier(step, "t4", budgets=1)
    with pytest.raises(tidemark.Error, match="against"):
        tidemark.frontier(step, "t4", against="some")
