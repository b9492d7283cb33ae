"""The reference's planning tests, case by case, in the shape of the original calls."""

import copy

import pytest

torch = pytest.importorskip("torch")
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from .toy_transformer import BATCH, PUBLISHED, Transformer  # noqa: E402

from tidemark.compat.ilp_utils import (  # noqa: E402
    ModuleInfo,
    aggregate_stats,
    display_bytes,
    get_peak_memory_runtime_baseline,
    is_self_or_submodule,
    is_submodule,
    parse_module_info,
)
from tidemark.compat.mem_tracker import MemTracker, _ModState  # noqa: E402
from tidemark.compat.runtime_estimator import RuntimeEstimator  # noqa: E402
from tidemark.compat.sac_estimator import SACEstimator, SACStats  # noqa: E402
from tidemark.compat.sac_ilp import SACDecision, get_optimal_checkpointing_policy_per_module, sac_milp  # noqa: E402

COST_MODEL = "operator-level-cost-model"


@pytest.fixture(scope="module")
def mod_info() -> ModuleInfo:
    device = torch.cuda.current_device()
    with FakeTensorMode():
        with torch.device(device):
            model = Transformer(PUBLISHED)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=True)
        inp = torch.randint(0, PUBLISHED.vocab_size, (BATCH, PUBLISHED.max_seq_len), device=device)

        mem_tracker = MemTracker()
        mem_tracker.track_external(model, optimizer)
        with mem_tracker as mt:
            for iter_idx in range(2):  # the optimizer has its state from the second on
                output = model(inp)
                output.sum().backward()
                if iter_idx == 1:
                    last_snapshot = mt.get_tracker_snapshot("current")
                optimizer.step()
                optimizer.zero_grad()
                if iter_idx == 0:
                    mt.reset_mod_stats()
        for mod_stats in mem_tracker.memory_tracking.values():
            if _ModState.POST_BW not in mod_stats.snapshots:
                mod_stats.snapshots.setdefault(_ModState.POST_BW, []).append(copy.deepcopy(last_snapshot))

        def one_step():
            out = model(inp)
            out.sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        one_step()
        runtime_estimator = RuntimeEstimator()
        with runtime_estimator(estimate_mode_type=COST_MODEL):
            one_step()

        sac_estimator = SACEstimator()
        with sac_estimator(estimate_mode_type=COST_MODEL):
            loss = model(inp).sum()
        loss.backward()
        return aggregate_stats(model, mem_tracker, runtime_estimator, sac_estimator, torch.device(device))


def test_records(mod_info):
    records = {record["fqn"]: record for record in mod_info["mod_stats"]}
    # The root; two embeddings, dropout, norm, output; a block with 2 norms, attention of 5 and feed-forward of 4.
    assert len(records) == 1 + 5 + 4 * (1 + 2 + 1 + 5 + 1 + 4)
    root, logits = records["Transformer"], 8 * 1024 * 8192 * 4
    # Section 21, derived there tensor by tensor; the logits of the iteration before are still held by the loop.
    assert root["param_per_module"] == 141_674_496
    assert root["act_total"] == 1_988_177_920 + logits
    assert root["act_grad_per_module"] == 185_601_024
    for i in range(4):
        block = records[f"Transformer.layers.{i}"]
        assert (block["act_fw_per_module"], block["sac_memory"]) == (390_595_584, 491_258_880)
        assert block["n_segments"] == 2 and not block["is_leaf"]
    assert records["Transformer.norm"]["is_leaf"]


def test_graph(mod_info):
    graph = parse_module_info(mod_info)
    assert [node["index"] for node in graph.nodes] == list(range(62))
    assert graph.nodes[0]["fqn"] == "Transformer" == graph.fw_post_order[-1]
    # In the order of calls: the attention's dropout is registered first and runs last.
    attention = [node["fqn"] for node in graph.nodes if ".0.attention." in node["fqn"]]
    assert [name.rpartition(".")[2] for name in attention] == ["wq", "wk", "wv", "wo", "resid_dropout"]
    block = graph.name2node["Transformer.layers.2"]
    inside = {graph.nodes[j]["fqn"] for j in range(62) if graph.ad_matrix[block["index"]][j]}
    assert inside == {node["fqn"] for node in graph.nodes if (node["fqn"] + ".").startswith("Transformer.layers.2.")}
    assert all(graph.fw_post_order[node["pos_fw_post_order"]] == node["fqn"] for node in graph.nodes)


def test_a_graph_of_what_pytorchs_parser_has_seen(mod_info):
    """PyTorch's parser writes index and pos_fw_post_order into the records that it is given."""
    seen = copy.deepcopy(mod_info)
    for i, record in enumerate(seen["mod_stats"]):
        record |= {"index": 999 - i, "pos_fw_post_order": 999}
    nodes, same = parse_module_info(mod_info).nodes, parse_module_info(seen).nodes
    assert [(n["fqn"], n["index"], n["pos_fw_post_order"]) for n in same] == [(n["fqn"], n["index"], n["pos_fw_post_order"]) for n in nodes]


