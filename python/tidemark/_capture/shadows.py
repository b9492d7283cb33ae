"""Values that are known although the tensors are fake.

Control flow often hangs on small integers and booleans that do not depend on weights: lengths, masks, positions,
counters, a coin flipped for layer drop. For such tensors the op is run for real too, on a *shadow* beside the fake
tensor. A tensor has a shadow when everything it was made from has one. Writing something unknown into a tensor spoils
the shadows of its storage.
"""

from __future__ import annotations

import torch

from .op_facts import OpFacts

_Tensor = torch.Tensor
# Ops that write into tensors whose values stay as they were when nothing goes wrong: a gradient scaler's check for
# infinities leaves its flag at zero. A recorded step is one in which nothing goes wrong.
KEEP_VALUES = {
    "aten._amp_foreach_non_finite_check_and_unscale_.default",
    "aten._amp_update_scale_.default",
}

# Elements up to which values are followed: index and mask tensors of a batch are, large data is not.
_MOST_ELEMENTS = 1 << 20


def worth_following(dtype: torch.dtype, elements: int) -> bool:
    return elements <= _MOST_ELEMENTS and not dtype.is_complex


class Shadows:
    def __init__(self) -> None:
        self._spoiled: set[int] = set()  # shadow storages whose values are no longer known
        self._kept: list = []  # so that a spoiled storage's address is not used again

    def set(self, fake, value) -> None:
        fake._tidemark_shadow = value

    def get(self, fake):
        value = getattr(fake, "_tidemark_shadow", None)
        if value is not None and self._spoiled and value.untyped_storage()._cdata in self._spoiled:
            return None
        return value

    def arguments(self, args, kwargs):
        """The arguments with shadows for tensors, or None when one is missing."""
        try:
            return [self._known(a) for a in args], {k: self._known(v) for k, v in kwargs.items()}
        except _Unknown:
            return None

    def _known(self, value):
        if isinstance(value, _Tensor):
            shadow = self.get(value)
            if shadow is None:
                raise _Unknown
            return shadow
        if isinstance(value, (list, tuple)):
            return type(value)(self._known(item) for item in value)
        return value

    def spoil(self, facts: OpFacts, args, kwargs) -> None:
        """The op wrote values that nobody knows."""
        for i, name in facts.mutated:
            value = args[i] if i < len(args) else kwargs.get(name)
            for t in value if isinstance(value, (list, tuple)) else (value,):
                shadow = getattr(t, "_tidemark_shadow", None)
                if shadow is not None:
                    self._spoiled.add(shadow.untyped_storage()._cdata)
                    self._kept.append(shadow)

    def attach(self, out, value) -> None:
        """Shadows for what the op returned."""
        if isinstance(out, _Tensor):
            if isinstance(value, _Tensor) and value.shape == out.shape:
                out._tidemark_shadow = value
        elif isinstance(out, (list, tuple)):
            for o, v in zip(out, value):
                self.attach(o, v)


class _Unknown(Exception):
    pass
