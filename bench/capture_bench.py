"""How much recording costs: a capture against the same two steps under a bare FakeTensorMode, in the same run.

    .venv/bin/python bench/capture_bench.py [--check] [MODEL ...]

The recorded step is at most 1.5 times the bare second step, the whole capture at most 1.6 times two bare steps; measuring
workspace is listed apart. Models are those of python/tests/real/models.py, and "8b": 32 layers in the shape of an
8-billion-parameter decoder with AdamW, which takes at most 10 s and 1 GB.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "tests", "real"))

import models  # noqa: E402
import torch  # noqa: E402

from tidemark._capture import fakes, session, state  # noqa: E402


def build(name: str):
    if not name.startswith("8b"):
        return models.build(name)
    import transformers

    layers = int(name[3:] or 32) if ":" in name else 32
    config = transformers.LlamaConfig(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=layers, num_attention_heads=32, num_key_value_heads=8,
        vocab_size=128256, use_cache=False,
    )
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
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
            began = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - began)
    return seconds[0], seconds[1]


def captured(name: str) -> tuple[float, float, float]:
    """Seconds of the recorded step, of the whole capture, and of finishing it, without workspace."""
    model, batch, loss = build(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step_fn = models.training_step(model, batch, loss, optimizer)
    began = time.perf_counter()
    recording = session.Session(model, optimizer, False, session.Options("cpu", False, False), step_fn)
    with recording:
        while not recording.is_done:
            step_fn()
            recording.end_step()
    step = recording.result()
    return recording.recorded_seconds, time.perf_counter() - began, len(step.ops)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a promise is broken")
    parser.add_argument("models", nargs="*", default=["gpt2", "llama", "bert", "8b"])
    arguments = parser.parse_args()
    broken = False
    for name in arguments.models:
        bare_steps(name)  # imports and caches
        bare = [min(times) for times in zip(*(bare_steps(name) for _ in range(3)))]
        seconds = [captured(name) for _ in range(3)]
        recorded, whole, ops = (min(times) for times in zip(*seconds))
        step_ratio, whole_ratio = recorded / bare[1], whole / sum(bare)
        broken |= step_ratio > 1.5 or whole_ratio > 1.6
        print(
            f"{name:8} {ops:6} ops: second step bare {bare[1]:6.2f} s, recorded {recorded:6.2f} s = {step_ratio:.2f} (<= 1.5); "
            f"two steps bare {sum(bare):6.2f} s, capture {whole:6.2f} s = {whole_ratio:.2f} (<= 1.6)",
            flush=True,
        )
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory of this process: {peak_gb:.2f} GB")
    return 1 if broken and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
