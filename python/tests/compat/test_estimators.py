"""Runtime and SAC estimators in the shape of the original calls, against worked-out figures and PyTorch's own."""

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from .toy_transformer import BATCH, PUBLISHED, ModelArgs, Transformer  # noqa: E402

import tidemark.compat  # noqa: E402
from tidemark.compat.runtime_estimator import RuntimeEstimator  # noqa: E402
from tidemark.compat.sac_estimator import SACEstimator, SACStats  # noqa: E402

COST_MODEL = "operator-level-cost-model"
BENCHMARK = "operator-level-benchmark"


def _model(args, batch, device):
    with torch.device(device):
        model = Transformer(args)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=True)
    tokens = torch.randint(0, args.vocab_size, (batch, args.max_seq_len), device=device)

    def step():
        out = model(tokens)
        out.sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, tokens, step


@pytest.fixture(scope="module")
def sac():
    """The reference's model, forward under the estimator."""
    with FakeTensorMode():
        model, tokens, _ = _model(PUBLISHED, BATCH, torch.cuda.current_device())
        estimator = SACEstimator()
        with estimator(estimate_mode_type=COST_MODEL):
            loss = model(tokens).sum()
        loss.backward()
        estimator.pwlf_sac_tradeoff_curve(n_segments=2, save_tradeoff_graphs=False)
        return estimator


# One hidden tensor, a mask of dropout, the statistics of a norm, of attention, and its two RNG scalars.
U, MASK, NORM, SUMS, SCALARS = 8 * 1024 * 768 * 4, 8 * 1024 * 768, 2 * 8 * 1024 * 4, 8 * 12 * 1024 * 4, 2 * 512


def test_operators_of_a_block(sac):
    stats = sac.sac_mod_stats["Transformer.layers.0"]
    kept = [
        (name, size)
        for i, (name, size) in enumerate(zip(stats.func_names, stats.memory))
        if i not in stats.view_like_ops
    ]
    attention = "_scaled_dot_product_efficient_attention"
    assert kept == [
        ("native_layer_norm", U + NORM),
        *[("mm", U)] * 3,
        (attention, U + SUMS + SCALARS),
        ("mm", U),
        ("native_dropout", U + MASK),
        ("add", U),
        ("native_layer_norm", U + NORM),
        ("addmm", 4 * U),
        ("gelu", 4 * U),
        ("addmm", U),
        ("native_dropout", U + MASK),
        ("add", 0),  # makes the block's result
    ]
    # Section 21: A100 with 0.75 of 19.49184 TFLOPS and 1935.36 GB/s; a product is 2 m n k / 2 operations.
    ms = {name: time for name, time in zip(stats.func_names, stats.runtimes)}
    assert ms["mm"] == pytest.approx(8192 * 768 * 768 / (0.75 * 19.49184e12) * 1e3)
    assert ms["add"] == pytest.approx(3 * U / 1935.36e9 * 1e3)
    assert sum(stats.runtimes) == pytest.approx(5.1403, abs=1e-4)
    assert sum(stats.memory) == 491_258_880
    assert [stats.func_names[i] for i in stats.rand_ops] == [attention, "native_dropout", "native_dropout"]
    assert (stats.inplace_ops, stats.force_store_random) == ([], False)


def test_greedy_order_and_fit_of_a_block(sac):
    order = sac.sac_mod_greedy_order_meta["Transformer.layers.0"]
    names = [min(group.func_names) for group in order.msps_meta]
    attention = "_scaled_dot_product_efficient_attention"
    assert names == ["native_layer_norm"] * 2 + ["gelu", "add", attention] + ["mm"] * 4 + ["addmm"] * 2 + ["add"]
    assert order.stored_ops == set() and order.inplace_op_groups == {}
    fit = sac.sac_mod_tradeoff_stats["Transformer.layers.0"]
    # The table of section 21, A100-80-PCIe.
    assert fit.fit_breaks[1] == pytest.approx(0.5232, abs=1e-4)
    assert fit.slopes == pytest.approx([0.4377, 1.8386], abs=1e-4)
    assert fit.intercepts == pytest.approx([-0.0153, -0.7483], abs=1e-4)
    curve = list(fit.tradeoff_curve.items())
    assert [x for x, _ in curve][:5] == pytest.approx([0.01, 0.0614, 0.1127, 0.3176, 0.3689], abs=1e-4)
    assert [y for _, y in curve][-3:] == pytest.approx([0.4780, 0.7352, 1], abs=1e-4)


