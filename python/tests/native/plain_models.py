"""Plain PyTorch modules that native models are compared with."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        identity = x
        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)
        out = self.conv2(out)
        out = self.bn2(out)
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        out = self.relu(out)
        return out


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, planes * 4, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(planes * 4)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        identity = x
        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)
        out = self.conv2(out)
        out = self.bn2(out)
        out = self.relu(out)
        out = self.conv3(out)
        out = self.bn3(out)
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        out = self.relu(out)
        return out


class ResNet(nn.Module):
    """ResNet as in "Deep Residual Learning for Image Recognition", laid out as the reference models are."""

    def __init__(self, block, layers, classes=1000, width=64):
        super().__init__()
        self.inplanes = width
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._layer(block, width, layers[0], 1)
        self.layer2 = self._layer(block, 2 * width, layers[1], 2)
        self.layer3 = self._layer(block, 4 * width, layers[2], 2)
        self.layer4 = self._layer(block, 8 * width, layers[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width * block.expansion, classes)

    def _layer(self, block, planes, blocks, stride):
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, planes * block.expansion, 1, stride, bias=False),
                nn.BatchNorm2d(planes * block.expansion),
            )
        layers = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes * block.expansion
        layers += [block(self.inplanes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.relu(x)
        x = self.maxpool(x)
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        x = self.fc(x)
        return x


class ToyAttention(nn.Module):
    def __init__(self, dim, heads, dropout, causal):
        super().__init__()
        self.heads = heads
        self.head = dim // heads
        self.dropout_p = dropout
        self.causal = causal
        self.resid_dropout = nn.Dropout(dropout)
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        bsz, seq_len, _ = x.size()
        queries, keys, values = self.wq(x), self.wk(x), self.wv(x)
        queries = queries.view(bsz, seq_len, self.heads, self.head)
        keys = keys.view(bsz, seq_len, self.heads, self.head)
        values = values.view(bsz, seq_len, self.heads, self.head)
        queries = queries.transpose(1, 2)
        keys = keys.transpose(1, 2)
        values = values.transpose(1, 2)
        output = F.scaled_dot_product_attention(
            queries, keys, values, None, self.dropout_p if self.training else 0, self.causal
        )
        output = output.transpose(1, 2).contiguous().view(bsz, seq_len, -1)
        return self.resid_dropout(self.wo(output))


class ToyFeedForward(nn.Module):
    def __init__(self, dim, hidden, dropout):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden)
        self.gelu = nn.GELU()
        self.w2 = nn.Linear(hidden, dim)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.resid_dropout(self.w2(self.gelu(self.w1(x))))


class ToyBlock(nn.Module):
    def __init__(self, dim, heads, dropout, causal):
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = ToyAttention(dim, heads, dropout, causal)
        self.ffn_norm = nn.LayerNorm(dim)
        self.feed_forward = ToyFeedForward(dim, 4 * dim, dropout)

    def forward(self, x):
        h = x + self.attention(self.attention_norm(x))
        return h + self.feed_forward(self.ffn_norm(h))


class ToyGPT(nn.Module):
    """The small transformer of PyTorch's own tests of its planner."""

    def __init__(self, layers=2, vocabulary=8, length=16, dim=16, heads=4, dropout=0.1, causal=True, tied=True):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocabulary, dim)
        self.pos_embeddings = nn.Embedding(length, dim)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(ToyBlock(dim, heads, dropout, causal) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.output = nn.Linear(dim, vocabulary, bias=False)
        if tied:
            self.output.weight = self.tok_embeddings.weight

    def forward(self, tokens):
        h = self.tok_embeddings(tokens)
        pos = torch.arange(0, tokens.size(1), device=tokens.device)
        p = self.pos_embeddings(pos)
        h = h + p
        h = self.dropout(h)
        for layer in self.layers:
            h = layer(h)
        h = self.norm(h)
        return self.output(h).float()


class DoubleConv(nn.Module):
    def __init__(self, inside, outside, groups):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, padding=1)
        self.norm1 = nn.GroupNorm(groups, outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1)
        self.norm2 = nn.GroupNorm(groups, outside)

    def forward(self, x):
        x = F.silu(self.norm1(self.conv1(x)))
        return F.silu(self.norm2(self.conv2(x)))


class UNet(nn.Module):
    """A U-Net with group norms, as image-to-image models use it."""

    def __init__(self, channels=3, width=64, depth=4, groups=8):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(DoubleConv(a, b, groups) for a, b in zip([channels] + widths, widths[:depth]))
        self.pool = nn.MaxPool2d(2)
        self.middle = DoubleConv(widths[depth - 1], widths[depth], groups)
        self.up = nn.ModuleList(nn.Conv2d(widths[i + 1], widths[i], 3, padding=1) for i in reversed(range(depth)))
        self.merge = nn.ModuleList(DoubleConv(2 * widths[i], widths[i], groups) for i in reversed(range(depth)))
        self.out = nn.Conv2d(width, channels, 1)

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = self.pool(x)
        x = self.middle(x)
        for up, merge in zip(self.up, self.merge):
            x = up(F.interpolate(x, scale_factor=2.0, mode="nearest"))
            x = torch.cat([skips.pop(), x], dim=1)
            x = merge(x)
        return self.out(x)
