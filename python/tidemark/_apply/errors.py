"""What goes wrong once a plan is applied."""

from __future__ import annotations


_AGAIN = "tidemark.capture and tidemark.plan again, or tidemark.remove(model)"


class DriftError(RuntimeError):
    """The model does not run what its plan was made for. Names the module, the op, the line, what was expected, what came,
    and the likely cause. Plan again from a new capture, or take the plan back with `tidemark.remove(model)`."""


def drift(module: str, problem: str, *, expected: str = "", got: str = "", cause: str = "", remedy: str = _AGAIN) -> DriftError:
    text = f"[{module or '(root)'}] {problem}"
    if expected:
        text += f"; expected {expected}"
    if got:
        text += f", got {got}" if expected else f"; got {got}"
    if cause:
        text += f"; likely cause: {cause}"
    return DriftError(f"{text}; try: {remedy}")
