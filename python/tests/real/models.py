"""Models that the capture is measured on: ours, and families of `transformers` with random weights.

`build(name)` returns (model, batch, loss): loss(model, batch) is the forward and the loss in the user's own words. Sizes
are such that activations are at least half of the peak.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.nn import functional as F


class MLP(nn.Module):
    def __init__(self, width=256, depth=6):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x)) + x
        return self.head(x)


class ConvNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
            )
            for _ in range(3)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = F.relu(x + block(x))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Attention(nn.Module):
    def __init__(self, width, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, causal=True, context=None):
        b, s, w = x.shape
        if context is None:
            q, k, v = self.qkv(x).chunk(3, -1)
        else:
            wq, wk, wv = self.qkv.weight.chunk(3)
            q, k, v = x @ wq.t(), context @ wk.t(), context @ wv.t()
        q, k, v = (t.view(b, -1, self.heads, w // self.heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal and context is None)
        return self.out(y.transpose(1, 2).reshape(b, s, w))


class Block(nn.Module):
    def __init__(self, width, heads, dropout=0.1):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, causal=True):
        x = x + self.dropout(self.attention(self.norm1(x), causal))
        return x + self.dropout(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    def __init__(self, vocabulary=512, width=128, depth=4, heads=4, length=128):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class LSTMTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(300, 96)
        self.lstm = nn.LSTM(96, 96, num_layers=2, batch_first=True)
        self.head = nn.Linear(96, 20)

    def forward(self, ids):
        return self.head(self.lstm(self.tokens(ids))[0])


class UNet(nn.Module):
    def __init__(self, w=16):
        super().__init__()
        def double(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU(), nn.Conv2d(b, b, 3, padding=1), nn.SiLU())
        self.down = nn.ModuleList([double(3, w), double(w, 2 * w)])
        self.middle = double(2 * w, 4 * w)
        self.up = nn.ModuleList([nn.ConvTranspose2d(4 * w, 2 * w, 2, stride=2), nn.ConvTranspose2d(2 * w, w, 2, stride=2)])
        self.join = nn.ModuleList([double(4 * w, 2 * w), double(2 * w, w)])
        self.head = nn.Conv2d(w, 2, 1)

    def forward(self, x):
        skips = []
        for down in self.down:
            x = down(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), skips.pop()], 1))
        return self.head(x)


class MoE(nn.Module):
    """Dense dispatch: every expert sees every token, weighted by the router."""

    def __init__(self, width=96, experts=4, depth=3):
        super().__init__()
        self.tokens = nn.Embedding(300, width)
        self.routers = nn.ModuleList(nn.Linear(width, experts) for _ in range(depth))
        self.experts = nn.ModuleList(
            nn.ModuleList(nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(experts))
            for _ in range(depth)
        )
        self.head = nn.Linear(width, 300)

    def forward(self, ids):
        x = self.tokens(ids)
        for router, experts in zip(self.routers, self.experts):
            weights, chosen = router(x).softmax(-1).topk(2, dim=-1)
            gates = torch.zeros(*x.shape[:-1], len(experts)).scatter(-1, chosen, weights)
            x = x + sum(gates[..., i : i + 1] * expert(x) for i, expert in enumerate(experts))
        return self.head(x)


class EncoderDecoder(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.tokens = nn.Embedding(300, width)
        self.encoder = nn.ModuleList(Block(width, 4, 0.0) for _ in range(2))
        self.decoder = nn.ModuleList(Block(width, 4, 0.0) for _ in range(2))
        self.cross = nn.ModuleList(Attention(width, 4) for _ in range(2))
        self.head = nn.Linear(width, 300)

    def forward(self, source, target):
        x = self.tokens(source)
        for block in self.encoder:
            x = block(x, causal=False)
        y = self.tokens(target)
        for block, cross in zip(self.decoder, self.cross):
            y = block(y)
            y = y + cross(y, context=x)
        return self.head(y)


def _tokens(batch, length, vocabulary):
    return torch.randint(0, vocabulary, (batch, length))


def _logits_loss(model, batch):
    logits = model(*batch[0])
    return F.cross_entropy(logits.flatten(0, -2), batch[1].flatten())


def _image_loss(model, batch):
    return F.cross_entropy(model(*batch[0]), batch[1])


def _transformers_loss(model, batch):
    return model(**batch).loss


def _own(name):
    if name == "mlp":
        return MLP(), ((torch.randn(2048, 256),), torch.randint(0, 10, (2048,))), _image_loss
    if name == "cnn":
        return ConvNet(), ((torch.randn(8, 3, 32, 32),), torch.randint(0, 10, (8,))), _image_loss
    if name == "gpt":
        ids = _tokens(8, 128, 512)
        return GPT(), ((ids,), ids), _logits_loss
    if name == "lstm":
        ids = _tokens(16, 64, 300)
        return LSTMTagger(), ((ids,), ids % 20), _logits_loss
    if name == "unet":
        return UNet(), ((torch.randn(4, 3, 64, 64),), torch.randint(0, 2, (4, 64, 64))), _image_loss
    if name == "moe":
        ids = _tokens(8, 64, 300)
        return MoE(), ((ids,), ids), _logits_loss
    if name == "encdec":
        ids = _tokens(8, 96, 300)
        return EncoderDecoder(), ((ids, ids), ids), _logits_loss
    raise KeyError(name)


def _language(config, cls, batch=4, length=128, **extra):
    config.use_cache = False  # as for every training run with checkpointing: a cache would be filled twice
    model = cls(config)
    ids = _tokens(batch, length, config.vocab_size)
    return model, {"input_ids": ids, "labels": ids, **extra}, _transformers_loss


def _hugging(name):
    import transformers as tf

    if name == "gpt2":
        return _language(tf.GPT2Config(n_layer=4, n_embd=128, n_head=4, vocab_size=512, n_positions=256), tf.GPT2LMHeadModel)
    if name == "llama":
        return _language(
            tf.LlamaConfig(hidden_size=128, intermediate_size=352, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, vocab_size=512),
            tf.LlamaForCausalLM,
        )
    if name == "bert":
        config = tf.BertConfig(hidden_size=128, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4, vocab_size=512)
        return _language(config, tf.BertForMaskedLM)
    if name == "vit":
        config = tf.ViTConfig(hidden_size=128, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4, image_size=64, patch_size=8, num_labels=10)
        return tf.ViTForImageClassification(config), {"pixel_values": torch.randn(8, 3, 64, 64), "labels": torch.randint(0, 10, (8,))}, _transformers_loss
    if name == "resnet":
        config = tf.ResNetConfig(embedding_size=16, hidden_sizes=[32, 64], depths=[2, 2], num_labels=10, layer_type="basic")
        return tf.ResNetForImageClassification(config), {"pixel_values": torch.randn(8, 3, 64, 64), "labels": torch.randint(0, 10, (8,))}, _transformers_loss
    if name == "t5":
        config = tf.T5Config(d_model=128, d_ff=256, num_layers=3, num_decoder_layers=3, num_heads=4, d_kv=32, vocab_size=512, decoder_start_token_id=0)
        return _language(config, tf.T5ForConditionalGeneration)
    if name == "opt":
        config = tf.OPTConfig(hidden_size=128, ffn_dim=512, num_hidden_layers=4, num_attention_heads=4, vocab_size=512, word_embed_proj_dim=128, max_position_embeddings=256)
        return _language(config, tf.OPTForCausalLM)
    if name == "mixtral":
        config = tf.MixtralConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, vocab_size=512, num_local_experts=4)
        return _language(config, tf.MixtralForCausalLM)
    if name == "convnext":
        config = tf.ConvNextConfig(hidden_sizes=[24, 48], depths=[2, 2], num_stages=2, num_labels=10)
        return tf.ConvNextForImageClassification(config), {"pixel_values": torch.randn(8, 3, 64, 64), "labels": torch.randint(0, 10, (8,))}, _transformers_loss
    if name == "whisper":
        config = tf.WhisperConfig(d_model=96, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=256, decoder_ffn_dim=256, vocab_size=512, num_mel_bins=16, max_source_positions=64, max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, use_cache=False)
        ids = _tokens(4, 48, 512)
        return tf.WhisperForConditionalGeneration(config), {"input_features": torch.randn(4, 16, 128), "labels": ids}, _transformers_loss
    if name == "mamba2":
        config = tf.Mamba2Config(hidden_size=64, num_heads=4, head_dim=32, state_size=16, num_hidden_layers=2, vocab_size=512, n_groups=1, chunk_size=32)
        return _language(config, tf.Mamba2ForCausalLM, batch=4, length=64)
    raise KeyError(name)


class CheckpointedMLPs(nn.Module):
    """Blocks of which all but the first checkpoint themselves."""

    def __init__(self, blocks, width, inner):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width)) for _ in range(blocks)
        )

    def forward(self, x):
        x = self.blocks[0](x)
        for block in self.blocks[1:]:
            x = checkpoint(block, x, preserve_rng_state=False, use_reentrant=False)
        return x


def _sum_loss(model, batch):
    return model(batch).sum()


def _tracked(name):
    """The models of the reference tracker's own tests (test_mem_tracker.py), the second with a smaller batch and in
    single precision: it would run for minutes on a CPU."""
    if name == "tracker_plain":
        layers = [layer for _ in range(4) for layer in (nn.Linear(512, 512, bias=False), nn.ReLU())]
        return nn.Sequential(*layers).to(torch.bfloat16), torch.randn(16, 512, dtype=torch.bfloat16), _sum_loss
    return CheckpointedMLPs(4, 1024, 2048), torch.randn(2, 1024, 1024), _sum_loss


OWN = ("mlp", "cnn", "gpt", "lstm", "unet", "moe", "encdec")
HUGGING = ("gpt2", "llama", "bert", "vit", "resnet", "t5", "opt", "mixtral", "convnext", "whisper")
TRACKED = ("tracker_plain", "tracker_checkpointed")


def build(name: str):
    torch.manual_seed(0)
    model, batch, loss = (_own if name in OWN else _tracked if name in TRACKED else _hugging)(name)
    model.train()
    return model, batch, loss


def training_step(model, batch, loss, optimizer):
    def step():
        optimizer.zero_grad()
        value = loss(model, batch)
        value.backward()
        optimizer.step()

    return step
