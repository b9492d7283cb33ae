"""Plans beside fully_shard and torch.compile."""

import pytest
import torch

import tidemark


@pytest.fixture
def mesh():
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


def test_sharded_modules_may_be_units_in_either_order(gpt, helpers, mesh):
    from torch.distributed.fsdp import fully_shard

    def whole(values):
        return [value.full_tensor() if hasattr(value, "full_tensor") else value for value in values]

    plain = helpers.trained(helpers.small_gpt())
    for is_first in (True, False):
        model = helpers.small_gpt()
        if is_first:
            gpt.selective.apply(model)
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        if not is_first:
            gpt.selective.apply(model)
        assert helpers.equal(plain, whole(helpers.trained(model)))
        tidemark.remove(model)
    model = helpers.small_gpt()
    for block in model.blocks:
        fully_shard(block.mlp, mesh=mesh)
    with pytest.raises(tidemark.Error, match=r"\[blocks.0\] mlp is sharded by fully_shard inside a checkpointed module"):
        gpt.selective.apply(model)


@pytest.mark.parametrize("kind", ["full", "selective"])
def test_compiling_a_model_with_a_plan_is_loud(gpt, helpers, kind):
    model = helpers.small_gpt()
    getattr(gpt, kind).apply(model)
    with pytest.raises(tidemark.DriftError, match="torch.compile, which makes other ops"):
        torch.compile(model, backend="aot_eager")(gpt.ids)
    tidemark.remove(model)
