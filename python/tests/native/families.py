"""For every family: a small native model, and the PyTorch model that it must equal.

`pairs()[name]` is (config, options, build): `config` is what tidemark.native takes, `build()` returns the PyTorch model and
a function that computes the loss.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from . import plain_models as plain

VOCABULARY = 64


def _language(cls: str, config: dict, batch=(2, 16)):
    def build():
        import transformers

        kind = getattr(transformers, cls)
        model = kind(kind.config_class(**config, use_cache=False)).train()
        ids = torch.randint(0, VOCABULARY, batch)
        return model, lambda: model(input_ids=ids, labels=ids).loss

    return config, {"batch": batch[0], "seq": batch[1]}, build


def _without(config: dict, key: str) -> dict:
    return {k: v for k, v in config.items() if k != key}


def _images(config: dict, batch=2):
    def build():
        import transformers

        model = transformers.ViTForImageClassification(transformers.ViTConfig(**config)).train()
        side = config["image_size"] if isinstance(config["image_size"], int) else config["image_size"][0]
        images = torch.randn(batch, 3, side, side)
        labels = torch.randint(0, config["num_labels"], (batch,))
        return model, lambda: model(pixel_values=images, labels=labels).loss

    return config, {"batch": batch}, build


def _hf_resnet(config: dict):
    def build():
        import transformers

        model = transformers.ResNetForImageClassification(transformers.ResNetConfig(**config)).train()
        images, labels = torch.randn(2, 3, 64, 64), torch.randint(0, 10, (2,))
        return model, lambda: model(pixel_values=images, labels=labels).loss

    return config, {"batch": 2, "image": 64}, build


GPT2 = {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": VOCABULARY, "n_positions": 16}
DECODER = {
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
}
T5 = {
    "model_type": "t5",
    "num_layers": 2,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_heads": 4,
    "vocab_size": VOCABULARY,
    "decoder_start_token_id": 0,
}
# The second version: a gated MLP, a head whose input is not scaled; heads wider than the model, fewer decoders.
T5_GATED = {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 1, "d_kv": 16}
BERT = {
    "model_type": "bert",
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 32,
}
VIT = {
    "model_type": "vit",
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
    "num_labels": 10,
}
HF_RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 16],
    "depths": [2, 1],
    "layer_type": "basic",
    "num_labels": 10,
}
NO_DROPOUT = {"embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}


def pairs() -> dict:
    return {
        "gpt2": _language("GPT2LMHeadModel", GPT2),
        "gpt2, a padding token": _language("GPT2LMHeadModel", {**GPT2, "pad_token_id": 5}),
        "gpt2 without dropout": _language("GPT2LMHeadModel", {**GPT2, **NO_DROPOUT}, (1, 8)),
        "llama": _language("LlamaForCausalLM", {"model_type": "llama", **DECODER}),
        "llama, all heads their own": _language(
            "LlamaForCausalLM", {"model_type": "llama", **DECODER, "num_key_value_heads": 4, "tie_word_embeddings": True}, (1, 16)
        ),
        "qwen2": _language("Qwen2ForCausalLM", {"model_type": "qwen2", **DECODER}),
        "mistral": _language("MistralForCausalLM", {"model_type": "mistral", **DECODER, "sliding_window": None}),
        "mixtral": _language("MixtralForCausalLM", {"model_type": "mixtral", **DECODER, "num_local_experts": 4}),
        "gemma": _language("GemmaForCausalLM", {"model_type": "gemma", **DECODER, "head_dim": 16}),
        "gemma, one key head": _language(
            "GemmaForCausalLM", {"model_type": "gemma", **DECODER, "head_dim": 16, "num_key_value_heads": 1}
        ),
        "llama, one key head, one sequence": _language(
            "LlamaForCausalLM", {"model_type": "llama", **DECODER, "num_key_value_heads": 1}, (1, 8)
        ),
        "one token": _language("LlamaForCausalLM", {"model_type": "llama", **DECODER}, (2, 1)),
        "gpt2, one token": _language("GPT2LMHeadModel", GPT2, (1, 1)),
        "bert, all positions": _language("BertForMaskedLM", BERT, (2, 32)),
        "bert, no padding": _language("BertForMaskedLM", {**BERT, "pad_token_id": None}),
        "llama, padding from the end": _language("LlamaForCausalLM", {"model_type": "llama", **DECODER, "pad_token_id": -1}),
        "llama, odd heads": _language("LlamaForCausalLM", {"model_type": "llama", **DECODER, "hidden_size": 40}),
        "mistral, library's key heads and window": _language(
            "MistralForCausalLM",
            {"model_type": "mistral", **_without(DECODER, "num_key_value_heads"), "num_attention_heads": 16, "hidden_size": 64},
        ),
        "mixtral, one expert": _language(
            "MixtralForCausalLM", {"model_type": "mixtral", **DECODER, "num_local_experts": 1, "num_experts_per_tok": 1}
        ),
        "mixtral, odd rows": _language(
            "MixtralForCausalLM",
            {
                "model_type": "mixtral",
                **DECODER,
                "hidden_size": 36,
                "num_attention_heads": 2,
                "intermediate_size": 44,
                "num_local_experts": 3,
            },
        ),
        "vit, one image": _images(VIT, 1),
        "t5": _language("T5ForConditionalGeneration", T5),
        "t5, another padding token": _language("T5ForConditionalGeneration", {**T5, "pad_token_id": 3}),
        "t5 gated": _language("T5ForConditionalGeneration", T5_GATED),
        "t5 without dropout": _language("T5ForConditionalGeneration", {**T5, "dropout_rate": 0.0}, (2, 8)),
        "bert": _language("BertForMaskedLM", BERT),
        "bert without dropout": _language(
            "BertForMaskedLM", {**BERT, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        ),
        "vit": _images(VIT),
        "vit, sizes as lists": _images({**VIT, "image_size": [32, 32], "patch_size": [8, 8]}),
        "vit with dropout": _images({**VIT, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}),
        "resnet of transformers": _hf_resnet(HF_RESNET),
        "resnet of transformers, bottlenecks": _hf_resnet(
            {**HF_RESNET, "layer_type": "bottleneck", "downsample_in_first_stage": True, "downsample_in_bottleneck": True}
        ),
        "gpt2, exact gelu": _language("GPT2LMHeadModel", {**GPT2, "activation_function": "gelu"}),
        "llama, quick gelu": _language("LlamaForCausalLM", {"model_type": "llama", **DECODER, "hidden_act": "quick_gelu"}),
        "mixtral, swish": _language(
            "MixtralForCausalLM", {"model_type": "mixtral", **DECODER, "num_local_experts": 4, "hidden_act": "swish"}
        ),
        "bert, relu": _language("BertForMaskedLM", {**BERT, "hidden_act": "relu"}),
        "t5 gated with silu": _language("T5ForConditionalGeneration", {**T5, "feed_forward_proj": "gated-silu"}),
        "t5, what the library writes beside": _language(
            "T5ForConditionalGeneration", {**T5, "dense_act_fn": "gelu_pytorch_tanh", "is_gated_act": True}
        ),
        "t5, tanh": _language("T5ForConditionalGeneration", {**T5, "feed_forward_proj": "tanh"}),
        "vit, gelu of gpt2": _images({**VIT, "hidden_act": "gelu_new"}),
        "toy gpt": ("toy-gpt", {"batch": 2, "seq": 16}, _toy),
        "unet by its keys": ({"model_type": "unet"}, {"batch": 2, "image": 32}, _unet),
        "unet": ("unet", {"batch": 2, "image": 32}, _unet),
        "resnet18": ("resnet18", {"batch": 2, "image": 64}, lambda: _resnet(plain.BasicBlock, [2, 2, 2, 2])),
        "resnet50": ("resnet50", {"batch": 2, "image": 64}, lambda: _resnet(plain.Bottleneck, [3, 4, 6, 3])),
    }


def _toy():
    model = plain.ToyGPT()
    tokens = torch.randint(0, 8, (2, 16))
    return model, lambda: model(tokens).sum()


def _unet():
    model = plain.UNet()
    images, targets = torch.randn(2, 3, 32, 32), torch.randn(2, 3, 32, 32)
    return model, lambda: F.mse_loss(model(images), targets)


def _resnet(block, layers):
    model = plain.ResNet(block, layers)
    images, labels = torch.randn(2, 3, 64, 64), torch.randint(0, 1000, (2,))
    return model, lambda: F.cross_entropy(model(images), labels)