@pytest.mark.parametrize("key, value, message", [
    ("sac_runtime", float("nan"), "sac_runtime of Transformer is nan; expected a finite number"),
    ("act_total", -1, "act_total of Transformer is -1; expected no less than 0"),
    ("slopes", [1.0, float("inf")], "slopes of Transformer is inf; expected a finite number"),
    ("fqn", "Transformer.norm", "there are two records of Transformer.norm"),
])
def test_figures_that_no_module_has_are_refused(mod_info, key, value, message):
    wrong = copy.deepcopy(mod_info)
    wrong["mod_stats"][0][key] = value
    with pytest.raises(AssertionError, match=message):
        parse_module_info(wrong)


def test_case_1_some_checkpointing_is_needed(mod_info):
    g = parse_module_info(mod_info)
    peak_mem, compute_time = get_peak_memory_runtime_baseline(g)
    assert peak_mem == 2_583_888_896  # the published number; asked is within 5 %
    ac_decisions, recomputation_time, peak = sac_milp(g, memory_budget=1.6, world_size=4)
    assert set(ac_decisions) == {f"Transformer.layers.{i}" for i in range(4)}
    smallest = sorted(ac_decisions.values())
    assert smallest[:3] == pytest.approx([0.55] * 3, abs=0.05)
    assert sum(smallest) == pytest.approx(2.35, abs=0.05)
    assert ac_decisions["Transformer.layers.3"] == pytest.approx(0.55, abs=0.05)
    assert (recomputation_time / compute_time) / (6.97 / 97.97) == pytest.approx(1, abs=0.25)
    # And what A100 gave: 0.5232 three times and 0.7964, 6.97 ms. Theirs stops 5 % from the optimum.
    assert smallest == pytest.approx([0.5232] * 3 + [0.7964], abs=2e-4)
    assert recomputation_time == pytest.approx(6.97, abs=0.01)
    assert peak <= 1.6 * 2**30


def test_case_2_nothing_is_needed(mod_info):
    ac_decisions, recomputation_time, peak_mem = sac_milp(parse_module_info(mod_info), memory_budget=2.4, world_size=4)
    assert (ac_decisions, recomputation_time) == ({}, 0)
    assert peak_mem == 2_477_633_024  # section 21: what the root needs


def test_case_3_too_tight(mod_info):
    result = sac_milp(parse_module_info(mod_info), memory_budget=0.8, world_size=4)
    assert result == ({}, 0, -1)


def test_of_equal_modules_the_earlier_gives_up_more(mod_info):
    ac_decisions, _, _ = sac_milp(parse_module_info(mod_info), memory_budget=1.6, world_size=4)
    blocks = [ac_decisions[f"Transformer.layers.{i}"] for i in range(4)]
    assert blocks == sorted(blocks, reverse=True) and blocks[0] > blocks[3]


def test_units(mod_info):
    g = parse_module_info(mod_info)
    allowed = ["Transformer.layers.0", "Transformer.layers.1", "Transformer.layers.2.feed_forward"]
    ac_decisions, _, _ = sac_milp(g, memory_budget=2.0, world_size=4, ac_units=allowed)
    assert ac_decisions and set(ac_decisions) <= set(allowed)
    # No module above a sharded one is checkpointed.
    sharded = [f"Transformer.layers.{i}.attention" for i in range(4)]
    ac_decisions, _, _ = sac_milp(g, memory_budget=2.0, world_size=4, fsdp_units=sharded)
    assert ac_decisions and not any(name.count(".") == 2 for name in ac_decisions)


STATS = SACStats(
    func_names=["aten.copy_", "aten.add", "aten.div", "aten.mm", "aten.native_dropout", "aten.linear", "aten.t", "aten.relu_"],
    runtimes=[5, 5, 8, 15, 15, 9, 1, 5],
    memory=[0, 100, 100, 120, 0, 100, 0, 0],
    view_like_ops=[6],
    rand_ops=[4],
    saved_autograd_ops=[],
    inplace_ops=[(0, 0), (7, 5)],
    force_store_random=False,
)


@pytest.mark.parametrize(
    ("budget", "bits"),
    [
        (0, "10001000"),
        (100, "10001101"),
        (120, "10011000"),
        (200, "10101101"),
        (220, "10011101"),
        (320, "10111101"),
        (420, "11111101"),
    ],
)
def test_policy_per_module(budget, bits):
    solution = get_optimal_checkpointing_policy_per_module(sac_stats=STATS, memory_budget=budget / 420)
    assert solution == [int(bit) for bit in bits]
    assert SACDecision(solution[0]) is SACDecision.SAVE


def test_policy_misuse(caplog):
    with pytest.raises(ValueError, match="from 0 to 1"):
        get_optimal_checkpointing_policy_per_module(STATS, 1.5)
    # A random operator without a tensor to start from must be stored, and nothing may be.
    stats = SACStats(["rand"], [1.0], [512], [], [0], [], [], True)
    assert get_optimal_checkpointing_policy_per_module(stats, 0.0) == []
    assert "must be saved" in caplog.text


def test_names():
    assert is_submodule("GPT.a.b", "GPT.a") and not is_submodule("GPT.a", "GPT.a")
    assert is_self_or_submodule("GPT.a", "GPT.a")
    assert not is_submodule("GPT.ab.c", "GPT.a")
    assert not is_submodule("GPT.x.a.b.c", "a.b")  # theirs looks for it anywhere in the name
    assert display_bytes(3 << 20) == "3.00 MiB" and display_bytes(1 << 30, "GiB") == "1.00 GiB"
    assert display_bytes(5, "B") == "5.00 bytes"
