"""Steps of models that PyTorch never sees."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping

from . import _core
from ._core import Step


def native(
    model: str | os.PathLike[str] | Mapping[str, Any],
    *,
    batch: int = 1,
    seq: int = 0,
    image: int = 0,
    dtype: str = "float32",
    optimizer: str = "adamw",
    form: str = "for-loop",
    target: str = "cpu",
    input_needs_grad: bool = False,
) -> Step:
    """One training step of a model, recorded without PyTorch.

    model: a built-in name (`tidemark.models()`), the path of a Hugging Face config.json, or its content as a dict.
    seq: tokens of a sequence; 0 means the model's positions, at most 8192. image: pixels of a side; 0 means the model's.
    form: how the optimizer runs: "for-loop", "foreach" or "fused". target: whose kernels, "cpu" or "cuda".

    The Step is the one that `tidemark.capture` records of the same model. Raises `Error` for an impossible config.
    """
    options = {
        "batch": batch,
        "sequence": seq,
        "image": image,
        "dtype": dtype,
        "optimizer": optimizer,
        "form": form,
        "target": target,
        "input_needs_grad": input_needs_grad,
    }
    if isinstance(model, Mapping):
        return _core.record_native(json.dumps(dict(model)), is_config=True, **options)
    if isinstance(model, os.PathLike) or os.path.exists(model):
        with open(model, encoding="utf-8") as file:
            return _core.record_native(file.read(), is_config=True, **options)
    return _core.record_native(model, **options)
