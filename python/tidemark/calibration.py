"""Timing the ops of a step on the device at hand.

    tidemark.calibrate(step, "my-machine.json")

runs the ops of a recorded step a few times and writes a device file with what each different one took: the cost model then
uses the measured times for those ops, and fits the rest to them.

A step that fits the memory at hand is run as it was recorded (`_calibrate/rerun.py`). What cannot be run that way is run
alone, on tensors of its own.

    tidemark time STEP --device my-machine.json
"""

from __future__ import annotations

import math
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator

from . import _core

if TYPE_CHECKING:
    from ._calibrate.passes import Passes
    from ._calibrate.rerun import Rerun
    from ._core import Step

# Tensors of an op are used in turn, in as many sets as exceed this together: in a step, too, most of what an op reads is no
# longer in the caches nearest to the cores.
_MOST_SET_BYTES = 64 << 20
_MOST_SETS = 8
_MOST_MEMORY = 0.5  # of what is there, for a step to be run as a whole
_PASSES = (5, 30)  # of a whole step: at least, at most
_CLOCKS = {"wall": time.perf_counter_ns, "cpu": time.process_time_ns}


def calibrate(
    step: Step,
    path: str | os.PathLike[str],
    *,
    device: str = "cpu",
    name: str | None = None,
    seconds_per_op: float = 0.05,
    clock: str = "wall",
    workspace: bool = True,
    progress: bool | None = None,
) -> list[str]:
    """Times each different op of `step` on `device` ("cpu" or "cuda") and writes the device file `path`.

    An existing file of the same machine is continued: what it holds is kept and not measured again, so a run that was
    interrupted can be repeated, and several steps can share a file; the passes of a step that is run as a whole stand in
    PATH.passes.json until they are enough. Workspace that kernels take on a CPU is measured too
    and written beside it, as PATH.workspace.jsonl.

    clock: "wall", or "cpu" to count the process's own time, which is right on a CPU shared with others when torch runs on
    one thread. progress: show a bar; by default when stderr is a terminal.

    seconds_per_op: how long each different op is run, about; a step that is run as a whole gets as much for all of them.

    On a CPU, times are those of memory that the process already has: from the call on, the process keeps what it frees
    (`mallopt`), since page faults come and go with the state of the heap. A training process that should take the predicted
    time does so, too, with MALLOC_TRIM_THRESHOLD_=100000000000 MALLOC_MMAP_MAX_=0 in its environment.

    Returns the keys of the ops that could not be run; the model prices those.
    """
    import torch

    if not isinstance(step, _core.Step):
        raise TypeError(f"calibrate: step is {step!r:.80}; expected a Step, as tidemark.capture and tidemark.Step.load give it")
    if isinstance(seconds_per_op, bool) or not isinstance(seconds_per_op, (int, float)) or not 0 <= seconds_per_op < math.inf:
        raise ValueError(f"calibrate: seconds_per_op is {seconds_per_op!r}; expected a number of seconds, 0 or more")
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise ValueError(f"calibrate: path is {path!r:.80}; expected where the device file goes, such as 'my-machine.json'")
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"calibrate: {str(target)!r} is a folder; expected a file, such as {str(target / 'my-machine.json')!r}")
    if not target.absolute().parent.is_dir():
        raise ValueError(f"calibrate: there is no folder {str(target.absolute().parent)!r} for the file {target.name!r}; try: make it first")
    if name is not None and not isinstance(name, str):
        raise ValueError(f"calibrate: name is {name!r:.80}; expected a text, or nothing for the file's own name")
    if device not in ("cpu", "cuda"):
        raise ValueError(f"calibrate: device is {device!r}; expected 'cpu' or 'cuda'")
    if device != "cpu" and not torch.cuda.is_available():
        raise ValueError(f"calibrate: device is {device!r}, but torch sees no CUDA device; expected 'cpu', or run it where one is")
    if clock not in _CLOCKS or (clock == "cpu" and (device != "cpu" or torch.get_num_threads() != 1)):
        raise ValueError(f"calibrate: clock is {clock!r}; expected 'wall', or 'cpu' on a CPU with torch.set_num_threads(1)")

    from ._calibrate import overheads
    from ._calibrate.device_file import Table
    from ._calibrate.passes import Passes
    from ._calibrate.rerun import Rerun
    from ._calibrate.resident_memory import keep_freed_memory

    now = _CLOCKS[clock]
    table = Table(target, name or target.stem, device, clock, now)
    kinds = {}
    for op in step.ops:
        kinds.setdefault(_core.workspace_key(step, op.id), op)
    table.works |= zip(kinds, _core.op_works(step, [op.id for op in kinds.values()]))
    missing = {key: op for key, op in kinds.items() if key not in table.rows}
    bar = _Bar(len(missing), sys.stderr.isatty() if progress is None else progress)
    failed: list[str] = []
    if device == "cpu":
        keep_freed_memory()
    # Random ops run here, and values shrink when an op is repeated.
    with bar, _saved_at_the_end(table), torch.random.fork_rng([] if device == "cpu" else None), torch.no_grad(), _flushed_denormals():
        call = overheads.call_ns(now) if device == "cpu" else 0
        beside = [lambda b: overheads.time_regions(device, now, b, bar.note)] if "checkpoint save" not in table.rows else []
        if device == "cpu" and "op overhead forward" not in table.rows:
            beside.append(lambda b: overheads.time_op_overheads(now, call, b, bar.note))
        run = Rerun(step, device, now) if (missing or beside) and _fits(step, device) else None
        for measure in beside:
            between = overheads.Between(device, step, run)
            for key, row in measure(between).items():
                table.add(key, *row)
            between.close()
            table.save()
        if missing and run is not None:
            with Passes(target, table.machine, step.fingerprint) as passes:
                for key, (median, spread) in _time_in_order(step, run, seconds_per_op * len(missing), bar, passes).items():
                    if key in missing:
                        table.add(key, max(1, median - call), spread)
                        del missing[key]
                table.save()
                passes.done = True
        run = None  # and what it holds
        for key, op in missing.items():
            bar.show(op.name)
            found = _time_op(step, op, device, seconds_per_op, now)
            if found is None:
                failed.append(key)
            else:
                table.add(key, max(1, found[0] - call), found[1])
    if workspace and device == "cpu":
        _write_workspace(step, kinds, target)
    return failed


