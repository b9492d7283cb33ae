"""Where the solver HiGHS may be: the package `highsbox` beside this one, then the system's own library."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def places(highs: str | None = None) -> list[str]:
    """What to hand to `_core.solve_modules`; `highs` is a library that the user named, and then the only one."""
    if highs:
        return [str(highs)]
    found = []
    spec = importlib.util.find_spec("highsbox")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        found += [str(path) for path in sorted(Path(folder).glob("highs_dist/lib*/libhighs.so*"))]
    return [*found, "libhighs.so.1", "libhighs.so"]
