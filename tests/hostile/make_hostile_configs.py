"""Writes tests/hostile/configs: one config file for each attack. The message of each stands in configs_test.cpp."""

import json
import pathlib

FOLDER = pathlib.Path(__file__).parent / "configs"
LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "vocab_size": 64,
}
GPT2 = {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 64}
T5 = {"model_type": "t5", "num_layers": 2, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_heads": 4, "vocab_size": 64}
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_key_value_heads": 2}
BERT = {**LLAMA, "model_type": "bert"}
VIT = {**LLAMA, "model_type": "vit", "image_size": 32, "patch_size": 8}
RESNET = {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}


def without(config, key):
    return {k: v for k, v in config.items() if k != key}


def text(config, **replaced):
    """JSON in which a value is any text, also one that is no JSON."""
    marked = json.dumps({**config, **{key: f"@{key}@" for key in replaced}})
    for key, value in replaced.items():
        marked = marked.replace(f'"@{key}@"', value)
    return marked


FILES = {
    "heads_not_dividing": {**LLAMA, "num_attention_heads": 3},
    "heads_not_dividing_gpt2": {**GPT2, "n_head": 5},
    "heads_not_dividing_vit": {**VIT, "num_attention_heads": 5},
    "key_heads_not_dividing": {**LLAMA, "num_key_value_heads": 3},
    "head_odd": {**LLAMA, "head_dim": 7},
    "head_zero": {**LLAMA, "head_dim": 0},
    "head_wide_and_shared": {**LLAMA, "head_dim": 320, "num_key_value_heads": 2},
    "inner_zero": {**GPT2, "n_inner": 0},
    "positions_by_another_name": {**GPT2, "max_position_embeddings": 16},
    "experts_by_another_name": {**MIXTRAL, "num_experts": 4},
    "hidden_states_kept": {**LLAMA, "output_hidden_states": True},
    "attention_both_ways": {**LLAMA, "model_type": "gemma", "use_bidirectional_attention": True},
    "heads_zero": {**LLAMA, "num_attention_heads": 0},
    "width_zero": {**LLAMA, "hidden_size": 0},
    "width_zero_t5": {**T5, "d_model": 0},
    "vocabulary_zero": {**LLAMA, "vocab_size": 0},
    "vocabulary_negative": {**BERT, "vocab_size": -1},
    "layers_negative": {**LLAMA, "num_hidden_layers": -1},
    "layers_zero": {**GPT2, "n_layer": 0},
    "layers_a_billion": {**LLAMA, "num_hidden_layers": 10**9},
    "decoder_layers_negative": {**T5, "num_decoder_layers": -2},
    "buckets_too_few": {**T5, "relative_attention_num_buckets": 2},
    "distance_below_buckets": {**T5, "relative_attention_max_distance": 16},
    "patch_not_dividing": {**VIT, "patch_size": 7},
    "image_zero": {**VIT, "image_size": 0},
    "labels_not_an_object": {**VIT, "id2label": [1, 2]},
    "stages_uneven": {**RESNET, "depths": [1, 1, 1]},
    "stages_none": {**RESNET, "depths": [], "hidden_sizes": []},
    "stages_a_number": {**RESNET, "depths": 3},
    "stages_with_text": {**RESNET, "depths": [1, "two"]},
    "bottleneck_not_dividing": {**RESNET, "hidden_sizes": [8, 18]},
    "groups_not_dividing": {"model_type": "unet", "width": 64, "groups": 7},
    "depth_endless": {"model_type": "unet", "depth": 63},
    "experts_zero": {**LLAMA, "model_type": "mixtral", "num_local_experts": 0},
    "experts_chosen_too_many": {**MIXTRAL, "num_local_experts": 4, "num_experts_per_tok": 5},
    "router_noise": {**MIXTRAL, "router_jitter_noise": 0.1},
    "router_loss": {**MIXTRAL, "output_router_logits": True},
    "dropout_one": {**LLAMA, "attention_dropout": 1.0},
    "dropout_negative": {**GPT2, "resid_pdrop": -0.1},
    "eps_negative": {**LLAMA, "rms_norm_eps": -1e-6},
    "padding_outside": {**BERT, "pad_token_id": 64},
    "activation_unknown": {**LLAMA, "hidden_act": "gelu_10"},
    "cross_attention": {**GPT2, "add_cross_attention": True},
    "padding_gpt2": {**GPT2, "pad_token_id": 64},
    "padding_t5": {**T5, "pad_token_id": None},
    "rope_yarn": {**LLAMA, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
    "rope_dynamic": {**LLAMA, "rope_parameters": {"type": "dynamic", "factor": 4.0}},
    "rope_a_text": {**LLAMA, "rope_scaling": "xx"},
    "window_zero": {**LLAMA, "model_type": "mistral", "num_key_value_heads": 2, "sliding_window": 0},
    "window_negative": {**MIXTRAL, "sliding_window": -5},
    "quantized": {**LLAMA, "quantization_config": {"load_in_4bit": True}},
    "untied_bert": {**BERT, "tie_word_embeddings": False},
    "chunked_bert": {**BERT, "chunk_size_feed_forward": 8},
    "one_label": {**VIT, "num_labels": 1},
    "many_labels": {**RESNET, "problem_type": "multi_label_classification"},
    "layers_sliding": {**LLAMA, "model_type": "qwen2", "layer_types": ["full_attention", "sliding_attention"]},
    "proj_unknown": {**T5, "feed_forward_proj": "gated-mish"},
    "type_missing": without(LLAMA, "model_type"),
    "type_unknown": {**LLAMA, "model_type": "perceptron"},
    "type_a_number": {**LLAMA, "model_type": 3},
    "width_missing": without(LLAMA, "hidden_size"),
    "width_null": {**LLAMA, "hidden_size": None},
    "layers_missing_t5": without(T5, "num_layers"),
    "layers_a_text": {**LLAMA, "num_hidden_layers": "two"},
    "layers_a_fraction": {**LLAMA, "num_hidden_layers": 2.5},
    "layers_true": {**LLAMA, "num_hidden_layers": True},
    "layers_a_list": {**LLAMA, "num_hidden_layers": [2]},
    "tied_a_text": {**LLAMA, "tie_word_embeddings": "yes"},
    "eps_a_text": {**LLAMA, "rms_norm_eps": "1e-6"},
    "size_2_to_64": {**LLAMA, "vocab_size": 2**64 - 1},
    "size_2_to_62": {**LLAMA, "vocab_size": 2**62},
    "size_nan": text(LLAMA, vocab_size="NaN"),
    "size_infinity": text(LLAMA, vocab_size="Infinity"),
    "size_1e400": text(LLAMA, rms_norm_eps="1e400"),
    "key_twice": text(LLAMA, vocab_size='64, "vocab_size": 65'),
    "key_twice_inside": text(VIT, id2label='{"0": "a", "0": "b"}'),
    "nested_deep": text(LLAMA, extra="[" * 100 + "]" * 100),
    "nested_endless": "[" * 5_000,
    "not_closed": json.dumps(LLAMA)[:-1],
    "comment": "// a model\n" + json.dumps(LLAMA),
    "empty": "",
    "only_spaces": "   \n",
    "a_list": "[]",
    "a_text": '"llama"',
    "two_objects": json.dumps(LLAMA) * 2,
    "zero_byte": json.dumps(LLAMA)[:-1] + "\0}",
    "text_not_utf8": b'{"model_type": "ll\xff\xfema"}',
    "surrogate_alone": '{"model_type": "\\ud800"}',
    "byte_order_mark_16": json.dumps(LLAMA).encode("utf-16"),
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    for name, content in FILES.items():
        if isinstance(content, dict):
            content = json.dumps(content, indent=1) + "\n"
        data = content if isinstance(content, bytes) else content.encode()
        (FOLDER / f"{name}.json").write_bytes(data)


if __name__ == "__main__":
    main()
