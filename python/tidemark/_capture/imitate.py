"""The choices that PyTorch makes on a GPU, made on fake CPU tensors.

Fake tensors on a device without a driver end the process as soon as autograd touches them, so the tensors stay on the CPU and
the target is a label. What differs is which ops run: dropout is one fused op, attention picks a fused kernel by the
rules of sdp_utils.cpp (torch 2.13 with cuDNN 9.15.1 or newer), and optimizers default to their multi-tensor form.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from .. import _core
from .errors import CaptureError

aten = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)

# What "cuda" alone stands for: the oldest generation with every fused kernel.
_ANY_CUDA = (8, 0)


@dataclass(frozen=True)
class Target:
    """Whose kernels a capture records. `label` is what storages carry as their device."""

    name: str
    kind: str  # "cpu", "cuda" or "rocm"
    capability: tuple[int, int] = (0, 0)  # of CUDA devices

    @property
    def label(self) -> str:
        return "cpu" if self.kind == "cpu" else "cuda"

    @property
    def is_imitated(self) -> bool:
        return self.kind != "cpu"


def find_target(name) -> Target:
    """Reads "cpu", "cuda", or a device such as "h100-sxm"."""
    if not isinstance(name, str):
        raise CaptureError(f"unknown target {name!r}; expected 'cpu', 'cuda' or the name of a device")
    if name == "cpu":
        return Target("cpu", "cpu")
    if name == "cuda" or (name.startswith("cuda:") and name[5:].isdigit()):
        return Target("cuda", "cuda", _ANY_CUDA)
    try:
        device = _core.find_device(name)
    except _core.Error as error:
        raise CaptureError(f"unknown target {name!r}; expected 'cpu', 'cuda' or the name of a device: {error}") from None
    if device.kind == "cpu":
        return Target(device.name, "cpu")
    if device.kind == "rocm":
        return Target(device.name, "rocm")
    major, _, minor = device.generation.partition(".")
    return Target(device.name, "cuda", (int(major), int(minor or 0)))


class Choices:
    """Stands in for functions whose op depends on the device. `of(func)` is the replacement, or None."""

    def __init__(self, recorder, target: Target) -> None:
        self._recorder = recorder
        self._target = target
        self._replacements = {
            F.dropout: self._dropout,
            torch.dropout: self._dropout,
            F.scaled_dot_product_attention: self._attention,
        }
        # A function that tidemark.compat wrapped may come as itself.
        for function, instead in list(self._replacements.items()):
            self._replacements[inspect.unwrap(function)] = instead

    def of(self, func):
        return self._replacements.get(func)

    def _note(self, text: str) -> None:
        self._recorder.note("imitated", text)

    def _dropout(self, input, p=0.5, training=True, inplace=False, train=None):
        training = training if train is None else train
        if not training or inplace or p == 0 or p == 1:
            return F.dropout(input, p, training, inplace)
        self._note("dropout by the fused op native_dropout")
        return torch.native_dropout(input, p, training)[0]

    def _attention(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        asked = Attention(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
        kernel, why = choose_attention(asked, self._target)
        self._note(f"scaled_dot_product_attention by the {kernel} kernel: {why}")
        if kernel == "math":
            return aten._scaled_dot_product_attention_math(
                query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
            )[0]
        if scale is None:
            scale = 1.0 / math.sqrt(query.size(-1))
        if kernel == "flash":
            width = query.size(-1)
            padding = -width % 8  # the kernel wants multiples of eight
            if padding:
                query, key, value = (F.pad(t, (0, padding)) for t in (query, key, value))
            out = aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
            return out[..., :width] if padding else out
        keeps_sums = asked.needs_gradient
        if kernel == "cudnn":
            bias = None if attn_mask is None else _additive(attn_mask, query)
            return aten._scaled_dot_product_cudnn_attention(
                query, key, value, bias, keeps_sums, dropout_p, is_causal, False, scale=scale
            )[0]
        bias = None if attn_mask is None else _for_every_head(_additive(attn_mask, query), query, key)
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, bias, keeps_sums, dropout_p, is_causal, scale=scale
        )[0]


def _additive(mask, query):
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), -math.inf)


def _for_every_head(mask, query, key):
    return mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))


@dataclass(frozen=True)
class Attention:
    """The arguments of scaled_dot_product_attention that decide which kernel runs."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    enable_gqa: bool = False

    @property
    def tensors(self):
        return (self.query, self.key, self.value)

    @property
    def needs_gradient(self) -> bool:
        return torch.is_grad_enabled() and any(t.requires_grad for t in self.tensors)

    @property
    def width(self) -> int:
        return self.query.size(-1)

    @property
    def value_width(self) -> int:
        return self.value.size(-1)

    @property
    def has_same_heads(self) -> bool:
        return self.query.size(1) == self.key.size(1) == self.value.size(1)

    @property
    def has_grouped_heads(self) -> bool:
        return self.enable_gqa and all(h > 0 and self.query.size(1) % h == 0 for h in (self.key.size(1), self.value.size(1)))


