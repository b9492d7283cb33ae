"""Which line of the user's program is running."""

from __future__ import annotations

import os
import sys

import torch

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep

_is_user: dict = {}


def is_users(filename: str) -> bool:
    """Whether a file is neither PyTorch's nor ours nor Python's."""
    if filename.startswith((_TORCH, _HERE, "<frozen")):
        return False
    if filename.startswith(_STANDARD):
        return "site-packages" in filename or "dist-packages" in filename
    return True


def user_line(frame) -> tuple | None:
    """(code, line) of the innermost frame, from `frame` outwards, that is neither PyTorch's nor ours nor Python's."""
    known = _is_user
    while frame is not None:
        code = frame.f_code
        user = known.get(code)
        if user is None:
            user = known[code] = is_users(code.co_filename)
        if user:
            return code, frame.f_lineno
        frame = frame.f_back
    return None


def place_of(frame) -> str:
    """The same as text, for messages."""
    found = user_line(frame)
    return "an unknown line" if found is None else f"{found[0].co_filename}:{found[1]}"


def current_place() -> str:
    return place_of(sys._getframe(1))
