"""Whose times the estimators give."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from .. import _core


@dataclass(frozen=True)
class Settings:
    """`cost` is one of PyTorch's own models ("reference-m", "reference-b", "reference-n"), `device` one that it knows.
    `charges_device_queries`: asking a tensor for its device counts as reading it, as in PyTorch's estimator."""

    cost: str = "reference-m"
    device: str = "a100-80-pcie"
    charges_device_queries: bool = True

    @property
    def rules(self) -> str:
        return "reference-b" if self.cost == "reference-b" else "reference-m"


_current = Settings()


def settings() -> Settings:
    return _current


def use(cost: str | None = None, device: str | None = None, charges_device_queries: bool | None = None):
    """Changes the settings from here on, or only inside a `with` block.

    >>> tidemark.compat.use(cost="reference-b", device="h100-sxm")
    >>> with tidemark.compat.use(charges_device_queries=False):
    ...     ...
    """
    global _current
    before = _current
    asked = {"cost": cost, "device": device, "charges_device_queries": charges_device_queries}
    changed = replace(before, **{name: value for name, value in asked.items() if value is not None})
    _core.reference_op_ms(changed.cost, changed.device, "mm", [], 0.0, None)  # an unknown name is an error here
    _current = changed
    return _put_back(before)


class _put_back(contextlib.AbstractContextManager):
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __exit__(self, *error) -> None:
        global _current
        _current = self._settings
