"""Groups and sizes of collectives: the table of section 20.4 (world 4, float32, tensors of 100 and 400 numbers)."""

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
import torch.distributed._functional_collectives as functional  # noqa: E402
from torch._C._distributed_c10d import FakeWork, ProcessGroup  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from tidemark.compat.fake_collectives import (  # noqa: E402
    CollectiveOp,
    collective_ops,
    functional_collectives,
    non_functional_collectives,
    sync_ops,
)

# Bytes: 400 is a tensor of 100, 1600 one of 400 or four of 100, 6400 four of 400.
EXPECTED = {
    400: "c10d.broadcast_ c10d.allreduce_ c10d.reduce_ c10d.send c10d.recv_ _c10d_functional.broadcast "
    "_c10d_functional.all_reduce _c10d_functional.all_to_all_single _c10d_functional_autograd.all_to_all_single",
    1600: "c10d.allgather_ c10d.reduce_scatter_ c10d._reduce_scatter_base_ c10d.scatter_ c10d.gather_ c10d._allgather_base_ "
    "c10d.alltoall_ c10d.alltoall_base_ _c10d_functional.all_gather_into_tensor "
    "_c10d_functional_autograd.all_gather_into_tensor _c10d_functional.reduce_scatter_tensor "
    "_c10d_functional_autograd.reduce_scatter_tensor _c10d_functional.all_reduce_coalesced "
    "_c10d_functional.reduce_scatter_tensor_coalesced",
    6400: "_c10d_functional.all_gather_into_tensor_coalesced",
}


class Watch(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.sizes = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        res = func(*args, **(kwargs or {}))
        if func in collective_ops:
            if func is not torch.ops._c10d_functional.wait_tensor.default:
                group = CollectiveOp.get_process_group(func, args)
                assert isinstance(group, ProcessGroup) and group == dist.group.WORLD and group.size() == 4
            if func not in sync_ops:
                self.sizes[str(func).removesuffix(".default")] = CollectiveOp.get_comm_tensor_size(func, res, args, kwargs)
            if func in non_functional_collectives:
                assert isinstance(CollectiveOp.get_work(func, res), FakeWork)
        return res


@pytest.fixture
def world():
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    torch.cuda.set_device(torch.cuda.current_device())
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_collectives(world):
    with FakeTensorMode(), Watch() as watch:
        small, large = torch.randn(100, device="cuda"), torch.randn(400, device="cuda")
        smalls = [torch.randn(100, device="cuda") for _ in range(4)]
        larges = [torch.randn(400, device="cuda") for _ in range(4)]
        dist.broadcast(small, src=0)
        dist.all_reduce(small)
        dist.reduce(small, dst=0)
        dist.send(small, dst=1)
        dist.recv(small, src=1)
        dist.all_gather(smalls, small)
        dist.reduce_scatter(small, smalls)
        dist.reduce_scatter_tensor(small, large)
        dist.scatter(small, scatter_list=smalls, src=0)
        dist.gather(small, gather_list=smalls, dst=0)
        dist.all_gather_into_tensor(large, small)
        dist.all_to_all(smalls, smalls)
        dist.all_to_all_single(large, large)
        dist.barrier()
        functional.wait_tensor(small)
        functional.broadcast(small, src=0, group=world)
        functional.all_reduce(small, reduceOp="avg", group=world)
        functional.all_gather_tensor(small, gather_dim=0, group=world)
        functional.all_gather_tensor_autograd(small, gather_dim=0, group=world)
        functional.reduce_scatter_tensor(large, scatter_dim=0, reduceOp="sum", group=world)
        functional.reduce_scatter_tensor_autograd(large, scatter_dim=0, reduceOp="sum", group=world)
        functional.all_to_all_single(small, output_split_sizes=[0], input_split_sizes=[1], group=world)
        functional.all_reduce_coalesced(smalls, reduceOp="avg", group=world)
        functional.all_gather_into_tensor_coalesced(smalls, group=world)
        functional.reduce_scatter_tensor_coalesced(larges, scatter_dim=[0] * 4, reduceOp="sum", group=world)
        functional.all_to_all_single_autograd(small, output_split_sizes=[0], input_split_sizes=[1], group=world)
    expected = {name: size for size, names in EXPECTED.items() for name in names.split()}
    # Without gradients PyTorch runs the functional ops in place of their differentiable forms.
    asked = {name: size for name, size in expected.items() if "autograd" not in name}
    assert watch.sizes == asked
    differentiable = torch.ops._c10d_functional_autograd
    empty = torch.empty(0)
    for op, args, result in (
        (differentiable.all_gather_into_tensor, (torch.empty(100), 4, ""), torch.empty(400)),
        (differentiable.reduce_scatter_tensor, (torch.empty(400), "sum", 4, ""), torch.empty(100)),
        (differentiable.all_to_all_single, (torch.empty(100), [0], [1], ""), empty),
    ):
        name = f"_c10d_functional_autograd.{op.__name__}"
        assert CollectiveOp.get_comm_tensor_size(op.default, result, args, {}) == expected[name]


def test_the_sets_are_those_of_this_pytorch():
    theirs = pytest.importorskip("torch.distributed._tools.fake_collectives")
    assert non_functional_collectives == theirs.non_functional_collectives
    assert functional_collectives == theirs.functional_collectives
    assert sync_ops == theirs.sync_ops


def test_what_is_no_collective():
    for ask in (
        lambda: CollectiveOp.get_process_group(torch.ops.aten.mm.default, ()),
        lambda: CollectiveOp.get_comm_tensor_size(torch.ops.aten.mm.default, None, (), {}),
        lambda: CollectiveOp.get_work(torch.ops.aten.mm.default, None),
        lambda: CollectiveOp.get_comm_tensor_size(torch.ops.c10d.barrier.default, None, (), {}),
    ):
        with pytest.raises(TypeError):
            ask()


def test_sets_of_ops_are_the_references():
    reference = pytest.importorskip("torch.distributed._tools.fake_collectives").CollectiveOp
    names = [name for name in vars(reference) if name.isupper()]
    assert len(names) >= 13
    for name in names:
        assert getattr(CollectiveOp, name) == getattr(reference, name), name
