"""All ranks hold the same plan: two gloo processes."""

import subprocess
import sys
import textwrap

import pytest

import tidemark

PROGRAM = """
    import sys
    import torch, torch.distributed as dist, tidemark
    sys.path.insert(0, {folder!r})
    from conftest import small_gpt, step_of
    rank, port, path = int(sys.argv[1]), sys.argv[2], sys.argv[3 + int(sys.argv[1])]
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{{port}}", rank=rank, world_size=2)
    model = small_gpt()
    ids = torch.arange(8 * 32).view(8, 32) % 64
    plan = tidemark.Plan.load(path)
    try:
        plan.apply(model)
    except tidemark.Error as error:
        print("refused:", error)
    else:
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(1)
        step_of(wrapped, optimizer, ids)()
        print("trained:", plan.hash, float(sum(p.double().abs().sum() for p in model.parameters())))
    dist.destroy_process_group()
"""


def run_two(paths, tmp_path, port) -> list[str]:
    from pathlib import Path

    program = tmp_path / "rank.py"
    program.write_text(textwrap.dedent(PROGRAM).format(folder=str(Path(__file__).resolve().parent)))
    running = [
        subprocess.Popen([sys.executable, str(program), str(rank), str(port), *map(str, paths)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    outputs = []
    for process in running:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err[-3000:]
        outputs.append(out.strip())
    return outputs


def free_port() -> int:
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_two_ranks_train_under_one_plan_and_refuse_two(gpt, helpers, tmp_path):
    import torch

    gpt.full.save(tmp_path / "full.json")
    gpt.selective.save(tmp_path / "selective.json")
    same = run_two([tmp_path / "selective.json"] * 2, tmp_path, free_port())
    model = helpers.small_gpt()
    torch.manual_seed(1)
    helpers.trained(model, steps=1)
    # Both ranks see the same batch, so that the mean of their gradients is each of them.
    expected = float(sum(p.double().abs().sum() for p in model.parameters()))
    assert same == [f"trained: {gpt.selective.hash} {expected}"] * 2
    other = run_two([tmp_path / "full.json", tmp_path / "selective.json"], tmp_path, free_port())
    for text in other:
        assert text.startswith("refused:") and "the ranks hold different plans" in text
        assert f"{gpt.full.hash} on rank 0; {gpt.selective.hash} on rank 1" in text
    tidemark.check_ranks(gpt.full)  # alone there is nothing to compare
