"""What PyTorch spends around ops: calling them, recording them for backward, checkpointing them.

Each figure is a difference of two runs that differ in nothing else. In a step, little of this code is still in the caches when
its turn comes, since the ops before have gone through megabytes, each through others; so an op of the step itself runs between
any two ops here, while the clock stands still (`Between`).
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any, Callable, Generator, Iterator

import torch
from torch.utils.checkpoint import checkpoint

from .. import _core
from .rerun import Rerun

if TYPE_CHECKING:
    from .._core import Step

# Where no step runs between: bytes of usual ops, above a core's own caches (up to 2 MiB on today's CPUs), and of all of them
# together, above what cores share.
_BETWEEN_BYTES = 4 << 20
_ALL_BYTES = 256 << 20
_WARM_BYTES = 1 << 20  # of a step, that a core's own caches hold
_LONG_BYTES = 32 << 20  # the same, for a step whose ops are long and go through more
_LONG_OP_NS = 5_000_000  # from which on it is stood for by that
_ROUNDS = (3, 25)  # at least, at most
_SECONDS = 20.0  # after which the least is enough
_WARM_UP = 2
_LENGTHS = (2, 18)  # ops of a region: the difference tells what their saves cost
_SAVES = 2  # of an op, as most have: an input and a weight, an input and an output
_CALLS = 200
_PASSES = ("forward", "backward", "optimizer")
_THINGS = ("pass", "op", "view", "parameter")
_DOUBT = 20  # a twentieth of what a program takes may be anything

Clock = Callable[[], int]
Note = Callable[[str], None]
Row = tuple[int, int]  # nanoseconds: a median, and half the distance between the quartiles


def row_of(times: list[int]) -> Row:
    times = sorted(times)
    n = len(times)
    return times[n // 2], (times[(3 * n) // 4] - times[n // 4]) // 2


def call_ns(now: Clock) -> int:
    """What reading the clock and calling an op from Python add to each time that is taken here: small ops called one by
    one, less the same ones called by PyTorch itself in one go. (On a CPU, its lists of tensors are such loops.)"""
    tensors = [torch.ones(4) for _ in range(_CALLS)]
    func = torch.ops.aten.add_.Scalar
    singles, loops = [], []
    for _ in range(_ROUNDS[1]):
        for tensor in tensors:
            start = now()
            func(tensor, 1.0)
            singles.append(now() - start)
        start = now()
        torch._foreach_add_(tensors, 1.0)
        loops.append(now() - start)
    return max(0, int(statistics.median(singles) - statistics.median(loops) / _CALLS))


class Between:
    """What passes through the caches between two ops that are timed here. On a CPU, the step's own ops of forward and backward
    in their order, one that is no view at a time; nothing, when all of the step stays in a core's own caches. Where no step can
    be run, or the caches are not the device's: as much as usual ops touch, always something else."""

    def __init__(self, device: str, step: Step | None = None, run: Rerun | None = None) -> None:
        self._works: set[int] = _works_of(step) if step is not None and device == "cpu" else set()
        self.is_nothing = bool(self._works) and step is not None and _core.simulate(step).peak_bytes <= _WARM_BYTES
        self._walk = self._scratch(device, _BETWEEN_BYTES)
        if self._works and run is not None:
            is_long = self._mean_ns(run) > _LONG_OP_NS
            self._walk = self._scratch(device, _LONG_BYTES) if is_long else self._ops(run)

    def __call__(self) -> None:
        with torch.no_grad():
            next(self._walk)

    def close(self) -> None:
        self._walk.close()

    def _mean_ns(self, run: Rerun) -> int:
        with torch.no_grad():
            times = run.once()
        return sum(times.get(op, 0) for op in self._works) // len(self._works)

    def _ops(self, run: Rerun) -> Generator[None, None, None]:
        while True:
            walk = run.walk({})
            op, left = next(walk, None), len(self._works)
            while left:  # what comes after them is the optimizer's
                is_work = op in self._works
                op = next(walk, None)  # runs the one before
                if is_work:
                    left -= 1
                    yield
            walk.close()

    @staticmethod
    def _scratch(device: str, bytes: int) -> Generator[None, None, None]:
        parts = torch.zeros(_ALL_BYTES, dtype=torch.uint8, device=device).split(bytes)
        while True:
            for part in parts:
                part.add_(1)
                yield