def choose_attention(asked: Attention, target: Target) -> tuple[str, str]:
    """(kernel, reason): the first that takes the inputs, in the order that the device prefers."""
    if asked.query.dim() != 4 or asked.key.dim() != 4 or asked.value.dim() != 4:
        return "math", "the inputs are not four-dimensional"
    for kernel, takes in _in_order(target):
        if takes(asked, target):
            return kernel, f"the first that takes such inputs on {target.name}"
    return "math", f"no fused kernel takes these inputs on {target.name}"


def _in_order(target: Target):
    fused = [("flash", _flash), ("efficient", _efficient)]
    prefers_cudnn = target.kind == "cuda" and target.capability[0] in (9, 10)
    return [("cudnn", _cudnn), *fused] if prefers_cudnn else fused


def _is_dense(asked: Attention, ignores_single: bool) -> bool:
    """Equal batches, nothing empty, the last dimension contiguous."""
    if len({t.size(0) for t in asked.tensors}) != 1 or any(t.numel() == 0 for t in asked.tensors):
        return False
    return all(t.stride(-1) == 1 or (ignores_single and t.size(-1) == 1) for t in asked.tensors)


def _takes_low_precision(asked: Attention, target: Target) -> bool:
    is_old = target.kind == "cuda" and target.capability < (8, 0)
    return asked.query.dtype in ((torch.float16,) if is_old else _HALF)


def _flash(asked: Attention, target: Target) -> bool:
    if not torch.backends.cuda.flash_sdp_enabled() or asked.mask is not None or not _takes_low_precision(asked, target):
        return False
    if not (asked.width == asked.key.size(-1) == asked.value_width and asked.width <= 256):
        return False
    if asked.is_causal and asked.query.size(-2) != asked.key.size(-2):
        return False
    if target.kind == "cuda":
        if target.capability < (8, 0):
            return False
        # Cards with less shared memory cannot run the backward of wide heads.
        is_small = (8, 6) <= target.capability <= (8, 9) or target.capability[0] == 12
        fits = asked.width <= 192 or (asked.dropout_p == 0 and asked.width > 224)
        if is_small and asked.needs_gradient and not fits:
            return False
    return _is_dense(asked, True) and (asked.has_same_heads or asked.has_grouped_heads)


def _efficient(asked: Attention, target: Target) -> bool:
    if not torch.backends.cuda.mem_efficient_sdp_enabled():
        return False
    dtype = asked.query.dtype
    if dtype != torch.float32 and not _takes_low_precision(asked, target):
        return False
    alignment = _alignment(dtype in _HALF, target)
    if asked.width != asked.key.size(-1) or asked.width % alignment or asked.value_width % alignment:
        return False
    if asked.mask is not None and asked.mask.requires_grad and asked.mask.dim() == 2:
        return False
    return _is_dense(asked, False) and asked.has_same_heads


def _alignment(is_half: bool, target: Target) -> int:
    """Of heads, for products on tensor cores: 128 bits."""
    if target.kind != "cuda" or target.capability >= (8, 0):
        return 8 if is_half else 4
    return 8 if is_half and target.capability >= (7, 0) else 1


def _cudnn(asked: Attention, target: Target) -> bool:
    if not torch.backends.cuda.cudnn_sdp_enabled() or not _takes_low_precision(asked, target):
        return False
    is_strict = torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()
    if is_strict or (asked.dropout_p * 16) % 1 != 0:
        return False
    is_latent = target.capability[1] == 0 and (asked.width, asked.value_width) == (192, 128)
    if asked.width % 8 or asked.value_width % 8 or not (max(asked.width, asked.value_width) <= 128 or is_latent):
        return False
    if asked.key.size(2) == 1 or (asked.dropout_p > 0 and asked.query.size(2) == 1):
        return False
    if max(asked.query.size(0), asked.query.size(1)) > 65535:
        return False
    return _is_dense(asked, True) and (asked.has_same_heads or asked.has_grouped_heads)


def choose_multi_tensor(optimizer, recorder) -> None:
    """On GPUs, optimizers default to their multi-tensor form. The groups are put back with the rest of the state."""
    for group in optimizer.param_groups:
        if "foreach" in group and group["foreach"] is None and not group.get("fused") and not group.get("differentiable"):
            group["foreach"] = True
            recorder.note("imitated", f"{type(optimizer).__name__} in its multi-tensor form (foreach)")
        elif group.get("fused"):
            recorder.note("imitated", f"{type(optimizer).__name__} in its fused form")
