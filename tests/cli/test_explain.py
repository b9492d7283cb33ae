"""tidemark plan --explain and --why: what binds, what memory is worth, and what the opposite would come to."""

import pytest

pytestmark = pytest.mark.fast

GPT2 = ["gpt2", "--batch", "8", "--device", "t4", "--budget", "90%"]


@pytest.fixture(scope="module")
def explained(cli):
    return cli.json("plan", *GPT2, "--explain")


def test_one_screen(cli):
    text = cli("plan", *GPT2, "--explain").stdout
    for words in ["where memory is highest", "what memory is worth", "kept", "no plan goes below", "may be units"]:
        assert words in text
    assert len(text.splitlines()) <= 45
    assert max(map(len, text.splitlines())) <= 100


def test_the_first_moment_is_the_peak(explained):
    moments = explained["explanation"]["moments"]
    assert moments[0]["bytes"] == explained["peak_bytes"]
    assert [m["bytes"] for m in moments] == sorted((m["bytes"] for m in moments), reverse=True)


def test_the_price_is_the_difference_of_two_plans(cli, explained):
    price = explained["explanation"]["price"]
    assert price["step_bytes"] == 2**30
    more = cli.json("plan", *GPT2[:-1], f"{explained['budget_bytes'] + 2**30}B")
    assert price["more_spares_ms"] == pytest.approx(explained["recompute_ms"] - more["recompute_ms"])
    less = cli.json("plan", *GPT2[:-1], f"{explained['budget_bytes'] - 2**30}B")
    if price["less_proved"]:
        assert price["less_costs_ms"] == pytest.approx(less["recompute_ms"] - explained["recompute_ms"])


def test_all_calls_are_accounted_for(explained):
    left_out = {calls["reason"]: calls["calls"] for calls in explained["explanation"]["excluded"]}
    assert left_out == {reason: count for reason, count in explained["excluded"].items() if count}


def test_why_a_module(cli):
    found = cli.json("plan", *GPT2, "--why", "transformer.h.*.mlp")
    rows = found["explanation"]["why"]
    assert sum(row["count"] for row in rows) == 12
    assert {row["kind"] for row in rows} <= {"unit", "inside_unit", "holds_units", "not_needed"}
    room = found["budget_bytes"] - found["reserve_bytes"]
    for row in rows:
        if row["opposite"]:
            assert row["opposite"]["fits"] == (row["opposite"]["peak_bytes"] <= room)
            assert not row["opposite"]["fits"] or row["opposite"]["recompute_ms"] >= found["recompute_ms"]


def test_why_an_op(cli):
    found = cli.json("plan", *GPT2, "--why", "*.mlp.c_fc::addmm")
    rows = found["explanation"]["why"]
    assert sum(row["count"] for row in rows) == 12
    for row in rows:
        assert row["kind"] in ("saved", "recomputed", "no_unit")
        if row["kind"] == "saved" and row["opposite"]:
            grown = row["opposite"]["recompute_ms"] - found["recompute_ms"]
            assert grown == pytest.approx(row["count"] * row["ps_each"] / 1e9)


def test_why_something_could_not_be(cli):
    text = cli("plan", *GPT2, "--why", "transformer.wte", "--why", "*.attn", "--not-units", "*.attn").stdout
    assert "cannot be a unit: autograd keeps nothing of them" in text or "as a unit that recomputes all" in text
    assert "left out by --units or --not-units" in text or "inside the unit" in text


def test_a_question_about_nothing_is_refused(cli):
    result = cli("plan", *GPT2, "--why", "layers.*")
    assert result.returncode == 1
    assert "it matches nothing in the forward pass" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        # Optimizer state and gradients of GPT-2 take 2 GB, a few tokens next to nothing.
        (["gpt2", "--seq", "8", "--device", "t4", "--budget", "1GiB"], "Recomputing cannot help: the peak is in what the optimizer"),
        # 50257 logits for each token.
        (["gpt2", "--batch", "16", "--device", "t4", "--budget", "4GiB"], "Recomputing cannot help: the peak is in the loss"),
    ],
)
def test_it_says_when_recomputing_cannot_help(cli, options, words):
    result = cli("plan", *options, "--explain")
    assert result.returncode == 3
    assert words in " ".join(result.stdout.split())


def test_equal_layers_inside_a_unit_are_one_row(cli):
    """Of T5's encoder, which is one unit here, the blocks after the first are alike."""
    options = ["plan", "t5-small", "--batch", "8", "--device", "t4", "--budget", "4GB", "--explain"]
    groups = cli.json(*options)["explanation"]["groups"]
    assert any(group["units"] == "encoder" and group["module"] == "block.{1-5}.layer.{0-1}" and group["count"] == 10 for group in groups)
    assert len(cli(*options).stdout.splitlines()) <= 45


def test_memory_has_one_price_whoever_made_the_plan(cli):
    """What greedy loses at this budget is not what memory is worth."""
    options = ["plan", "gpt2", "--batch", "8", "--device", "t4", "--budget", "90%", "--explain"]
    best, greedy = cli.json(*options), cli.json(*options, "--method", "greedy")
    assert greedy["recompute_ps"] > best["recompute_ps"]
    assert greedy["explanation"]["price"] == best["explanation"]["price"]
