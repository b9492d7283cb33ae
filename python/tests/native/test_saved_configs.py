"""A config.json as the library writes it means the same as the config it was written from."""

import pytest

import tidemark

from . import families

CONFIGS = {
    "gpt2": ("GPT2Config", families.GPT2),
    "llama": ("LlamaConfig", {"model_type": "llama", **families.DECODER}),
    "t5": ("T5Config", families.T5),
    "t5 gated": ("T5Config", families.T5_GATED),
    "bert": ("BertConfig", families.BERT),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_saved_config_gives_the_same_step(name, tmp_path):
    import transformers

    kind, config = CONFIGS[name]
    getattr(transformers, kind)(**config).save_pretrained(tmp_path)
    saved = tidemark.native(tmp_path / "config.json", batch=2, seq=16)
    assert saved.fingerprint == tidemark.native(config, batch=2, seq=16).fingerprint
