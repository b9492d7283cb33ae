"""Timing the ops of a step on the device at hand.

    tidemark.calibrate(step, "my-machine.json")

runs the ops of a recorded step a few times and writes a device file with what each different one took: the cost model then
uses the measured times for those ops, and fits the rest to them.

A step that fits the memory at hand is run as it was recorded: each op on what the ops before it have made, with memory
taken and given back where the record says, so that caches and the allocator are in the state that a real step finds.
What cannot be run that way is run alone, on tensors of its own.

    tidemark time STEP --device my-machine.json
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from ._core import Step

# Tensors of an op are used in turn, in as many sets as exceed this together: in a step, too, most of what an op reads is no
# longer in the caches nearest to the cores.
_MOST_SET_BYTES = 64 << 20
_MOST_SETS = 8
_REGION = "checkpoint region"
_REGION_RANDOM = "checkpoint random state"
_OVERHEAD = "op overhead"
_SAVE_EVERY_S = 5.0
_MOST_MEMORY = 0.5  # of what is there, for a step to be run as a whole
_PASSES = (5, 30)  # of a whole step: at least, at most
_CLOCKS = {"wall": time.perf_counter_ns, "cpu": time.process_time_ns}
_PROBE = 1024  # of the matrix product that tells the peak of a device that has no data sheet here


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
    interrupted can be repeated, and several steps can share a file. Workspace that kernels take on a CPU is measured too
    and written beside it, as PATH.workspace.jsonl.

    clock: "wall", or "cpu" to count the process's own time, which is right on a CPU shared with others when torch runs on
    one thread. progress: show a bar; by default when stderr is a terminal.

    seconds_per_op: how long each different op is run, about; a step that is run as a whole gets as much for all of them.

    Returns the keys of the ops that could not be run; the model prices those.
    """
    import torch

    if device != "cpu" and not torch.cuda.is_available():
        raise ValueError(f"calibrate: device is {device!r}, but torch sees no CUDA device; expected 'cpu', or run it where one is")
    if clock not in _CLOCKS or (clock == "cpu" and (device != "cpu" or torch.get_num_threads() != 1)):
        raise ValueError(f"calibrate: clock is {clock!r}; expected 'wall', or 'cpu' on a CPU with torch.set_num_threads(1)")
    target = Path(path)
    table = _Table(target, name or target.stem, device, clock)
    kinds = {}
    for op in step.ops:
        kinds.setdefault(_core.workspace_key(step, op.id), op)
    missing = {key: op for key, op in kinds.items() if key not in table.rows}
    bar = _Bar(len(missing), sys.stderr.isatty() if progress is None else progress)
    failed: list[str] = []
    if _REGION not in table.rows:
        for key, row in _time_region(device, _CLOCKS[clock]).items():
            table.add(key, *row)
        if device == "cpu":
            table.add(_OVERHEAD, *_time_overhead(_CLOCKS[clock]))
    old = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    torch.set_flush_denormal(True)  # values shrink when an op is repeated in place
    try:
        if missing and _fits(step, device):
            for key, row in _time_in_order(step, device, seconds_per_op * len(missing), _CLOCKS[clock], bar).items():
                if key in missing:
                    table.add(key, *row)
                    del missing[key]
        for key, op in missing.items():
            bar.show(op.name)
            found = _time_op(step, op, device, seconds_per_op, _CLOCKS[clock])
            if found is None:
                failed.append(key)
            else:
                table.add(key, *found)
        table.save()
    finally:
        torch.set_flush_denormal(False)
        torch.set_grad_enabled(old)
        bar.end()
    if workspace and device == "cpu":
        _write_workspace(step, kinds, target)
    return failed


# -- a whole step --


def _fits(step: Step, device: str) -> bool:
    import torch

    if device == "cpu":
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    else:
        there = torch.cuda.mem_get_info()[0]
    return _core.simulate(step).peak_bytes <= _MOST_MEMORY * there


