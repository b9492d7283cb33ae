"""Steps of models that PyTorch never sees."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping

from . import _core
from ._core import Error, Step


def native(
    model: str | os.PathLike[str] | Mapping[str, Any],
    *,
    batch: int = 1,
    seq: int = 0,
    image: int = 0,
    dtype: str | None = None,
    precision: str | None = None,
    attention: str = "auto",
    micro_batches: int = 1,
    clip_norm: float = 0.0,
    optimizer: str = "adamw",
    form: str = "auto",
    target: str = "cpu",
    input_needs_grad: bool = False,
) -> Step:
    """One training step of a model, recorded without PyTorch.

    model: a built-in name (`tidemark.models()`), the path of a Hugging Face config.json, or its content as a dict.
    seq: tokens of a sequence; 0 means the model's positions, at most 8192. image: pixels of a side; 0 means the model's.
    dtype: of parameters and all else. precision: the same and more in one word: "fp32", "bf16", "fp16", "bf16-master" and
    "fp16-master" (a float32 copy in the optimizer), "autocast-bf16", "autocast-fp16".
    attention: the kernel, "auto", "math", "flash" or "efficient". micro_batches: forward and backward as often, each loss
    divided by their number. clip_norm: gradients scaled down to this norm; 0 means they are not.
    form: how the optimizer runs: "for-loop", "foreach", "fused", or "auto", as PyTorch chooses, in a loop on a CPU and with
    foreach on CUDA. target: whose kernels, "cpu" or "cuda".

    The Step is the one that `tidemark.capture` records of the same model. Raises `Error` for an impossible config.
    """
    if dtype is not None and precision is not None:
        raise ValueError("dtype and precision are two words for one thing; give one of them")
    options = {
        "precision": _text("precision", "" if precision is None else precision),
        "attention": _text("attention", attention),
        "micro_batches": _whole("micro_batches", micro_batches),
        "clip_norm": _number("clip_norm", clip_norm),
        "batch": _whole("batch", batch),
        "sequence": _whole("seq", seq),
        "image": _whole("image", image),
        "dtype": _text("dtype", "float32" if dtype is None else dtype),
        "optimizer": _text("optimizer", optimizer),
        "form": _text("form", form),
        "target": _text("target", target),
        "input_needs_grad": bool(input_needs_grad),
    }
    if isinstance(model, Mapping):
        return _core.record_native(_json(model), is_config=True, **options)
    if not isinstance(model, (str, os.PathLike)):
        raise _wrong("model", "a name, a path or a config as a dict", model)
    if isinstance(model, os.PathLike) or os.path.exists(model):
        return _core.record_native(os.fspath(model), is_file=True, **options)
    return _core.record_native(model, **options)


def _wrong(name: str, expected: str, value: object) -> Error:
    return Error(f"{name}: the value has the wrong type; expected {expected}, got {value!r}")


def _whole(name: str, value: Any) -> int:
    """As Python's own indexing takes it: what is a whole number by its type, NumPy's too, and no boolean."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise _wrong(name, "a whole number", value)
    number = value.__index__()
    if not -(2**63) <= number < 2**63:
        raise Error(f"{name}: the number is too large; expected one of at most 63 bits, got {number}")
    return number


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, str)) or not hasattr(type(value), "__float__"):
        raise _wrong(name, "a number", value)
    return float(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(name, "a word", value)
    return value


def _json(config: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(config))
    except (TypeError, ValueError) as error:
        raise Error(f"model: the config holds what no config.json can: {error}") from None
