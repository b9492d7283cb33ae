"""The memory tracker against the allocator of `cuda` as a label, and against PyTorch's own tracker."""

import gc

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from .toy_transformer import ModelArgs, Transformer  # noqa: E402

from tidemark.compat.mem_tracker import MemTracker, _MemRefType, _ModState  # noqa: E402


def _before(device):
    """The way the original test starts: an unrelated product, then the allocator's figures."""
    lin, inp = nn.Linear(768, 768, device=device), torch.randn(1, 768, device=device)
    lin(inp).sum().backward()
    del lin, inp
    gc.collect()  # of all that earlier tests left, or it would die while this one measures
    module = torch.get_device_module(device)
    module.empty_cache()
    module.reset_accumulated_memory_stats(device)
    module.reset_peak_memory_stats(device)
    return module, module.memory_stats(device)["active_bytes.all.current"]


def test_peak_of_a_stack_of_layers():
    device = torch.device(torch.cuda.current_device())
    module, held = _before(device)
    bsz, n_layers, dim, dtype = 16, 4, 512, torch.bfloat16

    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.linears = nn.ModuleList()
            for _ in range(n_layers):
                self.linears.append(nn.Linear(dim, dim, dtype=dtype))
                self.linears.append(nn.ReLU())

        def forward(self, x):
            for layer in self.linears:
                x = layer(x)
            return x

    with torch.device(device):
        model = Stack()
    optim = torch.optim.Adam(model.parameters(), foreach=True)
    input_batch = torch.randn(bsz, dim, device=device, dtype=dtype)
    mem_tracker = MemTracker()
    mem_tracker.track_external(model, optim, input_batch)
    with mem_tracker as mt:
        for iter_idx in range(2):
            model(input_batch).sum().backward()
            optim.step()
            optim.zero_grad()
            if iter_idx == 0:
                mt.reset_mod_stats()
    peak = mt.get_tracker_snapshot("peak")[device]["Total"]
    allocated = module.memory_stats(device)["active_bytes.all.peak"] - held
    assert peak / allocated == pytest.approx(1.0, abs=0.1)
    # Parameters, gradients and two moments, each 4 (512 x 512 + 512) bfloat16 numbers, must be in it.
    assert peak >= 4 * 4 * (512 * 512 + 512) * 2


