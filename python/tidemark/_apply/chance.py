"""Numbers drawn by chance that no checkpoint repeats: those of Python and NumPy."""

from __future__ import annotations

import random
import sys

from .errors import drift
from .words import UnitWords


def state():
    numpy = sys.modules.get("numpy")
    return random.getstate(), numpy.random.get_state()[2] if numpy is not None else None


def check(unit: UnitWords, before) -> None:
    """After a call: it drew nothing."""
    after = state()
    for i, name in enumerate(("Python's random", "numpy.random")):
        if before[i] != after[i] and before[i] is not None:
            raise drift(
                unit.module,
                f"the call draws numbers from {name}, which its recompute would draw anew",
                expected="chance from torch's generators only",
                cause="routing, layer drop or augmentation inside the model",
                remedy=f"a plan without it, tidemark.plan(..., not_units=[{unit.module!r}]) or fit(..., not_units=...), or chance from torch",
            )
