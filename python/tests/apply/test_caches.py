"""Models of `transformers` as they are by default, with a cache of keys and values that each layer adds to."""

import gc
import weakref

import pytest
import torch

import tidemark

transformers = pytest.importorskip("transformers")


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=3, n_embd=32, n_head=2, vocab_size=64, n_positions=32, bos_token_id=0, eos_token_id=0))


def llama():
    config = transformers.LlamaConfig(hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=64, vocab_size=64)
    return transformers.LlamaForCausalLM(config)


def t5():
    config = transformers.T5Config(d_model=32, d_kv=8, num_layers=2, num_heads=4, d_ff=64, vocab_size=64, decoder_start_token_id=0)
    return transformers.T5ForConditionalGeneration(config)


def built(family):
    torch.manual_seed(0)
    model = family().train()
    assert model.config.use_cache
    return model


@pytest.mark.parametrize("family", [gpt2, llama, t5])
def test_training_with_a_cache(family):
    ids = torch.arange(8 * 16).view(8, 16) % 61 + 1
    model = built(family)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step_of(model, optimizer):
        def step():
            optimizer.zero_grad()
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()

        return step

    step = tidemark.capture(step_of(model, optimizer), model, optimizer)
    least = tidemark.plan(step, 1)
    half = (least.smallest_peak_bytes + least.unplanned_peak_bytes) // 2
    for budget in (least.smallest_peak_bytes, half):
        result = tidemark.plan(step, budget + least.reserve_bytes)
        layers = [call.id for call in step.calls if "Attention" in step.modules[call.module].type]
        assert set(layers) & {call for call, _ in result.plan.units} or budget == half
        results = []
        for plan in (None, result.plan):
            model = built(family)
            if plan is not None:
                plan.apply(model)
            torch.manual_seed(1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(2):
                step_of(model, optimizer)()
            results.append([p.grad for p in model.parameters()])
        assert all(map(torch.equal, *results))
        audit = tidemark.audit(step_of(model, optimizer), model)
        assert audit.agrees, str(audit)
        tidemark.remove(model)


# The cache is the program's: it is filled as without a plan, and nothing of the plan keeps it.
def test_the_cache_itself_is_left_alone():
    ids = torch.arange(4 * 8).view(4, 8) % 61 + 1
    model = built(llama)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()

    recorded = tidemark.capture(step, model, optimizer, workspace=False)
    tidemark.Plan.policy(recorded, "full").apply(model)
    output = model(input_ids=ids, labels=ids)
    assert [layer.keys.shape[-2] for layer in output.past_key_values.layers] == [8, 8, 8]
    loss, keys = output.loss, [weakref.ref(layer.keys) for layer in output.past_key_values.layers]
    gc.disable()
    try:
        del output
        assert all(ref() is None for ref in keys)
        loss.backward()
    finally:
        gc.enable()
    tidemark.remove(model)
