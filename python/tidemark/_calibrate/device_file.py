"""The device file that `calibrate` writes: figures of the machine at hand, and a table of what was timed on it."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any, Callable

import torch

_SAVE_EVERY_S = 5.0
_PROBE = 1024  # of the matrix product that tells the peak of a device that has no data sheet here
_LEAST_PROBE = 256
_LEAST_FLOPS = 10**9  # what a device file takes as a peak
_PROBE_SECONDS = 0.1  # a product that takes longer tells as much when it is smaller: CPUs have no units for some types
_PROBED = ("float64", "float32", "float16", "bfloat16")
_WIDE_BUS = 1024  # bits, from which memory is stacked


class Table:
    def __init__(self, path: Path, name: str, device: str, clock: str, now: Callable[[], int]) -> None:
        self.path = path
        self.machine = _machine_text(device) + ("" if clock == "wall" else f", {clock} clock")
        self.rows: dict[str, tuple[int, int]] = {}
        self.works: dict[str, str] = {}  # what the op of a row asks of the device; files of older versions have none
        self.file = self._read() or self._new(name, device, now)
        self.saved = time.monotonic()

    def add(self, key: str, median: int, spread: int) -> None:
        self.rows[key] = (median, spread)
        if time.monotonic() - self.saved > _SAVE_EVERY_S:
            self.save()

    def _row(self, key: str) -> list:
        return [key, *self.rows[key], *([self.works[key]] if key in self.works else [])]

    def save(self) -> None:
        self.file["measured"] = {"source": "calibrate", "ops": [self._row(key) for key in sorted(self.rows)]}
        temporary = self.path.with_name(self.path.name + ".part")
        head = {k: v for k, v in self.file.items() if k != "measured"}
        rows = ",\n".join("    " + json.dumps(row) for row in self.file["measured"]["ops"])
        text = json.dumps(head, indent=1)[:-2] + ',\n "measured": {"source": "calibrate", "ops": [\n' + rows + "\n ]}\n}\n"
        temporary.write_text(text)
        os.replace(temporary, self.path)
        self.saved = time.monotonic()

    def _read(self) -> dict | None:
        if not self.path.exists():
            return None
        try:
            file = json.loads(self.path.read_text())
            was = file["sources"].get("calibrate", "nothing that calibrate wrote")
            for key, median, spread, *work in file["measured"]["ops"]:
                self.rows[str(key)] = (int(median), int(spread))
                if work:
                    self.works[str(key)] = str(*work)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"calibrate: {self.path} is not a file that calibrate wrote ({error!r}); try another path, or delete the file"
            ) from None
        if was != self.machine:
            raise ValueError(
                f"calibrate: {self.path} was made on another machine or setting; expected {self.machine!r}, got {was!r}; "
                "try another path, or delete the file"
            )
        return file

    def _new(self, name: str, device: str, now: Callable[[], int]) -> dict:
        figures = _cpu_figures(now) if device == "cpu" else _cuda_figures(now)
        return {"tidemark": "device", "version": [1, 0], "name": _plain_name(name), **figures, "sources": {
            "assumed": "assumed; declare your own figure",
            "calibrate": self.machine,
        }}


def _plain_name(name: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "-" for c in name.lower())
    return kept[:64] or "mine"


def _machine_text(device: str) -> str:
    where = _cpu_name() if device == "cpu" else torch.cuda.get_device_name()
    threads = f", {_threads_text()}" if device == "cpu" else ""
    return f"measured by tidemark.calibrate with torch {torch.__version__} on {where}{threads}"


def _cpu_name() -> str:
    """As the system has it: Python's own name is often that of the architecture alone."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except (OSError, IndexError):
        names = []
    return names[0] if names and names[0] else platform.processor() or platform.machine()


def _threads_text() -> str:
    count = torch.get_num_threads()
    return f"{count} thread{'' if count == 1 else 's'}"


def _best_seconds(run: Callable[[], Any], wait: Callable[[], Any], now: Callable[[], int], rounds: int = 7) -> float:
    run()
    best = sys.maxsize
    for _ in range(rounds):
        wait()
        start = now()
        run()
        wait()
        best = min(best, now() - start)
    return max(1, best) / 1e9


def _probes(device: str, now: Callable[[], int]) -> tuple[int, dict[str, int]]:
    """Bytes a second of a large copy, and FLOP/s of a large product, by its type."""
    wait = torch.cuda.synchronize if device != "cpu" else lambda: None
    count = 8 << 20 if device == "cpu" else 64 << 20
    source = torch.zeros(count, device=device)
    sink = torch.zeros(count, device=device)
    copy = _best_seconds(lambda: sink.copy_(source), wait, now)
    rates = {}
    for name in _PROBED:
        side = _PROBE if device == "cpu" else 4 * _PROBE
        a = torch.full((side, side), 0.5, device=device, dtype=getattr(torch, name))
        once = _best_seconds(lambda: a @ a, wait, now, rounds=1)
        while once > _PROBE_SECONDS and side > _LEAST_PROBE:
            side, once = side // 2, once / 8
        a = a[:side, :side].contiguous()
        rates[name] = max(_LEAST_FLOPS, int(2 * side**3 / _best_seconds(lambda: a @ a, wait, now)))
    return int(2 * source.nbytes / copy), rates


def _figures(
    device: str, now: Callable[[], int], kind: str, title: str, generation: str, memory_type: str, memory: int, cores: int, cache: int
) -> dict:
    bandwidth, rates = _probes(device, now)
    measured, assumed = "calibrate", "assumed"
    return {
        "title": title, "kind": kind, "generation": generation, "memory_type": memory_type,
        "memory_bytes": [memory, measured], "bandwidth_bytes_per_s": [bandwidth, measured],
        "stream_permille": [1000, measured],  # the bandwidth is what a copy reached
        "multiprocessors": [cores, measured], "l2_bytes": [cache, assumed if kind == "cpu" else measured],
        "board_watts": [100, assumed],
        "peak_flops": {name: [rate, measured] for name, rate in rates.items()},
        "achieved_permille": {name: [1000, measured] for name in rates},
        "launch_floor_ns": [2000 if kind == "cpu" else 10000, assumed],
        "link": {"kind": "none", "bytes_per_s": [1000000000, assumed], "latency_ns": [1000, assumed]},
        "allocator_rounding_bytes": [1 if kind == "cpu" else 512, assumed],
        "overhead_bytes": [0 if kind == "cpu" else 524288000, assumed],
    }


def _cpu_figures(now: Callable[[], int]) -> dict:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    title = f"this machine's CPU, {_threads_text()}"
    return _figures("cpu", now, "cpu", title, platform.machine() or "cpu", "ddr", memory, torch.get_num_threads(), 16 << 20)


def _cuda_figures(now: Callable[[], int]) -> dict:
    p = torch.cuda.get_device_properties(0)
    cache = getattr(p, "L2_cache_size", 0) or 4 << 20
    kind = "rocm" if torch.version.hip else "cuda"
    memory = "hbm" if getattr(p, "memory_bus_width", _WIDE_BUS) >= _WIDE_BUS else "gddr"
    return _figures("cuda", now, kind, p.name, f"{p.major}.{p.minor}", memory, p.total_memory, p.multi_processor_count, cache)