def test_a_module_that_works_in_place():
    class Foo(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(5, 10)
            self.relu1 = nn.ReLU(inplace=True)

        def forward(self, x):
            x = self.relu1(self.fc1(x))
            return torch.sin_(torch.cos_(x))

    dev = torch.cuda.current_device()
    with FakeTensorMode():
        with torch.device(dev):
            model = Foo()
        x = torch.rand((10, 5), device=dev)
        estimator = SACEstimator()
        with estimator(estimate_mode_type=BENCHMARK):
            loss = model(x).sum()
        loss.backward()
    stats = estimator.sac_mod_stats["Foo"]
    assert (stats.view_like_ops, stats.rand_ops) == ([0], [])
    assert stats.inplace_ops == [(2, 1), (3, 1), (4, 1)]
    assert all(ms > 0 for ms in stats.runtimes[1:]) and stats.runtimes[0] == 0


@pytest.mark.parametrize("mode", [BENCHMARK, COST_MODEL])
def test_both_modes_run_a_transformer(mode, capsys):
    with FakeTensorMode():
        model, tokens, step = _model(ModelArgs(vocab_size=64, max_seq_len=32), 2, torch.cuda.current_device())
        step()
        runtime = RuntimeEstimator()
        with runtime(estimate_mode_type=mode):
            step()
        sace = SACEstimator()
        with sace(estimate_mode_type=mode):
            loss = model(tokens).sum()
        loss.backward()
        sace.pwlf_sac_tradeoff_curve(n_segments=2, save_tradeoff_graphs=False)
    times = runtime.mod_runtimes
    assert runtime.total_runtime > 0 and times["Global"]["fw"] + times["Global"]["bw"] == pytest.approx(runtime.total_runtime)
    assert times["Transformer"]["fw"] >= times["Transformer.layers.0"]["fw"] + times["Transformer.layers.1"]["fw"] > 0
    assert len(runtime.mod_fw_pre_order) == len(runtime.mod_bw_post_order) == 1 + 5 + 2 * 14
    assert runtime.mod_fw_post_order[-1] == "Transformer" and runtime.mod_fw_pre_order[0] == "Transformer"
    assert set(sace.sac_mod_tradeoff_stats) == {"Transformer"} | {
        f"Transformer.layers.{i}{inner}" for i in range(2) for inner in ("", ".attention", ".feed_forward")
    }
    runtime.display_modulewise_stats(depth=3)
    sace.display_modulewise_sac_stats(depth=3, print_tabular=True)
    shown = capsys.readouterr().out
    assert f"Estimated ({mode}) total_time" in shown and "Transformer.layers.1: forward" in shown
    assert "Always Recomputed" in shown


def test_without_queries_the_total_is_that_of_the_ops():
    # Section 21: 24.199 ms forward and 49.801 ms backward by hand, without the reads that asking for a device is charged as.
    with FakeTensorMode():
        _, _, step = _model(PUBLISHED, BATCH, torch.cuda.current_device())
        step()
        estimator = RuntimeEstimator()
        with tidemark.compat.use(charges_device_queries=False), estimator(estimate_mode_type=COST_MODEL):
            step()
    times = estimator.mod_runtimes["Transformer"]
    assert times["fw"] == pytest.approx(24.199, abs=2e-3)
    assert times["bw"] == pytest.approx(49.801, abs=2e-2)
    assert tidemark.compat.settings().charges_device_queries is True


def _theirs(monkeypatch):
    """PyTorch's own estimators, told of the same device; they want a CUDA device to ask."""
    runtime = pytest.importorskip("torch.distributed._tools.runtime_estimator")
    sac_module = pytest.importorskip("torch.distributed._tools.sac_estimator")
    helper = pytest.importorskip("torch.utils._runtime_estimation")
    for module in (runtime, helper):
        for name, value in (("get_device_tflops", 19.49184), ("get_gpu_dram_gbps", 1935.36)):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, lambda *args, _value=value, **kwargs: _value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return runtime.RuntimeEstimator, sac_module.SACEstimator


def test_times_and_operators_are_those_of_pytorchs_estimators(monkeypatch):
    def estimated(runtime_class, sac_class):
        with FakeTensorMode():
            args = ModelArgs(vocab_size=512, max_seq_len=128, dim=256, n_heads=4)
            model, tokens, step = _model(args, 4, torch.cuda.current_device())
            step()
            runtime, sac = runtime_class(), sac_class()
            with runtime(estimate_mode_type=COST_MODEL):
                step()
            with sac(estimate_mode_type=COST_MODEL):
                loss = model(tokens).sum()
            loss.backward()
            return runtime, sac

    ours, our_sac = estimated(RuntimeEstimator, SACEstimator)
    with monkeypatch.context() as patch:
        theirs, their_sac = estimated(*_theirs(patch))
    # 2.13 does not round storages up to 512 B, which its predecessors did; that is less than 0.1 % here.
    assert ours.total_runtime == pytest.approx(theirs.total_runtime, rel=1e-3)
    for name, times in theirs.mod_runtimes.items():
        for phase in ("fw", "bw"):
            assert ours.mod_runtimes[name][phase] == pytest.approx(times[phase], rel=1e-2, abs=1e-5), (name, phase)
    for order in ("mod_fw_pre_order", "mod_fw_post_order", "mod_bw_pre_order", "mod_bw_post_order"):
        assert getattr(ours, order) == getattr(theirs, order)
    assert list(our_sac.sac_mod_stats) == list(their_sac.sac_mod_stats)
    for name, theirs_of in their_sac.sac_mod_stats.items():
        ours_of = our_sac.sac_mod_stats[name]
        for field in ("func_names", "memory", "view_like_ops", "rand_ops", "inplace_ops"):
            assert getattr(ours_of, field) == getattr(theirs_of, field), (name, field)
        # Theirs knows storages by their address, which another one may get later: some seem saved that are not.
        assert set(ours_of.saved_autograd_ops) <= set(theirs_of.saved_autograd_ops)
        assert ours_of.force_store_random == theirs_of.force_store_random


def test_misuse():
    with pytest.raises(NotImplementedError, match="cost-model"):
        RuntimeEstimator()("by-guessing")
    with pytest.raises(NotImplementedError, match="benchmark"):
        SACEstimator()("by-guessing")
    for estimator in (RuntimeEstimator(), SACEstimator()):
        with pytest.raises(AssertionError, match="FakeTensorMode"), estimator(COST_MODEL):
            pass
    with pytest.raises(ValueError, match="1 or 2"):
        SACEstimator().pwlf_sac_tradeoff_curve(n_segments=3)
    with pytest.raises(tidemark.Error, match="try: a10g, a100, a40"):
        tidemark.compat.use(device="a101")
    assert tidemark.compat.settings().device == "a100-80-pcie"


def test_statistics_of_ones_own():
    """The operators of section 20.3: greedy metadata and a fit need no model."""
    from tidemark.compat.sac_estimator import greedy_order_of, trade_off_of

    stats = SACStats(
        func_names=["copy_", "add", "div", "mm", "native_dropout", "linear", "t", "relu_"],
        runtimes=[5, 5, 8, 15, 15, 9, 1, 5],
        memory=[0, 100, 100, 120, 0, 100, 0, 0],
        view_like_ops=[6],
        rand_ops=[4],
        saved_autograd_ops=[],
        inplace_ops=[(0, 0), (7, 5)],
        force_store_random=False,
    )
    order = greedy_order_of(stats)
    assert (order.recomputed_ops, order.stored_ops) == ({6}, {0})
    assert order.inplace_op_groups == {0: {0}, 5: {5, 7}} and order.random_ops_group == {4: {4}}
    # Bytes per millisecond: add 20, div 12.5, mm 8, linear with relu_ 100 / 14, dropout 0.
    assert [(group.op_idx, group.memory, group.runtime) for group in order.msps_meta] == [
        (1, 100, 5),
        (2, 100, 8),
        (3, 120, 15),
        (5, 100, 14),
        (4, 0, 15),
    ]
    assert trade_off_of(stats).sac_memory == 420
