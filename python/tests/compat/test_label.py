"""`cuda` as a label in a PyTorch without CUDA."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import tidemark.compat  # noqa: E402,F401

pytestmark = pytest.mark.skipif(torch.backends.cuda.is_built(), reason="this PyTorch knows CUDA itself")
CUDA = torch.device("cuda:0")


def test_the_current_device_is_a_device_and_a_number():
    current = torch.cuda.current_device()
    assert torch.device(current) == CUDA
    assert (current == 0, int(current), f"cuda:{current}", [7][current]) == (True, 0, "cuda:0", 7)
    assert torch.cuda.is_available() is False  # nothing else is claimed


@pytest.mark.parametrize("in_fake_mode", [False, True])
def test_factories_modules_and_moves(in_fake_mode):
    with FakeTensorMode() if in_fake_mode else torch.enable_grad():
        with torch.device("cuda"):
            made = [torch.ones(3), nn.Linear(2, 2).weight, nn.Embedding(4, 4).weight]
        made += [
            torch.zeros(2, device="cuda"),
            torch.arange(4, device=torch.cuda.current_device()),
            torch.ones(2).cuda(),
            torch.ones(2).to("cuda"),
            torch.ones(2).to(CUDA, torch.float16),
            torch.zeros_like(torch.ones(2, device="cuda")),
        ]
        made += nn.Linear(2, 2, device="cuda").parameters()
        if not in_fake_mode:  # PyTorch does not move modules of fake tensors, whatever the device
            made += nn.Linear(2, 2).to("cuda").parameters()
        assert all(isinstance(t, FakeTensor) and t.device == CUDA and t.is_cuda for t in made)
        assert made[7].dtype == torch.float16
        back = made[0].cpu()
        assert back.device.type == "cpu" and made[0].to("cpu").device.type == "cpu"
        assert torch.ones(2).device.type == "cpu"


def test_autograd_stays_on_the_label():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.GELU()).cuda()
    x = torch.randn(4, 8, device="cuda", requires_grad=True)
    model(x).to(torch.float64).sum().backward()
    assert x.grad.device == CUDA
    assert all(p.grad.device == CUDA and p.grad.is_cuda for p in model.parameters())


def test_optimizer_state():
    weight = nn.Parameter(torch.ones(4, device="cuda"))
    optimizer = torch.optim.AdamW([weight], foreach=True)
    weight.sum().backward()
    optimizer.step()
    state = optimizer.state[weight]
    assert state["exp_avg"].device == CUDA and state["step"].device.type == "cpu"


def _ops(function):
    seen = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func._overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    with FakeTensorMode(), Watch():
        function()
    return seen


def test_kernels_are_those_of_a_gpu():
    def attend(device, dtype):
        q = torch.ones(1, 4, 16, 32, device=device, dtype=dtype)
        return F.scaled_dot_product_attention(q, q, q, is_causal=True)

    assert "_scaled_dot_product_efficient_attention" in _ops(lambda: attend("cuda", torch.float32))
    assert "_scaled_dot_product_flash_attention" in _ops(lambda: attend("cuda", torch.bfloat16))
    assert "_scaled_dot_product_flash_attention_for_cpu" in _ops(lambda: attend("cpu", torch.float32))
    assert "native_dropout" in _ops(lambda: F.dropout(torch.ones(4, device="cuda")))
    assert "native_dropout" not in _ops(lambda: F.dropout(torch.ones(4)))


def test_memory_stats_follow_what_lives():
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    t = torch.empty(1000, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4096  # 4000 bytes in blocks of 512
    view = t[10:]
    assert torch.cuda.memory_allocated() - before == 4096
    del t
    assert torch.cuda.memory_allocated() - before == 4096
    del view
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() - before == 4096


def test_values_are_not_to_be_had():
    with pytest.raises(Exception, match="_local_scalar_dense"):
        torch.ones(2, device="cuda").tolist()


def test_other_tensors_are_left_alone():
    x = torch.randn(3, 3, requires_grad=True)
    F.dropout(x.double().to(torch.float32) @ x, 0.5).sum().backward()
    assert type(x.grad) is torch.Tensor and x.grad.device.type == "cpu" and x.cpu() is x


def test_pytorchs_test_helpers_see_the_label():
    """In a process of its own: the helpers change PyTorch's settings when they are imported."""
    pytest.importorskip("expecttest")
    program = (
        "import tidemark.compat, torch\n"
        "from torch.testing._internal.common_utils import TEST_CUDA as a\n"
        "from torch.testing._internal.common_cuda import TEST_CUDA as b\n"
        "tidemark.compat.label_cuda(False)\n"
        "from torch.testing._internal import common_utils\n"
        "print(a, b, common_utils.TEST_CUDA, torch.cuda.is_available())\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert found.stdout.split() == ["True", "True", "False", "False"]