def test_peak_with_checkpointed_blocks():
    device = torch.device(torch.accelerator.current_device_index())
    module, held = _before(device)
    bsz, n_layers, dim, dtype = 128, 4, 1024, torch.float16

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.mlp_block = nn.Sequential(
                nn.Linear(dim, 2 * dim, dtype=dtype), nn.ReLU(), nn.Linear(2 * dim, dim, dtype=dtype)
            )

        def forward(self, x):
            return self.mlp_block(x)

    class Blocks(nn.Module):
        def __init__(self):
            super().__init__()
            self.mlp_blocks = nn.ModuleList(Block() for _ in range(n_layers))

        def forward(self, x):
            for i, block in enumerate(self.mlp_blocks):
                x = checkpoint(block, x, preserve_rng_state=True, use_reentrant=False) if i >= 1 else block(x)
            return x

    with torch.device(device):
        model = Blocks()
    optim = torch.optim.Adam(model.parameters(), foreach=True)
    mem_tracker = MemTracker()
    mem_tracker.track_external(model, optim)
    with mem_tracker as mt:
        input_batch = torch.randn(bsz, dim, dim, device=device, dtype=dtype)
        for iter_idx in range(2):
            model(input_batch).sum().backward()
            optim.step()
            optim.zero_grad()
            if iter_idx == 0:
                mt.reset_mod_stats()
    peak = mt.get_tracker_snapshot("peak")[device]["Total"]
    allocated = module.memory_stats(device)["active_bytes.all.peak"] - held
    assert peak / allocated == pytest.approx(1.0, abs=0.1)
    states = {stats.mod_fqn: stats.snapshots for stats in mt.memory_tracking.values()}
    assert _ModState.PRE_FW_AC in states["Blocks.mlp_blocks.1"] and _ModState.PRE_FW_AC not in states["Blocks.mlp_blocks.0"]
    del input_batch


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_attribution(device):
    dev = torch.device("cpu") if device == "cpu" else torch.device(torch.cuda.current_device())
    bsz, n_layers, dim = 16, 3, 128

    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.MLP_layers = nn.ModuleList()
            for _ in range(n_layers):
                self.MLP_layers.extend([nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim), nn.GELU()])

        def forward(self, x):
            for layer in self.MLP_layers:
                x = layer(x)
            return x

    with torch.device(dev):
        model = Stack()
    optim = torch.optim.Adam(model.parameters(), foreach=True)
    mem_tracker = MemTracker()
    mem_tracker.track_external(model, optim)

    def check():
        parameters = sum(p.numel() * p.element_size() for p in model.parameters() if p.device == dev)
        gradients = [p.grad for p in model.parameters() if p.grad is not None and p.grad.device == dev]
        states = [v for state in optim.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
        expected = {
            "Parameter": parameters,
            "Gradient": sum(g.numel() * g.element_size() for g in gradients),
            "Optstate": sum(v.numel() * v.element_size() for v in states if v.device == dev),
        }
        snapshot = mt.get_tracker_snapshot()[dev]
        for kind, size in expected.items():
            assert snapshot[kind] == pytest.approx(size, rel=0.1), kind
        return expected

    with mem_tracker as mt:
        input_batch = torch.randn(bsz, dim, device=dev)
        assert check()["Parameter"] > 0
        output = model(input_batch)
        output.sum().backward()
        assert check()["Gradient"] > 0
        output = None
        optim.step()
        assert check()["Optstate"] > 0
        optim.zero_grad()
        assert check()["Gradient"] == 0
    del output


def _plain(value):
    """With texts for keys, and without devices that hold nothing: theirs forgets those, ours keeps them."""
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if not (isinstance(item, dict) and item.get("Total") == 0)}
        return {str(getattr(key, "value", key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _tracked(tracker_class, make_step):
    with FakeTensorMode():
        model, optimizer, step = make_step()
        tracker = tracker_class()
        tracker.track_external(model, optimizer)
        with tracker:
            for iteration in range(2):
                step()
                if iteration == 0:
                    tracker.reset_mod_stats()
            now = tracker.get_tracker_snapshot("current")
        found = {"peak": tracker.get_tracker_snapshot("peak"), "current": now}
        for stats in tracker.memory_tracking.values():
            bytes_ = [stats.parameter_mem, stats.buffer_mem, stats.input_mem, stats.output_mem]
            found[stats.mod_fqn] = [bytes_, stats.snapshots]
        return _plain(found)


def _gpt_step():
    args = ModelArgs(n_layers=2, vocab_size=64, max_seq_len=32, dim=48, n_heads=4)
    with torch.device("cuda"):
        model = Transformer(args)
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    tokens = torch.randint(0, 64, (2, 32), device="cuda")

    def step():
        model(tokens).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, step


def _conv_step():
    with torch.device("cuda"):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(1152, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images = torch.randn(4, 3, 14, 14, device="cuda")

    def step():
        out = model(images)
        out.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, step


def _checkpointed_step():
    with torch.device("cuda"):
        model = nn.Sequential(nn.Linear(32, 64), nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Dropout(0.1)), nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(16, 32, device="cuda")

    def step():
        h = checkpoint(model[1], model[0](x), use_reentrant=False)
        model[2](h).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, step


@pytest.mark.parametrize("make_step", [_gpt_step, _conv_step, _checkpointed_step])
def test_every_snapshot_is_that_of_pytorchs_tracker(make_step):
    theirs = pytest.importorskip("torch.distributed._tools.mem_tracker")
    assert _tracked(MemTracker, make_step) == _tracked(theirs.MemTracker, make_step)


def test_misuse(capsys):
    tracker = MemTracker()
    with pytest.raises(TypeError, match="str cannot be tracked"):
        tracker.track_external("model")
    tracker.track_external(None)
    with pytest.raises(ValueError, match="peak"):
        tracker.get_tracker_snapshot("now")
    with pytest.raises(ValueError, match="KiB"):
        tracker.display_snapshot(units="TiB")
    model = nn.Sequential(nn.Linear(4, 4))
    with tracker:
        model(torch.ones(2, 4))
        with pytest.raises(NotImplementedError, match="reset_mod_stats"):
            model(torch.ones(2, 4))
    tracker.display_snapshot("peak")
    assert "Device: cpu\n\tParameter: 80 B\n" in capsys.readouterr().out  # 4 x 4 + 4 numbers of 4 bytes
    tracker.display_modulewise_snapshots(depth=2, units="KiB", tabulate=True)
    shown = capsys.readouterr().out
    assert "Module: Sequential.0" in shown and "Pre-Forward #1" in shown and "0.08 KiB" in shown


def test_a_resized_storage():
    tracker = MemTracker()
    t = torch.zeros(1000)
    tracker.track_external(t)
    assert tracker.get_tracker_snapshot()[torch.device("cpu")][_MemRefType.OTH] == 4000
    with tracker:
        t.untyped_storage().resize_(400)
    assert tracker.get_tracker_snapshot()[torch.device("cpu")][_MemRefType.OTH] == 400
