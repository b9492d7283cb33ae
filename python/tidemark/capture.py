"""Recording one training step of a PyTorch model."""

from __future__ import annotations

import contextlib
import sys
from collections import defaultdict
from typing import Any, Callable

from . import _core
from ._core import Error, Step, StepBuilder


class CaptureError(Error):
    """A step could not be recorded; the message says where, why and what to do."""


def capture(
    step_fn: Callable[[], Any],
    model,
    optimizer=None,
    *,
    mode: str = "auto",
    target: str = "cpu",
) -> Step:
    """Records the second of two runs of `step_fn`, which runs one whole training step of `model`."""
    from ._capture import session

    return session.capture(step_fn, model, optimizer, mode=mode, target=target)