@contextmanager
def _saved_at_the_end(table: Any) -> Iterator[None]:
    """Also when somebody interrupts it: what was measured until then need not be measured again."""
    try:
        yield
    finally:
        table.save()


@contextmanager
def _flushed_denormals() -> Iterator[None]:
    import torch

    were_flushed = not torch.full((1,), 2.0**-1074, dtype=torch.float64).mul(1.0).any()
    could = torch.set_flush_denormal(True)
    try:
        yield
    finally:
        if could and not were_flushed:
            torch.set_flush_denormal(False)


# -- a whole step --


def _fits(step: Step, device: str) -> bool:
    import torch

    if device == "cpu":
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    else:
        there = torch.cuda.mem_get_info()[0]
    return _core.simulate(step).peak_bytes <= _MOST_MEMORY * there


def _time_in_order(step: Step, run: Rerun, seconds: float, bar: _Bar, passes: Passes) -> dict[str, tuple[int, int]]:
    """By key: the mean over the ops that have it of each one's median, and the same of half the distance between its
    quartiles, in nanoseconds. Ops that could not be run are missing. `passes` has those of an earlier call, and keeps
    those of this one."""
    from ._calibrate.overheads import row_of

    is_warm = False
    while passes.count < _PASSES[0] - 1 or (passes.count < _PASSES[1] - 1 and passes.seconds < seconds):
        began = time.perf_counter()
        found = run.once()
        if is_warm:  # the first one warms up
            passes.add(found, time.perf_counter() - began)
        is_warm = True
        bar.note(f"pass {passes.count} of the whole step")
    by_key: dict[str, list[tuple[int, int]]] = {}
    for op, taken in passes.times.items():
        by_key.setdefault(_core.workspace_key(step, op), []).append(row_of(taken))
    return {
        key: (sum(median for median, _ in rows) // len(rows), sum(spread for _, spread in rows) // len(rows))
        for key, rows in by_key.items()
    }


# -- one op --


def _time_op(step: Step, op: Any, device: str, seconds: float, now: Callable[[], int]) -> tuple[int, int] | None:
    """(median, half the distance between the quartiles) in nanoseconds, or None when the op cannot be run."""
    import torch

    from ._calibrate.op_call import OpCall, extent_of, layout_of, made_up
    from ._calibrate.overheads import row_of

    try:
        call = OpCall(op, device)
        func = call.func
        bytes_ = sum(extent_of(step, t) * getattr(torch, layout_of(step, t).dtype).itemsize for t in op.inputs)
        count = max(1, min(_MOST_SETS, _MOST_SET_BYTES // max(bytes_, 1)))
        sets = [call.arguments([made_up(step, t, device) for t in op.inputs]) for _ in range(count)]
        for args, kwargs in sets[:2]:
            func(*args, **kwargs)
    except Exception:  # made-up values do not suit every op
        return None
    wait = torch.cuda.synchronize if device != "cpu" else lambda: None
    times: list[int] = []
    wait()
    began = time.perf_counter()
    while (len(times) < 7 or time.perf_counter() - began < seconds) and len(times) < 1000:
        args, kwargs = sets[len(times) % count]
        start = now()
        out = func(*args, **kwargs)
        wait()
        times.append(now() - start)
        del out
        if len(times) >= 3 and time.perf_counter() - began > 20 * seconds:
            break
    return row_of(times)


# -- workspace, and the bar --


def _write_workspace(step: Step, kinds: dict, path: Path) -> None:
    from ._calibrate.op_call import OpCall, extent_of, layout_of
    from ._capture import workspace

    class Given(workspace.Specimen):
        __slots__ = ()

        def __init__(self, tensor: int) -> None:
            import torch

            layout = layout_of(step, tensor)
            self.dtype, self.size, self.stride = getattr(torch, layout.dtype), layout.shape, layout.stride
            self.extent, self.ones = extent_of(step, tensor), 0

    target = Path(f"{path}.workspace.jsonl")
    rows = _core.WorkspaceTable.load(target).rows if target.exists() else []  # of other steps, and of an earlier run
    known = {key for key, *_ in rows}
    listed, keys = [], []
    for key, op in kinds.items():
        if key in known:
            continue
        try:
            call = OpCall(op, "cpu")
            made = [Given(t) for t in op.inputs]
            if workspace._is_view(call.func) or workspace.argument_bytes(made) > workspace.MOST_BYTES:
                continue
        except (AttributeError, TypeError, ValueError):
            continue
        listed.append((call.func, [], call.named_arguments(made)))
        keys.append(key)
    if target.exists() and not listed:
        return
    for number, (plain, watched) in workspace.run_ops(listed).items():
        rows.append((keys[number], [tuple(s) for s in plain], False))
        if watched != plain:
            rows.append((keys[number] + " watched", [tuple(s) for s in watched], False))
    _core.WorkspaceTable(sorted(rows), device="cpu").save(target)


class _Bar:
    def __init__(self, count: int, shown: bool) -> None:
        self.count, self.shown, self.done = count, shown and count > 0, 0

    def show(self, name: str) -> None:
        self.done += 1
        if self.shown:
            full = 30 * self.done // self.count
            sys.stderr.write(f"\rcalibrating [{'#' * full}{'.' * (30 - full)}] {self.done}/{self.count} {name[:36]:36}")
            sys.stderr.flush()

    def note(self, text: str) -> None:
        if self.shown:
            sys.stderr.write(f"\rcalibrating: {text:60}")
            sys.stderr.flush()

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        if self.shown:
            sys.stderr.write("\r" + " " * 90 + "\r")
