"""How much recording costs: a capture against the same two steps under a bare FakeTensorMode, in the same run.

    .venv/bin/python bench/capture_bench.py [--check] [--repeat N] [--no-workspace] [MODEL ...]
    .venv/bin/python bench/capture_bench.py --layers [--check] [--repeat N]

The recorded step is at most 1.5 times the bare second step, the whole capture at most 1.6 times two bare steps. Bare and
recorded steps take turns; a ratio is that of the medians, with the least and the greatest of single turns behind it.
Seconds are those of the processor in this process (the steps run in one thread), which others on the machine disturb less
than those of the clock. Measuring workspace, which runs ops for real in another process, is listed apart. Models are those of
python/tests/real/models.py, and "8b": 32 layers in the shape of an 8-billion-parameter decoder with AdamW, which takes at
most 10 s and, with everything that this process has loaded, 1 GB.

With --layers: captures of one decoder with 2 to 64 layers, and the exponent p of the seconds a + b layers^p that fit best.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "tests", "real"))

import models  # noqa: E402
import torch  # noqa: E402

from tidemark._capture import fakes, session, state  # noqa: E402

LAYERS = (2, 4, 8, 16, 32, 64)
STEP, WHOLE, SECONDS, GIGABYTES, EXPONENT = 1.5, 1.6, 10.0, 1.0, 1.15  # the most that is promised


clock = time.process_time


def build(name: str):
    """A model of the tests, "8b", or "layers:N"."""
    if name == "8b":
        return decoder(
            32, hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8, vocab_size=128256
        )
    if name.startswith("layers:"):
        layers = int(name.removeprefix("layers:"))
        return decoder(
            layers, hidden_size=512, intermediate_size=1024, num_attention_heads=8, num_key_value_heads=4, vocab_size=4096
        )
    return models.build(name)


def decoder(layers: int, **sizes):
    import transformers

    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(num_hidden_layers=layers, use_cache=False, **sizes))
    ids = torch.zeros(1, 2048, dtype=torch.int64)
    return model, {"input_ids": ids, "labels": ids}, lambda m, b: m(**b).loss


def bare_steps(name: str) -> tuple[float, float]:
    """Seconds of the first and the second step under FakeTensorMode alone, with the same cures for what it cannot do."""
    model, batch, loss = build(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    made = fakes.Fakes()

    class Shadowless:
        stand_ins: dict = {}

        def give_shadow(self, fake, real):
            pass

    swapped = session._swap_model(model, made, Shadowless())
    session._swap_optimizer(optimizer, made, swapped, Shadowless())
    fake_batch = {k: made.of(v) for k, v in batch.items()} if isinstance(batch, dict) else None
    if fake_batch is None:
        fake_batch = (tuple(made.of(t) for t in batch[0]), made.of(batch[1]))
    step = models.training_step(model, fake_batch, loss, optimizer)
    seconds = []
    with made.mode, state.NoCollection():
        for _ in range(2):
            began = clock()
            step()
            seconds.append(clock() - began)
    return seconds[0], seconds[1]


@dataclass
class Cost:
    """Seconds."""

    recorded: float  # the second step
    whole: float  # the capture without workspace
    by_the_clock: float  # the same
    workspace: float
    ops: int


def captured(name: str, workspace: bool = False) -> Cost:
    model, batch, loss = build(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step_fn = models.training_step(model, batch, loss, optimizer)
    began, began_by_the_clock = clock(), time.perf_counter()
    recording = session.Session(model, optimizer, False, session.Options("cpu", workspace, False), step_fn)
    with recording:
        while not recording.is_done:
            began_step = clock()
            step_fn()
            recording.end_step()
        recorded = clock() - began_step
    step = recording.result()
    apart = recording.workspace_seconds if workspace else 0.0
    return Cost(recorded, clock() - began, time.perf_counter() - began_by_the_clock - apart, apart, len(step.ops))


def ratio_of(over: list, under: list) -> tuple[float, str]:
    turns = [a / b for a, b in zip(over, under)]
    ratio = statistics.median(over) / statistics.median(under)
    return ratio, f"{ratio:.2f} ({min(turns):.2f} to {max(turns):.2f})"


def compare(name: str, repeat: int, workspace: bool) -> bool:
    """Prints a line; whether every promise is kept."""
    try:
        bare_steps(name)  # imports and caches
    except Exception as error:  # the peer's own limits are not ours
        print(f"{name:8} not compared: a bare FakeTensorMode does not run it: {str(error).splitlines()[0]}", flush=True)
        return True
    captured(name)
    turns = [(bare_steps(name), captured(name)) for _ in range(repeat)]
    second = [bare[1] for bare, _ in turns]
    both = [sum(bare) for bare, _ in turns]
    recorded = [cost.recorded for _, cost in turns]
    whole = [cost.whole for _, cost in turns]
    step_ratio, step_text = ratio_of(recorded, second)
    whole_ratio, whole_text = ratio_of(whole, both)
    apart = f"; workspace apart {captured(name, True).workspace:.1f} s" if workspace else ""
    print(
        f"{name:8} {turns[0][1].ops:6} ops: second step bare {statistics.median(second):6.3f} s, recorded / bare {step_text}, "
        f"at most {STEP}; two steps bare {statistics.median(both):6.3f} s, capture / bare {whole_text}, at most {WHOLE}{apart}",
        flush=True,
    )
    kept = step_ratio <= STEP and whole_ratio <= WHOLE
    if name == "8b":
        seconds = statistics.median(cost.by_the_clock for _, cost in turns)
        gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{name:8} capture {seconds:.2f} s by the clock, at most {SECONDS:.0f}; "
            f"memory of this process {gigabytes:.2f} GB, at most {GIGABYTES:.0f}"
        )
        kept = kept and seconds <= SECONDS and gigabytes <= GIGABYTES
    return kept


def fitted_exponent(counts, seconds) -> float:
    """p of the a + b n^p with the least squared error, relative to what was measured; a is not below zero."""
    best = (float("inf"), 0.0)
    for hundredths in range(50, 251):
        p = hundredths / 100
        rows = [(1 / t, n**p / t) for n, t in zip(counts, seconds)]
        saa, sab, sbb = (sum(r[i] * r[j] for r in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
        sa, sb = sum(r[0] for r in rows), sum(r[1] for r in rows)
        a = (sa * sbb - sb * sab) / (saa * sbb - sab * sab)
        a = max(a, 0.0)
        b = (sb - a * sab) / sbb
        best = min(best, (sum((a * u + b * v - 1) ** 2 for u, v in rows), p))
    return best[1]


def layers(repeat: int) -> bool:
    names = [f"layers:{n}" for n in LAYERS]
    captured(names[0])
    turns = [[captured(name) for name in names] for _ in range(repeat)]  # by turns, so that a busy while hits all
    exponents = []
    for field, what in (("recorded", "recorded step"), ("whole", "whole capture")):
        seconds = [statistics.median(getattr(turn[i], field) for turn in turns) for i in range(len(names))]
        exponents.append(fitted_exponent(LAYERS, seconds))
        listed = ", ".join(f"{n}: {s:.2f}" for n, s in zip(LAYERS, seconds))
        print(f"{what}, seconds by layers: {listed}; grows as layers^{exponents[-1]:.2f}, at most {EXPONENT}", flush=True)
    return max(exponents) <= EXPONENT


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a promise is broken")
    parser.add_argument("--repeat", type=int, default=7, help="turns of bare and recorded steps")
    parser.add_argument("--no-workspace", action="store_true", help="do not measure workspace")
    parser.add_argument("--layers", action="store_true", help="how the cost grows with the number of layers")
    parser.add_argument("models", nargs="*", default=["gpt2", "llama", "bert", "8b"])
    arguments = parser.parse_args()
    if arguments.layers:
        kept = layers(arguments.repeat)
    else:
        kept = all([compare(name, arguments.repeat, not arguments.no_workspace) for name in arguments.models])
    return 1 if arguments.check and not kept else 0


if __name__ == "__main__":
    sys.exit(main())
