"""Whether calibrated times hold on this machine: predicted against measured step time, and the predicted extra time of
checkpointing every block against the measured one.

    python bench/calibrate_bench.py [MODEL ...] [--pairs N] [--keep FOLDER]

One thread and the process's own time, since the machine may be shared. Runs with and without checkpoints alternate; the
interval is where the median lies in nine of ten drawings with replacement.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers
from torch.utils.checkpoint import checkpoint

import tidemark

ROOT = Path(__file__).resolve().parents[1]
VOCABULARY = 4096


def language(kind, batch=2, length=128, **config):
    model = kind(kind.config_class(vocab_size=VOCABULARY, **config)).train()
    ids = torch.randint(0, VOCABULARY, (batch, length))
    return model, lambda: model(input_ids=ids, labels=ids).loss


def images(kind, batch, **config):
    model = kind(kind.config_class(num_labels=100, **config)).train()
    pixels, labels = torch.randn(batch, 3, 64, 64), torch.randint(0, 100, (batch,))
    return model, lambda: model(pixel_values=pixels, labels=labels).loss


# About ten million parameters each; the class of a block.
MODELS = {
    "gpt2": (lambda: language(transformers.GPT2LMHeadModel, n_layer=6, n_embd=336, n_head=6, n_positions=128), "GPT2Block"),
    "llama": (
        lambda: language(
            transformers.LlamaForCausalLM, num_hidden_layers=6, hidden_size=320, intermediate_size=864,
            num_attention_heads=5, use_cache=False, tie_word_embeddings=True,
        ),
        "LlamaDecoderLayer",
    ),
    "bert": (
        lambda: language(
            transformers.BertForMaskedLM, num_hidden_layers=6, hidden_size=336, intermediate_size=1344, num_attention_heads=6
        ),
        "BertLayer",
    ),
    "vit": (
        lambda: images(
            transformers.ViTForImageClassification, 4, num_hidden_layers=6, hidden_size=372, intermediate_size=1488,
            num_attention_heads=6, image_size=64, patch_size=8,
        ),
        "ViTLayer",
    ),
    "resnet": (
        lambda: images(
            transformers.ResNetForImageClassification, 4, embedding_size=64, hidden_sizes=[64, 128, 256, 480],
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


def run_again(step, block: str) -> tuple[int, list]:
    """How many blocks run, and the ops of them that a recompute runs: up to the block's last save."""
    regions, ops, open_, seen, kept = 0, [], None, [], 0
    for kind, operand, *_ in step.events:
        if kind == "enter" and open_ is None and step.modules[step.calls[operand].module].type == block:
            open_, seen, kept = operand, [], 0
        elif kind == "begin" and open_ is not None:
            seen.append(operand)
        elif kind == "pack" and open_ is not None:
            kept = len(seen)
        elif kind == "exit" and operand == open_:
            regions, ops, open_ = regions + 1, ops + seen[:kept], None
    return regions, ops


def interval(values: list) -> tuple[float, float, float]:
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(400))
    return statistics.median(values), medians[20], medians[379]


def bench(name: str, pairs: int, folder: Path) -> None:
    torch.manual_seed(0)
    build, block = MODELS[name]
    model, loss = build()
    optimizer = torch.optim.AdamW(model.parameters())
    parameters = sum(p.numel() for p in model.parameters())

    def run() -> float:
        start = time.process_time()
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        return time.process_time() - start

    step = tidemark.capture(run, model, optimizer, workspace=False)
    file, device = folder / f"{name}.step.jsonl", folder / f"{name}.json"
    step.save(file)
    failed = tidemark.calibrate(step, device, clock="cpu", workspace=False)
    said = subprocess.run(
        [ROOT / "build/tidemark", "time", file, "--device", device, "--json"], capture_output=True, text=True, check=True
    )
    said = json.loads(said.stdout)
    measured = {key: median for key, median, _ in json.loads(device.read_text())["measured"]["ops"]}
    regions, ops = run_again(step, block)
    times = [measured.get(tidemark.workspace_key(step, op), 0) + measured["op overhead"] for op in ops]
    extra_ms = sum(times) / 1e6 + regions * (said["checkpoint_region_ms"] + said["checkpoint_rng_ms"])

    run()
    plain, more = [], []
    for _ in range(pairs):
        first = run() * 1e3
        checkpointed(model, block, True)
        second = run() * 1e3
        checkpointed(model, block, False)
        plain.append(first)
        more.append(second - first)
    middle, low, high = interval(plain)
    extra, extra_low, extra_high = interval(more)
    print(
        f"{name:7} {parameters / 1e6:5.1f} M: step predicted {said['step_ms']:7.1f} ms, measured {middle:7.1f} [{low:.1f}, {high:.1f}], "
        f"off by {100 * (said['step_ms'] / middle - 1):+5.1f} %\n"
        f"{'':17}{regions} checkpoints predicted {extra_ms:+7.1f} ms, measured {extra:+7.1f} [{extra_low:.1f}, {extra_high:.1f}], "
        f"off by {100 * (extra_ms / extra - 1):+5.1f} %{'' if not failed else f'; {len(failed)} ops could not be timed'}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--keep", type=Path, help="where steps and device files stay")
    options = parser.parse_args()
    unknown = set(options.models) - MODELS.keys()
    if unknown:
        sys.exit(f"unknown model {', '.join(sorted(unknown))}; expected some of {', '.join(MODELS)}")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.models:
            bench(name, options.pairs, folder)


if __name__ == "__main__":
    main()
