"""The passes of a whole step that `calibrate` has run so far, kept in a file until there are enough of them.

A median needs all passes of an op, so that nothing of a step can be put into the table before the last one; an interrupted run
would lose what it measured.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

_SAVE_EVERY_S = 5.0


class Passes:
    def __init__(self, device_file: Path, machine: str, step: str) -> None:
        self.path = device_file.with_name(device_file.name + ".passes.json")
        self.count = 0
        self.seconds = 0.0
        self.times: dict[int, list[int]] = {}  # by op: nanoseconds, one for each pass in which it ran
        self.done = False  # the table has them
        self._head = {"machine": machine, "step": step}
        self._saved = time.monotonic()
        self._read()

    def __enter__(self) -> Passes:
        return self

    def __exit__(self, *_: object) -> None:
        if self.done:
            self.path.unlink(missing_ok=True)
        elif self.count:
            self._save()

    def add(self, times: dict[int, int], seconds: float) -> None:
        for op, ns in times.items():
            self.times.setdefault(op, []).append(ns)
        self.count += 1
        self.seconds += seconds
        if time.monotonic() - self._saved > _SAVE_EVERY_S:
            self._save()

    def _save(self) -> None:
        temporary = self.path.with_name(self.path.name + ".part")
        temporary.write_text(json.dumps({**self._head, "count": self.count, "seconds": self.seconds, "times": self.times}))
        os.replace(temporary, self.path)
        self._saved = time.monotonic()

    def _read(self) -> None:
        """Passes of another step, another machine, or what nobody can read are begun anew."""
        try:
            file = json.loads(self.path.read_text())
            if {key: file[key] for key in self._head} != self._head:
                return
            times = {int(op): [int(ns) for ns in taken] for op, taken in file["times"].items()}
            self.times, self.count, self.seconds = times, int(file["count"]), float(file["seconds"])
        except (OSError, AttributeError, KeyError, TypeError, ValueError):
            return
