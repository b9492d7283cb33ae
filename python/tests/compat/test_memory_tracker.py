"""The older tracker, as the reference's test uses it: a small convolution network on the label."""

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tidemark.compat import MemoryTracker  # noqa: E402

pytestmark = pytest.mark.fast


def test_a_step_is_recorded_by_operator(tmp_path, capsys):
    device = torch.device("cuda")
    with device:
        model = nn.Sequential(
            nn.Sequential(nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d((1, 1))),
            nn.Flatten(),
            nn.Sequential(nn.Linear(64, 2), nn.ReLU(inplace=True)),
        )
    tracker = MemoryTracker()
    tracker.start_monitor(model)
    with pytest.raises(AssertionError, match="stop"):
        tracker.start_monitor(model)
    x = torch.randn(2, 3, 224, 224, device=device)
    target = torch.zeros(2, dtype=torch.int64, device=device)
    nn.CrossEntropyLoss()(model(x), target).backward()
    assert tracker._hooks
    tracker.stop()
    assert not tracker._hooks and tracker._op_index > 0
    for series in (tracker.memories_allocated, tracker.memories_active, tracker.memories_reserved):
        assert len(series) == tracker._op_index
    assert list(tracker._markers) == ["fw_start", "fw_bw_boundary"] and tracker._cur_module_name == "2.1.forward"
    # The convolution makes [2, 64, 224, 224] in float32: 24.5 MiB, a multiple of 512 B.
    rows = list(tracker.memories_allocated.values())
    at = next(i for i, (name, _) in enumerate(rows) if name == "0.0.forward.convolution.default_0")
    assert rows[at][1] - rows[at - 1][1] == pytest.approx(2 * 64 * 224 * 224 * 4 / 2**20)

    tracker.summary()
    first = capsys.readouterr().out
    assert "0.0.forward.convolution.default_0: 24.5MB" in first
    tracker.save_stats(str(tmp_path / "trace"))
    loaded = MemoryTracker()
    loaded.load(str(tmp_path / "trace"))
    loaded.summary()
    assert capsys.readouterr().out == first and loaded._op_index == tracker._op_index
