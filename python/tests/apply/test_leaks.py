"""Planned steps keep nothing: live bytes are flat, without any help of the cycle collector."""

import gc
import weakref

import pytest
import torch

import tidemark

pytestmark = pytest.mark.fast


def live_bytes() -> int:
    seen = {}
    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor):  # not isinstance, which asks things of other libraries for their class
            storage = thing.untyped_storage()
            seen[storage._cdata] = storage.nbytes()
    return sum(seen.values())


@pytest.mark.parametrize("kind", ["full", "selective"])
def test_twenty_steps_leave_live_bytes_flat(gpt, helpers, kind):
    model = helpers.small_gpt()
    getattr(gpt, kind).apply(model)
    run = helpers.step_of(model, torch.optim.SGD(model.parameters(), lr=0.1), gpt.ids)
    for _ in range(3):
        run()
    gc.collect()
    gc.disable()
    try:
        found = []
        for _ in range(20):
            run()
            found.append(live_bytes())
        assert len(set(found)) == 1
    finally:
        gc.enable()
    tidemark.remove(model)


@pytest.mark.parametrize("kind", ["full", "selective"])
def test_no_cycle_keeps_an_activation(gpt, helpers, kind):
    model = helpers.small_gpt()
    getattr(gpt, kind).apply(model)
    gc.collect()
    gc.disable()
    try:
        refs = []
        handle = model.blocks[1].mlp[0].register_forward_hook(lambda m, a, out: refs.append(weakref.ref(out)))
        loss = model(gpt.ids).sum()
        loss.backward()
        del loss
        assert refs and all(ref() is None for ref in refs)
        output = model(gpt.ids)  # a forward whose backward never comes
        del output
        assert all(ref() is None for ref in refs)
        handle.remove()
    finally:
        gc.enable()
    tidemark.remove(model)