def _works_of(step: Step) -> set[int]:
    """The ops of forward and backward that are no views."""
    begun = [event[1] for event in step.events if event[0] == "begin"]
    ops = [op for op in begun if str(step.passes[step.ops[op].pass_].kind) != "optimizer"]
    return {op for op, work in zip(ops, _core.op_works(step, ops)) if not work.startswith("free")}


def _rounds(note: Note, what: str) -> Iterator[bool]:
    """For each round, whether it counts."""
    began = time.monotonic()
    for turn in range(_WARM_UP + _ROUNDS[1]):
        note(f"what {what} cost beside themselves, round {turn + 1} of at most {_WARM_UP + _ROUNDS[1]}")
        if turn >= _WARM_UP + _ROUNDS[0] and time.monotonic() - began > _SECONDS:
            return
        yield turn >= _WARM_UP


def time_regions(device: str, now: Clock, between: Between, note: Note) -> dict[str, Row]:
    """What a checkpointed region costs beside the ops that it runs again: once, for each save in it, and for keeping the
    random state, which is timed by itself, since it drowns in the difference."""
    x = torch.ones(4, 4, device=device, requires_grad=True)
    pause = _Pause(device, now, between)

    def both_ways(forward: Callable[[], torch.Tensor]) -> int:
        first, y = pause.timed(forward)
        return first + pause.timed(y.sum().backward)[0]

    def chain(length: int) -> Callable[[torch.Tensor], torch.Tensor]:
        def inside(y: torch.Tensor) -> torch.Tensor:
            for _ in range(length):
                y = pause.before(y)
                y = y * y
            return y

        return inside

    def keep_random_state() -> None:
        devices = [] if device == "cpu" else [torch.cuda.current_device()]
        states = [torch.cuda.get_rng_state(d) for d in devices]
        state = torch.get_rng_state()
        with torch.random.fork_rng(devices):
            torch.set_rng_state(state)
            for d, own in zip(devices, states):
                torch.cuda.set_rng_state(own, d)

    extra: dict[int, list[int]] = {length: [] for length in _LENGTHS}
    random: list[int] = []
    with torch.enable_grad():
        for counts in _rounds(note, "checkpoints"):
            for length in _LENGTHS:
                inside = chain(length)
                again = pause.timed(lambda: inside(x))[0]
                plain = both_ways(lambda: inside(x))
                more = both_ways(lambda: checkpoint(inside, x, use_reentrant=False, preserve_rng_state=False))
                if counts:
                    extra[length].append(more - plain - again)
            took = pause.timed(keep_random_state)[0]
            if counts:
                random.append(took)
    short, long = (row_of(extra[length]) for length in _LENGTHS)
    saves = [_SAVES * length for length in _LENGTHS]
    save = max(0, (long[0] - short[0]) // (saves[1] - saves[0]))
    return {
        "checkpoint region": (max(0, short[0] - saves[0] * save), short[1]),
        "checkpoint save": (save, long[1] // saves[1]),
        "checkpoint random state": row_of(random),
    }


def time_op_overheads(now: Clock, call: int, between: Between, note: Note) -> dict[str, Row]:
    """By kind of pass, what each op costs more in a program's own step than when it is run again: modules and Python around
    it, its node. And what the pass costs beside all of them, where it begins and ends, and an optimizer for each parameter that it
    goes through, twice: once more to let go of its gradient. On a CPU, where the host's work is the device's. Views have rows of
    their own: they go through no memory, so that what is around the next op is still in the caches. `call`: what `call_ns` said."""
    pause = _Pause("cpu", now, between)
    programs = [_Program(*of, pause, now, call) for of in _PROGRAMS]
    for counts in _rounds(note, "ops"):
        for program in programs:
            program.run(counts)
    found: dict[str, Row] = {}
    for kind in _PASSES:
        rows = [row_of(program.beyond[kind]) for program in programs]
        parameters = [program.parameters if kind == "optimizer" else 0 for program in programs]
        counts_of = [(1, *program.ops[kind], count) for program, count in zip(programs, parameters)]
        # A long program says less about what is small: its rounds differ by more, and its ops are off by more.
        doubts = [spread + median // _DOUBT for (_, spread), (median, _) in zip(rows, (row_of(p.took[kind]) for p in programs))]
        each, off = shares([median for median, _ in rows], counts_of, doubts)
        # What rounds differ by and what the shares do not explain: of the pass by the program that is hardly more, of a
        # parameter by the one that does little else, of ops and views by all.
        open_ = [spread + rest for (_, spread), rest in zip(rows, off)]
        of_ops = sum(open_) // sum(sum(count[1:3]) for count in counts_of)
        spreads = (open_[_SHORTEST], of_ops, of_ops, open_[_PLAINEST] // max(1, parameters[_PLAINEST]))
        found |= {f"{what} overhead {kind}": (ns, s) for what, ns, s in zip(_THINGS, each, spreads) if what != "parameter" or any(parameters)}
    return found


def shares(times: list[int], counts: list[tuple[int, ...]], doubts: list[int]) -> tuple[list[int], list[int]]:
    """What one of each thing takes, none below nothing, that comes nearest to the times of programs with so many of them, where
    each is in doubt by so much; and by how much each time is off then."""
    things = len(counts[0])
    scale = 1 / torch.tensor(doubts, dtype=torch.float64).clamp(min=1)
    a = torch.tensor(counts, dtype=torch.float64) * scale[:, None]
    b = torch.tensor(times, dtype=torch.float64) * scale
    best, least = torch.zeros(things, dtype=torch.float64), b.square().sum()
    for chosen in range(1, 1 << things):  # of the things, those that take any time
        at = [i for i in range(things) if chosen >> i & 1]
        if any(not a[:, i].any() for i in at):
            continue
        found = torch.linalg.lstsq(a[:, at], b).solution
        off = (a[:, at] @ found - b).square().sum()
        if bool((found >= 0).all()) and bool(off < least):
            best, least = torch.zeros(things, dtype=torch.float64), off
            best[at] = found
    return [int(x) for x in best], [int(x) for x in ((a @ best - b) / scale).abs()]


class _Pointwise(torch.nn.Module):
    """Ops that go through memory, and no views."""

    def __init__(self, before: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.norm, self.act, self.gate, self.before = torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Tanh(), before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.act(self.before(self.norm(self.before(x))))
        return x + self.before(self.gate(self.before(y)))


class _Products(torch.nn.Module):
    """Twice as many views as other ops, by PyTorch's own functions and by a module's: what attention looks like."""

    def __init__(self, before: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.norm, self.wide, self.narrow = torch.nn.LayerNorm(16), torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
        self.heads, self.before = _Heads(), before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.wide(self.before(self.norm(self.before(x))))
        y = self.narrow(self.before(self.heads(self.before(y))))
        return x + self.before(y)


class _Heads(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.gelu(x.view(4, 8, 2, 16).transpose(1, 2))
        return y.transpose(1, 2).view(4, 8, 32)


class _Program:
    """A small model of such blocks, whose own step is timed beside its ops run again."""

    def __init__(
        self, block: Callable[..., torch.nn.Module], blocks: int, optimizer: type, pause: _Pause, now: Clock, call: int
    ) -> None:
        from ..recording import capture

        self._pause, self._call, self._before = pause, call, lambda x: x
        self._model = torch.nn.Sequential(*[block(lambda x: self._before(x)) for _ in range(blocks)])
        self._optimizer = optimizer(self._model.parameters(), lr=1e-3)
        self._x = torch.ones(4, 8, 16)

        def run() -> None:
            self._optimizer.zero_grad()
            self._model(self._x).sum().backward()
            self._optimizer.step()

        with torch.enable_grad():
            step = capture(run, self._model, self._optimizer, workspace=False)
        self._rerun = Rerun(step, "cpu", now)
        self._calls = [op.call for op in step.ops]
        kinds = [str(step.passes[op.pass_].kind) for op in step.ops]
        self._kinds = ["forward" if kind == "loss" else kind for kind in kinds]
        is_view = [work.startswith("free") for work in _core.op_works(step, [op.id for op in step.ops])]
        seen = list(zip(self._kinds, is_view))
        self.ops = {kind: (seen.count((kind, False)), seen.count((kind, True))) for kind in _PASSES}  # (others, views)
        self.parameters = len(list(self._model.parameters()))
        self.took: dict[str, list[int]] = {kind: [] for kind in _PASSES}  # by round: nanoseconds of the program's own
        self.beyond: dict[str, list[int]] = {kind: [] for kind in _PASSES}  # and beside the ops

    def run(self, counts: bool) -> None:
        pause, last = self._pause, None

        def before_op(op: int) -> None:
            """Where the program pauses, too: where one module's ops end and another's begin, forward and backward."""
            nonlocal last
            if self._calls[op] not in (None, last):
                last = self._calls[op]
                pause()

        # Where nothing leaves the caches, each once before it counts: in a loop of training, the same ran just before.
        times_each = 2 if pause.is_nothing else 1
        for _ in range(times_each):
            took = self._own_step(pause.before)
        for _ in range(times_each):
            twice = self._own_step(lambda x: pause.before(pause.before(x)))
        # A forward is Python's after each op, as it is after a pause. A backward is not: the hooks that pause it are nothing a
        # step has, and cost what pausing twice costs more.
        took["backward"] -= twice["backward"] - took["backward"]
        own = dict(took)
        with torch.no_grad():
            for _ in range(times_each):
                times = self._rerun.once(before_op)
        for op, ns in times.items():
            took[self._kinds[op]] -= max(0, ns - self._call)
        for kind in _PASSES if counts else ():
            self.took[kind].append(own[kind])
            self.beyond[kind].append(took[kind])

    def _own_step(self, before: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, int]:
        """By pass, nanoseconds. `before` is called where one module's ops end and another's begin."""
        self._before = before
        with torch.enable_grad():
            self._optimizer.zero_grad()
            forward, loss = self._pause.timed(lambda: self._model(self._x).sum())
            backward, _ = self._pause.timed(loss.backward)
            update, _ = self._pause.timed(self._update)
        return dict(zip(_PASSES, (forward, backward, update)))


    def _update(self) -> None:
        self._optimizer.step()
        self._optimizer.zero_grad()


# The last but one is little more than its passes, and an optimizer of one op for each parameter little more than those.
_PROGRAMS = (
    (_Pointwise, 8, torch.optim.AdamW),
    (_Products, 8, torch.optim.AdamW),
    (_Pointwise, 1, torch.optim.AdamW),
    (_Pointwise, 8, torch.optim.SGD),
)
_SHORTEST, _PLAINEST = 2, 3


class _Pause:
    """Lets something pass through the caches, and a clock that does not count it."""

    def __init__(self, device: str, now: Clock, between: Between) -> None:
        self._between, self.is_nothing = between, between.is_nothing
        self._now, self._wait = now, torch.cuda.synchronize if device != "cpu" else None
        self._paused_ns = 0

    def __call__(self, *_: Any) -> None:
        if self.is_nothing:
            return
        start = self._now()
        self._between()
        if self._wait:
            self._wait()
        self._paused_ns += self._now() - start

    def before(self, x: torch.Tensor) -> torch.Tensor:
        """Pauses here, and in backward before the ops that made x."""
        if self.is_nothing:
            return x
        start = self._now()
        if x.requires_grad and not x.is_leaf:
            x.register_hook(self)
        self._paused_ns += self._now() - start
        self()
        return x

    def timed(self, run: Callable[[], Any]) -> tuple[int, Any]:
        self()
        self._paused_ns = 0
        start = self._now()
        result = run()
        return self._now() - start - self._paused_ns, result
