"""The choices that PyTorch makes on a CUDA device, made on fake CPU tensors.

Fake tensors on a device without a driver end the process as soon as autograd touches them, so the tensors stay on the CPU and
the target is a label. What differs is which ops run: dropout is one fused op, attention picks a fused kernel by the
rules of sdp_utils.cpp (torch 2.13), and optimizers default to their multi-tensor form.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

aten = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)


class CudaChoices:
    """Stands in for functions whose op depends on the device. `of(func)` is the replacement, or None."""

    def __init__(self, recorder) -> None:
        self._recorder = recorder
        self._replacements = {
            F.dropout: self._dropout,
            torch.dropout: self._dropout,
            F.scaled_dot_product_attention: self._attention,
        }

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
        kernel, why = choose_attention(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
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
        if attn_mask is not None:
            attn_mask = _bias(attn_mask, query, key)
        needs_gradient = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, attn_mask, needs_gradient, dropout_p, is_causal, scale=scale
        )[0]


def _bias(mask, query, key):
    """A mask as the efficient kernel takes it: additive, of the query's type, for every head."""
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), -math.inf)
    return mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))


def choose_attention(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa) -> tuple[str, str]:
    """(kernel, reason) on a device of compute capability 8.0 or newer."""
    backends = torch.backends.cuda
    if query.dim() != 4:
        return "math", "the inputs are not four-dimensional"
    same_heads = query.size(1) == key.size(1) == value.size(1)
    width = query.size(-1)
    flash = (
        backends.flash_sdp_enabled()
        and query.dtype in _HALF
        and attn_mask is None
        and width <= 256
        and value.size(-1) == width
        and (same_heads or (enable_gqa and query.size(1) % key.size(1) == 0))
    )
    if flash:
        return "flash", "half precision, no mask, a head of at most 256"
    aligned = width % (8 if query.dtype in _HALF else 4) == 0 and value.size(-1) % (8 if query.dtype in _HALF else 4) == 0
    efficient = (
        backends.mem_efficient_sdp_enabled()
        and query.dtype in (*_HALF, torch.float32)
        and same_heads
        and aligned
        and not (attn_mask is not None and attn_mask.requires_grad and attn_mask.dim() == 2)
    )
    if efficient:
        return "efficient", "a mask or single precision, heads aligned"
    return "math", "no fused kernel takes these inputs"


def choose_multi_tensor(optimizer, recorder) -> None:
    """On CUDA, optimizers default to their multi-tensor form. The groups are put back with the rest of the state."""
    for group in optimizer.param_groups:
        if "foreach" in group and group["foreach"] is None and not group.get("fused") and not group.get("differentiable"):
            group["foreach"] = True
            recorder.note("imitated", f"{type(optimizer).__name__} in its multi-tensor form (foreach)")
