"""Whether calibrated times hold on this machine: predicted against measured step time, and the predicted extra time of
checkpointing every block against the measured one.

    python bench/calibrate_bench.py [MODEL ...] [--pairs N] [--rounds N] [--keep FOLDER]
    python bench/calibrate_bench.py [MODEL ...] --other-size N

One thread and the process's own time, since the machine may be shared. Its speed still changes from minute to minute: so
it is calibrated anew in each round, between steps that are measured. Step time is that of training, where plain steps
follow each other; what counts is the median over the rounds of predicted over measured. The extra time is that of pairs, a
step without checkpoints and one with them in turn, by the medians of all. A plain step of a pair finds the heap that
checkpoints have left and can take longer; this is printed, but a prediction is not held against it. The interval is where
the median lies in nine of ten drawings with replacement. Ends with 1 when a step is off by more than 10 %, or the extra time of checkpoints by more than
15 % and outside the interval.

With --other-size N, the model is calibrated at its usual batch and predicted at N times that, where the table has few of its
rows: by the whole file, and by the same file without what its rows say about the work of their ops. Nothing is held against it.

Memory stays with the process, as `calibrate` has it; without that, steps differ from each other by the page faults that
the state of the heap happens to cause.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers
from torch.utils.checkpoint import checkpoint

import tidemark

VOCABULARY = 4096
STEP_WITHIN = 0.10
EXTRA_WITHIN = 0.15


def language(kind, times, length=128, **config):
    """Of `times` the usual batch, which is two sequences."""
    batch = 2 * times
    model = kind(kind.config_class(vocab_size=VOCABULARY, **config)).train()
    ids = torch.randint(0, VOCABULARY, (batch, length))
    return model, lambda: model(input_ids=ids, labels=ids).loss


def images(kind, times, **config):
    """Of `times` the usual batch, which is four images."""
    batch = 4 * times
    model = kind(kind.config_class(num_labels=100, **config)).train()
    pixels, labels = torch.randn(batch, 3, 64, 64), torch.randint(0, 100, (batch,))
    return model, lambda: model(pixel_values=pixels, labels=labels).loss


# About ten million parameters each; the class of a block.
MODELS = {
    "gpt2": (lambda times: language(transformers.GPT2LMHeadModel, times, n_layer=6, n_embd=336, n_head=6, n_positions=128), "GPT2Block"),
    "llama": (
        lambda times: language(
            transformers.LlamaForCausalLM, times, num_hidden_layers=6, hidden_size=320, intermediate_size=864,
            num_attention_heads=5, use_cache=False, tie_word_embeddings=True,
        ),
        "LlamaDecoderLayer",
    ),
    "bert": (
        lambda times: language(
            transformers.BertForMaskedLM, times, num_hidden_layers=6, hidden_size=336, intermediate_size=1344, num_attention_heads=6
        ),
        "BertLayer",
    ),
    "vit": (
        lambda times: images(
            transformers.ViTForImageClassification, times, num_hidden_layers=6, hidden_size=372, intermediate_size=1488,
            num_attention_heads=6, image_size=64, patch_size=8,
        ),
        "ViTLayer",
    ),
    "resnet": (
        lambda times: images(
            transformers.ResNetForImageClassification, times, embedding_size=64, hidden_sizes=[64, 128, 256, 480],
            depths=[2, 2, 2, 2], layer_type="basic",
        ),
        "ResNetBasicLayer",
    ),
}


def checkpointed(model, block: str, on: bool) -> None:
    for module in model.modules():
        if type(module).__name__ != block:
            continue
        if "forward" in vars(module):
            del module.forward
        if on:
            plain = module.forward
            module.forward = lambda *a, plain=plain, **k: checkpoint(plain, *a, use_reentrant=False, **k)


def run_again(step, block: str) -> tuple[int, int, list]:
    """How many blocks run, how many tensors autograd saves in them, and the ops of them that a recompute runs: up to the
    block's last save."""
    regions, saves, ops, open_, seen, kept = 0, 0, [], None, [], 0
    for kind, operand, *_ in step.events:
        if kind == "enter" and open_ is None and step.modules[step.calls[operand].module].type == block:
            open_, seen, kept = operand, [], 0
        elif kind == "begin" and open_ is not None:
            seen.append(operand)
        elif kind == "pack" and open_ is not None:
            kept, saves = len(seen), saves + 1
        elif kind == "exit" and operand == open_:
            regions, ops, open_ = regions + 1, ops + seen[:kept], None
    return regions, saves, ops


def interval(values: list) -> tuple[float, float, float]:
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(400))
    return statistics.median(values), medians[20], medians[379]


def off(predicted: float, measured: float) -> str:
    return f"off by {100 * (predicted / measured - 1):+5.1f} %"


def training(model, loss) -> tuple:
    """The optimizer, and one step of training, which returns the milliseconds it took."""
    optimizer = torch.optim.AdamW(model.parameters())

    def run() -> float:
        start = time.process_time()
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        return (time.process_time() - start) * 1e3

    return optimizer, run


def without_works(file: Path) -> Path:
    """The same device file as an older version wrote it."""
    content = json.loads(file.read_text())
    content["measured"]["ops"] = [row[:3] for row in content["measured"]["ops"]]
    older = file.with_suffix(".older.json")
    older.write_text(json.dumps(content))
    return older


