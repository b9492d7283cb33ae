"""Built-in names: exact parameter counts, and configs that cannot be."""

import json

import pytest

import tidemark

pytestmark = pytest.mark.fast

# As the model cards and the libraries that publish the weights state them.
PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "distilgpt2": 81_912_576,
    "llama-7b": 6_738_415_616,
    "llama-13b": 13_015_864_320,
    "llama-30b": 32_528_943_616,
    "llama-65b": 65_285_660_672,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3.1-8b": 8_030_261_248,
    "llama3.1-70b": 70_553_706_496,
    "llama3.1-405b": 405_853_388_800,
    "llama3.2-1b": 1_235_814_400,
    "llama3.2-3b": 3_212_749_824,
    "llama3.3-70b": 70_553_706_496,
    "tinyllama-1.1b": 1_100_048_384,
    "codellama-7b": 6_738_546_688,
    "codellama-34b": 33_743_970_304,
    "mistral-7b": 7_241_732_096,
    "mistral-7b-v0.3": 7_248_023_552,
    "mistral-nemo-12b": 12_247_782_400,
    "qwen2-0.5b": 494_032_768,
    "qwen2-1.5b": 1_543_714_304,
    "qwen2-7b": 7_615_616_512,
    "qwen2-72b": 72_706_203_648,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "gemma-2b": 2_506_172_416,
    "gemma-7b": 8_537_680_896,
    "t5-small": 60_506_624,
    "t5-base": 222_903_552,
    "t5-large": 737_668_096,
    "t5-3b": 2_851_598_336,
    "t5-11b": 11_307_321_344,
    "bert-base": 109_482_240,
    "bert-base-cased": 108_310_272,
    "bert-large": 335_141_888,
    "bert-large-cased": 333_579_264,
    "vit-ti-16": 5_717_416,
    "vit-s-16": 22_050_664,
    "vit-b-16": 86_567_656,
    "vit-b-32": 88_224_232,
    "vit-l-16": 304_326_632,
    "vit-l-32": 306_535_400,
    "vit-h-14": 632_045_800,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
}
MODELS = {row["name"]: row for row in tidemark.models()}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_the_published_ones(name):
    assert MODELS[name]["parameters"] == PUBLISHED[name]


def test_at_least_forty_names():
    assert len(MODELS) >= 40
    assert all(row["layers"] >= 1 and row["head"] and row["source"] for row in MODELS.values())


def test_the_head_of_bert():
    # The masked-language-model head has a dense layer, a norm and a bias for each word; it has no use for the pooler.
    d, v = 768, 30522
    assert MODELS["bert-base"]["step_parameters"] == 109_482_240 - (d * d + d) + (d * d + d + 2 * d + v)


BAD = {
    "heads that do not divide": ({"num_attention_heads": 5}, "divisor"),
    "no layers": ({"num_hidden_layers": 0}, "num_hidden_layers"),
    "negative layers": ({"num_hidden_layers": -3}, "num_hidden_layers"),
    "a width of zero": ({"hidden_size": 0}, "hidden_size"),
    "a text for a number": ({"hidden_size": "large"}, "wrong type"),
    "a float for a whole number": ({"hidden_size": 32.5}, "wrong type"),
    "a missing key": ({"vocab_size": None}, "vocab_size"),
    "a type nobody knows": ({"model_type": "perceptron"}, "bert, gemma, gpt2, llama"),
    "no type": ({"model_type": None}, "model_type"),
    "a number beyond 64 bits": ({"hidden_size": 2**64}, "hidden_size"),
    "sizes whose product overflows": ({"hidden_size": 2**31, "vocab_size": 2**31, "num_attention_heads": 1}, "large"),
    "an odd head": ({"num_attention_heads": 32, "num_key_value_heads": 32}, "even"),
    "a probability above one": ({"attention_dropout": 1.5}, "attention_dropout"),
}


@pytest.mark.parametrize("change,word", BAD.values(), ids=BAD)
def test_a_config_that_cannot_be_gets_one_sentence(change, word):
    config = {
        "model_type": "llama",
        "num_hidden_layers": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_attention_heads": 4,
        "vocab_size": 64,
        **change,
    }
    with pytest.raises(tidemark.Error, match=word):
        tidemark.native(config)


def test_a_config_file(tmp_path):
    config = {"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 16, "n_positions": 4}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    assert tidemark.native(path).fingerprint == tidemark.native(config).fingerprint


def test_a_wrong_name_suggests_the_right_one():
    with pytest.raises(tidemark.Error, match="llama3-8b"):
        tidemark.native("llama3-8B")


@pytest.mark.parametrize("options", [{"batch": 0}, {"batch": -1}, {"seq": 2000}, {"dtype": "int8"}, {"optimizer": "lion"}])
def test_options_that_cannot_be(options):
    with pytest.raises(tidemark.Error):
        tidemark.native("gpt2", **options)


@pytest.mark.parametrize(
    "options,words",
    [
        ({"batch": 2.0}, "batch: the value has the wrong type; expected a whole number, got 2.0"),
        ({"batch": True}, "batch: .* expected a whole number"),
        ({"seq": "16"}, "seq: .* expected a whole number, got '16'"),
        ({"batch": 2**64}, "batch: the number is too large"),
        ({"clip_norm": "1"}, "clip_norm: .* expected a number"),
        ({"dtype": 32}, "dtype: .* expected a word, got 32"),
        ({"optimizer": None}, "optimizer: .* expected a word"),
        ({"target": ["cuda"]}, "target: .* expected a word"),
    ],
)
def test_options_of_the_wrong_type_get_one_sentence(options, words):
    with pytest.raises(tidemark.Error, match=words):
        tidemark.native("gpt2", **options)


@pytest.mark.parametrize("model,words", [(7, "expected a name, a path or a config"), ({"model_type": {1}}, "no config.json can")])
def test_models_of_the_wrong_type_get_one_sentence(model, words):
    with pytest.raises(tidemark.Error, match=words):
        tidemark.native(model)


@pytest.mark.parametrize(
    "change,words",
    [
        ({"image_size": [224, 192]}, "native models take square images"),
        ({"image_size": [224]}, "expected height and width"),
        ({"patch_size": ["16", 16]}, "wrong type"),
        ({"patch_size": [16, 8]}, "the same height and width"),
    ],
)
def test_sides_of_images_that_cannot_be(change, words):
    config = {"model_type": "vit", "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2}
    with pytest.raises(tidemark.Error, match=words):
        tidemark.native({**config, **change})
