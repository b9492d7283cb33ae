"""The model of the reference's tests, written from its description: names, shapes and order of registration decide the
figures."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class ModelArgs:
    n_layers: int = 2
    vocab_size: int = 8
    max_seq_len: int = 16
    dim: int = 16
    n_heads: int = 4
    dropout_p: float = 0.1


class Attention(nn.Module):
    def __init__(self, args: ModelArgs) -> None:
        super().__init__()
        self.heads, self.p = args.n_heads, args.dropout_p
        self.resid_dropout = nn.Dropout(args.dropout_p)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(args.dim, args.dim, bias=False) for _ in range(4))

    def forward(self, x):
        batch, length, width = x.size()
        queries, keys, values = self.wq(x), self.wk(x), self.wv(x)
        heads = (t.view(batch, length, self.heads, width // self.heads) for t in (queries, keys, values))
        queries, keys, values = (t.transpose(1, 2) for t in heads)
        out = F.scaled_dot_product_attention(queries, keys, values, None, self.p if self.training else 0.0, True)
        return self.resid_dropout(self.wo(out.transpose(1, 2).contiguous().view(batch, length, width)))


class FeedForward(nn.Module):
    def __init__(self, args: ModelArgs) -> None:
        super().__init__()
        self.w1 = nn.Linear(args.dim, 4 * args.dim)
        self.gelu = nn.GELU()
        self.w2 = nn.Linear(4 * args.dim, args.dim)
        self.resid_dropout = nn.Dropout(args.dropout_p)

    def forward(self, x):
        return self.resid_dropout(self.w2(self.gelu(self.w1(x))))


class TransformerBlock(nn.Module):
    def __init__(self, args: ModelArgs) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(args.dim)
        self.attention = Attention(args)
        self.ffn_norm = nn.LayerNorm(args.dim)
        self.feed_forward = FeedForward(args)

    def forward(self, x):
        h = x + self.attention(self.attention_norm(x))
        return h + self.feed_forward(self.ffn_norm(h))


class Transformer(nn.Module):
    def __init__(self, args: ModelArgs) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(args.vocab_size, args.dim)
        self.pos_embeddings = nn.Embedding(args.max_seq_len, args.dim)
        self.dropout = nn.Dropout(args.dropout_p)
        self.layers = nn.ModuleList(TransformerBlock(args) for _ in range(args.n_layers))
        self.norm = nn.LayerNorm(args.dim)
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)
        self.output.weight = self.tok_embeddings.weight

    def forward(self, tokens):
        h = self.tok_embeddings(tokens)
        h = h + self.pos_embeddings(torch.arange(0, tokens.size(1), device=tokens.device))
        h = self.dropout(h)
        for layer in self.layers:
            h = layer(h)
        return self.output(self.norm(h)).float()


# 4 layers, 8 sequences of 1024 tokens: what the reference plans for.
PUBLISHED = ModelArgs(n_layers=4, n_heads=12, vocab_size=8192, max_seq_len=1024, dim=768, dropout_p=0.1)
BATCH = 8
