"""What a capture raises."""

from __future__ import annotations

from .._core import Error


class CaptureError(Error):
    """A step could not be recorded; the message says what, where and what to do. Everything is as it was before."""