def _time_in_order(step: Step, device: str, seconds: float, now: Any, bar: _Bar) -> dict[str, tuple[int, int]]:
    """By key: the mean over the ops that have it of each one's median, and the same of half the distance between its
    quartiles, in nanoseconds. Ops that could not be run are missing."""
    run = _Run(step, device, now)
    times: dict[int, list[int]] = {}
    began = time.perf_counter()
    passes = 0
    while passes < _PASSES[0] or (passes < _PASSES[1] and time.perf_counter() - began < seconds):
        found = run.once()
        passes += 1
        if passes > 1:  # the first one warms up
            for op, ns in found.items():
                times.setdefault(op, []).append(ns)
        bar.note(f"pass {passes} of the whole step")
    by_key: dict[str, list[tuple[int, int]]] = {}
    for op, found in times.items():
        found.sort()
        n = len(found)
        row = (found[n // 2], (found[(3 * n) // 4] - found[n // 4]) // 2)
        by_key.setdefault(_core.workspace_key(step, op), []).append(row)
    return {key: tuple(sum(column) // len(rows) for column in zip(*rows)) for key, rows in by_key.items()}


class _Run:
    """A recorded step, run again on made-up values: storages come and go as the record says."""

    def __init__(self, step: Step, device: str, now: Any) -> None:
        self._step, self._device, self._now = step, device, now
        self._events = [(event[0], event[1]) for event in step.events]
        self._ops = list(step.ops)
        self._tensors = [(t.storage, t.layout, t.offset) for t in step.tensors]
        self._layouts = [(l.dtype, tuple(l.shape), tuple(l.stride)) for l in step.layouts]
        self._saved = [save.tensor for save in step.saves]
        made = {operand for kind, operand in self._events if kind == "alloc"}
        self._resident = [i for i in range(len(step.storages)) if i not in made]
        self._dtype_of = {}  # of a storage: the type of the first tensor in it
        for storage, layout, _ in self._tensors:
            self._dtype_of.setdefault(storage, self._layouts[layout][0])
        self._bytes = [s.bytes for s in step.storages]
        freed = {operand for kind, operand in self._events if kind == "free"}
        self._kept = {i: self._filled(i) for i in self._resident if i not in freed}  # from one run to the next
        self._broken: set[int] = set()  # ops that failed once

    def once(self) -> dict[int, int]:
        """By op: nanoseconds."""
        self._storages: dict[int, Any] = {i: self._kept[i] if i in self._kept else self._filled(i) for i in self._resident}
        self._holders = dict.fromkeys(self._resident, 1)
        times: dict[int, int] = {}
        for kind, operand in self._events:
            if kind == "begin":
                self._run(operand, times)
            elif kind == "alloc":
                self._hold(operand)
            elif kind == "free":
                self._let_go(operand)
            elif kind in ("pack", "unpack"):
                self._hold(self._tensors[self._saved[operand]][0])
            elif kind in ("drop", "release"):
                self._let_go(self._tensors[self._saved[operand]][0])
        self._storages = {}
        return times

    def _hold(self, storage: int) -> None:
        self._holders[storage] = self._holders.get(storage, 0) + 1

    def _let_go(self, storage: int) -> None:
        self._holders[storage] -= 1
        if not self._holders[storage]:
            self._storages.pop(storage, None)

    def _filled(self, storage: int) -> Any:
        import torch

        dtype = getattr(torch, self._dtype_of.get(storage, "uint8"))
        count = -(-self._bytes[storage] // dtype.itemsize)
        flat = torch.zeros(count, dtype=dtype, device=self._device)
        if dtype.is_floating_point:
            flat.fill_(0.02)
            flat[::2] = 0.01
        return flat.untyped_storage()

    def _tensor(self, tensor: int) -> Any:
        import torch

        storage, layout, offset = self._tensors[tensor]
        if storage not in self._storages:
            self._storages[storage] = self._filled(storage)
        dtype, shape, stride = self._layouts[layout]
        return torch.empty(0, dtype=getattr(torch, dtype), device=self._device).set_(self._storages[storage], offset, shape, stride)

    def _run(self, op: int, times: dict[int, int]) -> None:
        import torch

        row = self._ops[op]
        out = None
        if op not in self._broken:
            try:
                func = _overload(row.name)
                args, kwargs = _given(row, func, [self._tensor(t) for t in row.inputs], self._device)
                wait = torch.cuda.synchronize if self._device != "cpu" else None
                start = self._now()
                out = func(*args, **kwargs)
                if wait:
                    wait()
                times[op] = self._now() - start
            except Exception:  # made-up values do not suit every op
                self._broken.add(op)
                times.pop(op, None)
        self._keep(row, out)

    def _keep(self, row: Any, out: Any) -> None:
        """What the op has made stands for the storages of its outputs; what it should have made and has not comes later,
        when somebody asks for it."""
        import torch

        flat = out if isinstance(out, (list, tuple)) else [out]
        found = [t for item in flat for t in (item if isinstance(item, (list, tuple)) else [item]) if isinstance(t, torch.Tensor)]
        fresh = [output for output in row.outputs if output[1] == "fresh"]
        if len(found) < len(fresh):
            return
        # Results come in the order of the schema; changed inputs that are not returned stand among the outputs, too.
        returned = row.outputs if len(found) == len(row.outputs) else fresh
        for output, tensor in zip(returned, found):
            if output[1] == "fresh" and tensor.untyped_storage().nbytes() >= self._bytes[self._tensors[output[0]][0]]:
                self._storages[self._tensors[output[0]][0]] = tensor.untyped_storage()


# -- one op --


def _time_op(step: Step, op: Any, device: str, seconds: float, now: Any) -> tuple[int, int] | None:
    """(median, half the distance between the quartiles) in nanoseconds, or None when the op cannot be run."""
    import torch

    try:
        func = _overload(op.name)
        bytes_ = sum(_extent(step, t) for t in op.inputs)
        count = max(1, min(_MOST_SETS, _MOST_SET_BYTES // max(bytes_, 1)))
        sets = [_arguments(step, op, func, device) for _ in range(count)]
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
    times.sort()
    n = len(times)
    return times[n // 2], (times[(3 * n) // 4] - times[n // 4]) // 2


def _time_region(device: str, now: Any) -> dict[str, tuple[int, int]]:
    """What a checkpointed region costs beside the ops it runs again: around two small ones, against the same without."""
    import torch
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(4, 4, device=device, requires_grad=True)

    def inside(y):
        return torch.tanh(y @ x)

    runs = {
        "plain": lambda: inside(x).sum().backward(),
        "forward": lambda: inside(x),
        "region": lambda: checkpoint(inside, x, use_reentrant=False, preserve_rng_state=False).sum().backward(),
        "random": lambda: checkpoint(inside, x, use_reentrant=False, preserve_rng_state=True).sum().backward(),
    }
    times: dict[str, list[int]] = {name: [] for name in runs}
    for turn in range(70):
        for name, run in runs.items():
            start = now()
            run()
            if turn >= 10:
                times[name].append(now() - start)
    median = {name: sorted(found)[len(found) // 2] for name, found in times.items()}
    region = max(0, median["region"] - median["plain"] - median["forward"])
    return {_REGION: (region, region // 5), _REGION_RANDOM: (max(0, median["random"] - median["region"]), 0)}


def _time_overhead(now: Any) -> tuple[int, int]:
    """What an op costs beside itself in a program's own step (its module, its node): a step of small ops, less the ops run
    again in order, for each."""
    import torch

    from .recording import capture

    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh()) for _ in range(12)])
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.ones(16, 16)

    def run() -> None:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    step = capture(run, model, optimizer, workspace=False)
    again = _Run(step, "cpu", now)
    times, alone = [], []
    for _ in range(30):
        start = now()
        run()
        times.append(now() - start)
        with torch.no_grad():
            alone.append(sum(again.once().values()))
    times.sort()
    alone.sort()
    return max(0, (times[15] - alone[15]) // len(step.ops)), (times[22] - times[7]) // (2 * len(step.ops))


def _overload(name: str):
    import torch

    namespace, packet, variant = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), variant)


def _layout(step: Step, tensor: int):
    return step.layouts[step.tensors[tensor].layout]


def _extent(step: Step, tensor: int) -> int:
    layout = _layout(step, tensor)
    extent = 1
    for size, stride in zip(layout.shape, layout.stride):
        if size == 0:
            return 0
        extent += (size - 1) * stride
    return extent


def _arguments(step: Step, op: Any, func: Any, device: str) -> tuple[list, dict]:
    """The op's arguments with tensors of the recorded layouts and values that suit most ops."""
    return _given(op, func, [_tensor(step, t, device) for t in op.inputs], device)


def _given(op: Any, func: Any, made: list, device: str) -> tuple[list, dict]:
    args: list = []
    kwargs: dict = {}
    for argument in func._schema.arguments:
        if argument.name not in op.args:
            if not argument.has_default_value():
                raise TypeError(f"{op.name} has no {argument.name}")
            continue
        value = _value(op.args[argument.name], made, "[]" in str(argument.type).split("=")[0], device)
        if argument.kwarg_only or len(args) < func._schema.arguments.index(argument):
            kwargs[argument.name] = value
        else:
            args.append(value)
    return args, kwargs


def _value(value: Any, made: list, is_list: bool, device: str) -> Any:
    import torch

    if isinstance(value, range):
        tensors = [made[i] for i in value]
        return tensors if is_list or len(tensors) != 1 else tensors[0]
    if isinstance(value, list):
        return [_value(item, made, False, device) for item in value]
    if isinstance(value, str) and value.startswith("torch."):
        return getattr(torch, value.removeprefix("torch."))
    if isinstance(value, str) and value.split(":")[0] in ("cpu", "cuda", "meta"):
        return torch.device(device)
    return value


def _tensor(step: Step, tensor: int, device: str):
    import torch

    layout = _layout(step, tensor)
    dtype = getattr(torch, layout.dtype)
    # Whole numbers are indices as often as not: 0 is always a valid one.
    flat = torch.zeros(_extent(step, tensor), dtype=dtype, device=device)
    if dtype.is_floating_point:
        flat.fill_(0.5)
    elif dtype is torch.bool:
        flat[::2] = True
    return flat.as_strided(layout.shape, layout.stride)


# -- the file --


class _Table:
    def __init__(self, path: Path, name: str, device: str, clock: str) -> None:
        self.path = path
        self.machine = _machine_text(device) + ("" if clock == "wall" else f", {clock} clock")
        self.rows: dict[str, tuple[int, int]] = {}
        self.file = self._read() or self._new(name, device)
        self.saved = time.monotonic()

    def add(self, key: str, median: int, spread: int) -> None:
        self.rows[key] = (median, spread)
        if time.monotonic() - self.saved > _SAVE_EVERY_S:
            self.save()

    def save(self) -> None:
        self.file["measured"] = {"source": "calibrate", "ops": [[key, *row] for key, row in sorted(self.rows.items())]}
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
        file = json.loads(self.path.read_text())
        was = file.get("sources", {}).get("calibrate", "nothing that calibrate wrote")
        if was != self.machine:
            raise ValueError(
                f"calibrate: {self.path} was made on another machine or setting; expected {self.machine!r}, got {was!r}; "
                "try another path, or delete the file"
            )
        self.rows = {key: (median, spread) for key, median, spread in file["measured"]["ops"]}
        return file

    def _new(self, name: str, device: str) -> dict:
        figures = _cpu_figures() if device == "cpu" else _cuda_figures()
        return {"tidemark": "device", "version": [1, 0], "name": _plain_name(name), **figures, "sources": {
            "assumed": "assumed; declare your own figure",
            "calibrate": self.machine,
        }}


def _plain_name(name: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "-" for c in name.lower())
    return kept[:64] or "mine"


def _machine_text(device: str) -> str:
    import torch

    where = platform.processor() or platform.machine() if device == "cpu" else torch.cuda.get_device_name()
    threads = f", {torch.get_num_threads()} threads" if device == "cpu" else ""
    return f"measured by tidemark.calibrate with torch {torch.__version__} on {where}{threads}"


def _best_seconds(run: Any, wait: Any, rounds: int = 7) -> float:
    run()
    best = float("inf")
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        run()
        wait()
        best = min(best, time.perf_counter() - start)
    return best


def _probes(device: str) -> tuple[int, int]:
    """Bytes a second of a large copy, and FLOP/s of a large float32 product."""
    import torch

    wait = torch.cuda.synchronize if device != "cpu" else lambda: None
    count = 8 << 20 if device == "cpu" else 64 << 20
    source = torch.zeros(count, device=device)
    sink = torch.zeros(count, device=device)
    copy = _best_seconds(lambda: sink.copy_(source), wait)
    side = _PROBE if device == "cpu" else 4 * _PROBE
    a = torch.full((side, side), 0.5, device=device)
    product = _best_seconds(lambda: a @ a, wait)
    return int(2 * source.nbytes / copy), int(2 * side**3 / product)


def _figures(device: str, kind: str, title: str, generation: str, memory_type: str, memory: int, cores: int, cache: int) -> dict:
    bandwidth, flops = _probes(device)
    measured, assumed = "calibrate", "assumed"
    return {
        "title": title, "kind": kind, "generation": generation, "memory_type": memory_type,
        "memory_bytes": [memory, measured], "bandwidth_bytes_per_s": [bandwidth, measured],
        "multiprocessors": [cores, measured], "l2_bytes": [cache, assumed if kind == "cpu" else measured],
        "board_watts": [100, assumed],
        "peak_flops": {"float32": [flops, measured]}, "achieved_permille": {"float32": [1000, measured]},
        "launch_floor_ns": [2000 if kind == "cpu" else 10000, assumed],
        "link": {"kind": "none", "bytes_per_s": [1000000000, assumed], "latency_ns": [1000, assumed]},
        "allocator_rounding_bytes": [1 if kind == "cpu" else 512, assumed],
        "overhead_bytes": [0 if kind == "cpu" else 524288000, assumed],
    }


def _cpu_figures() -> dict:
    import torch

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    title = f"this machine's CPU, {torch.get_num_threads()} threads"
    return _figures("cpu", "cpu", title, platform.machine() or "cpu", "ddr", memory, torch.get_num_threads(), 16 << 20)


def _cuda_figures() -> dict:
    import torch

    p = torch.cuda.get_device_properties(0)
    cache = getattr(p, "L2_cache_size", 0) or 4 << 20
    kind = "rocm" if torch.version.hip else "cuda"
    return _figures("cuda", kind, p.name, f"{p.major}.{p.minor}", "hbm", p.total_memory, p.multi_processor_count, cache)


# -- workspace, and the bar --


def _write_workspace(step: Step, kinds: dict, path: Path) -> None:
    from ._capture import workspace

    class Given(workspace.Specimen):
        __slots__ = ()

        def __init__(self, tensor: int) -> None:
            import torch

            layout = _layout(step, tensor)
            self.dtype, self.size, self.stride = getattr(torch, layout.dtype), layout.shape, layout.stride
            self.extent, self.ones = _extent(step, tensor), 0

    listed, keys = [], []
    for key, op in kinds.items():
        try:
            func = _overload(op.name)
            made = [Given(t) for t in op.inputs]
            if workspace._is_view(func) or workspace.argument_bytes(made) > workspace.MOST_BYTES:
                continue
            kwargs = {
                a.name: _value(op.args[a.name], made, "[]" in str(a.type).split("=")[0], "cpu")
                for a in func._schema.arguments
                if a.name in op.args
            }
        except (AttributeError, TypeError, ValueError):
            continue
        listed.append((func, [], kwargs))
        keys.append(key)
    rows = []
    for number, (plain, watched) in workspace.run_ops(listed).items():
        rows.append((keys[number], [tuple(s) for s in plain], False))
        if watched != plain:
            rows.append((keys[number] + " watched", [tuple(s) for s in watched], False))
    _core.WorkspaceTable(rows, device="cpu").save(f"{path}.workspace.jsonl")


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

    def end(self) -> None:
        if self.shown:
            sys.stderr.write("\r" + " " * 90 + "\r")
