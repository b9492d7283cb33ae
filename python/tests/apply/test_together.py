"""Plans beside fully_shard, torch.compile and DataParallel."""

import copy
import gc

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
    # and likewise when it comes later
    model = helpers.small_gpt()
    gpt.selective.apply(model)
    fully_shard(model.blocks[1].mlp, mesh=mesh)
    with pytest.raises(tidemark.DriftError, match=r"\[blocks.1\] op \d+ of the call's forward.*likely cause: fully_shard on a module inside"):
        helpers.trained(model)
    tidemark.remove(model)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", ["full", "selective"])
@pytest.mark.parametrize("is_after_a_step", [False, True])
def test_compiling_a_model_with_a_plan_is_loud(gpt, helpers, kind, backend, is_after_a_step):
    torch._dynamo.reset()
    gc.collect()  # a planned model of the same class that goes while something is compiled would exchange the class's forward
    model = helpers.small_gpt()
    getattr(gpt, kind).apply(model)
    if is_after_a_step:
        helpers.trained(model, steps=1)
    with pytest.raises(tidemark.DriftError, match=r"\[\(root\)\] a module with a plan is being compiled.*torch.compile.*try: tidemark.remove\(model\) first"):
        torch.compile(model, backend=backend)(gpt.ids)
    model.blocks[1].compile(backend=backend)
    with pytest.raises(tidemark.DriftError, match=r"\[blocks.1\] a module with a plan is being compiled"):
        model(gpt.ids)
    tidemark.remove(model)
    gc.collect()
    torch.compile(model, backend=backend)(gpt.ids)  # and without the plan it works


def test_what_has_no_detour_can_be_compiled(gpt, helpers):
    torch._dynamo.reset()
    model = helpers.small_gpt()
    gpt.selective.apply(model)
    helpers.trained(model, steps=1)
    copied = copy.deepcopy(model)
    torch.compile(copied, backend="aot_eager", fullgraph=True)(gpt.ids).sum().backward()  # a copy is a plain model
    assert all(parameter.grad is not None for parameter in copied.parameters())
    model.eval()
    with torch.no_grad():
        assert torch.equal(torch.compile(model, backend="aot_eager", fullgraph=True)(gpt.ids), model(gpt.ids))
    tidemark.remove(model)


def test_a_module_that_is_compiled_later_inside_a_unit_changes_no_bits(gpt, helpers):
    torch._dynamo.reset()
    plain = helpers.trained(helpers.small_gpt())
    model = helpers.small_gpt()
    gpt.selective.apply(model)
    model.blocks[0].mlp.compile(backend="aot_eager")  # under a dispatch mode it runs eagerly
    assert helpers.equal(plain, helpers.trained(model))
    tidemark.remove(model)


def test_a_compiled_module_around_units_is_refused(gpt, helpers):
    model = helpers.small_gpt()
    model.compile(backend="eager")
    with pytest.raises(tidemark.Error, match="the model is compiled.*either a plan or torch.compile"):
        gpt.full.apply(model)
    model = helpers.small_gpt()
    model.blocks.compile(backend="eager")
    with pytest.raises(tidemark.Error, match=r"\[blocks\] the module is compiled, and with it the checkpointed ones inside"):
        gpt.full.apply(model)


def test_replicas_of_data_parallel_are_refused(gpt, helpers):
    model = helpers.small_gpt()
    gpt.full.apply(model)
    block = model.blocks[0]._replicate_for_data_parallel()  # what DataParallel makes of each module, for each further device
    x = torch.zeros(2, 32, 32)
    with pytest.raises(tidemark.DriftError, match=r"\[blocks.0\] a replica of the module is called.*DataParallel.*DistributedDataParallel"):
        block(x)
    helpers.small_gpt().blocks[0]._replicate_for_data_parallel()(x)  # of a model without a plan
    tidemark.remove(model)