def bench_other_size(name: str, times: int, pairs: int, rounds: int, folder: Path) -> None:
    steps, runs = [], []
    for size in (1, times):
        torch.manual_seed(0)
        model, loss = MODELS[name][0](size)
        optimizer, run = training(model, loss)
        steps.append(tidemark.capture(run, model, optimizer, workspace=False))
        runs.append(run)
    taught, untaught, measured = [], [], []
    share = 0.0
    for turn in range(rounds):
        device = folder / f"{name}.{turn}.json"
        device.unlink(missing_ok=True)
        runs[1]()
        around_it = [runs[1]() for _ in range(pairs // rounds)]
        tidemark.calibrate(steps[0], device, clock="cpu", workspace=False, seconds_per_op=0.01)
        runs[1]()
        around_it += [runs[1]() for _ in range(pairs // rounds)]
        took = statistics.median(around_it)
        cost = tidemark.price(steps[1], str(device))
        share = cost.sum["measured_ms"] / cost.sum["ms"]
        taught.append(cost.step_ms / took)
        untaught.append(tidemark.price(steps[1], str(without_works(device))).step_ms / took)
        measured.append(took)
    print(
        f"{name:7} calibrated at 1, predicted at {times} times the batch ({100 * share:.0f} % of that measured): measured "
        f"{statistics.median(measured):.1f} ms; predicted over measured {statistics.median(taught):.2f} "
        f"[{min(taught):.2f}, {max(taught):.2f}], without the work of rows {statistics.median(untaught):.2f}",
        flush=True,
    )


def bench(name: str, pairs: int, rounds: int, folder: Path) -> bool:
    torch.manual_seed(0)
    build, block = MODELS[name]
    model, loss = build(1)
    parameters = sum(p.numel() for p in model.parameters())
    optimizer, run = training(model, loss)
    step = tidemark.capture(run, model, optimizer, workspace=False)
    regions, saves, ops = run_again(step, block)
    predicted_step, predicted_extra, plain, ratios, plain_of_pairs, more = [], [], [], [], [], []

    def plain_steps() -> list:
        run()  # finds what checkpoints or calibrating have left
        return [run() for _ in range(pairs // rounds)]

    failed: list = []
    for turn in range(rounds):
        device = folder / f"{name}.{turn}.json"
        device.unlink(missing_ok=True)
        around_it = plain_steps()
        failed = tidemark.calibrate(step, device, clock="cpu", workspace=False, seconds_per_op=0.01)
        cost = tidemark.price(step, str(device))
        around = cost.checkpoint_region_ms + cost.checkpoint_rng_ms
        predicted_step.append(cost.step_ms)
        predicted_extra.append(cost.total_of(ops)["ms"] + regions * around + saves * cost.checkpoint_save_ms)
        around_it += plain_steps()
        plain += around_it
        ratios.append(cost.step_ms / statistics.median(around_it))
        for _ in range(pairs // rounds):
            plain_of_pairs.append(run())
            checkpointed(model, block, True)
            more.append(run() - plain_of_pairs[-1])
            checkpointed(model, block, False)
    said, said_extra = statistics.median(predicted_step), statistics.median(predicted_extra)
    middle, low, high = interval(plain)
    ratio = statistics.median(ratios)
    extra, extra_low, extra_high = interval(more)
    step_holds = abs(ratio - 1) <= STEP_WITHIN
    extra_holds = abs(said_extra / extra - 1) <= EXTRA_WITHIN or extra_low <= said_extra <= extra_high
    print(
        f"{name:7} {parameters / 1e6:5.1f} M: step predicted {said:7.1f} ms, measured {middle:7.1f} [{low:.1f}, {high:.1f}], "
        f"{off(ratio, 1)}{'' if step_holds else ': FAILS'} (plain steps of the pairs: {statistics.median(plain_of_pairs):.1f})\n"
        f"{'':11}{regions:3} regions: predicted {said_extra:+7.1f} ms, measured {extra:+7.1f} [{extra_low:.1f}, {extra_high:.1f}], "
        f"{off(said_extra, extra)}{'' if extra_holds else ': FAILS'}{'' if not failed else f'; {len(failed)} ops could not be timed'}",
        flush=True,
    )
    return step_holds and extra_holds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--other-size", type=int, metavar="N", help="predict N times the batch that is calibrated")
    parser.add_argument("--keep", type=Path, help="where device files stay")
    options = parser.parse_args()
    if not 1 <= options.rounds <= options.pairs:
        sys.exit(f"{options.rounds} rounds of {options.pairs} pairs; expected at least one pair in each round")
    if options.other_size is not None and options.other_size < 1:
        sys.exit(f"--other-size is {options.other_size}; expected 1 or more")
    unknown = set(options.models) - MODELS.keys()
    if unknown:
        sys.exit(f"unknown model {', '.join(sorted(unknown))}; expected some of {', '.join(MODELS)}")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if options.other_size is not None:
            for name in options.models:
                bench_other_size(name, options.other_size, options.pairs, options.rounds, folder)
            return
        held = [bench(name, options.pairs, options.rounds, folder) for name in options.models]
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
