"""All ranks hold the same plan: two gloo processes."""

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import tidemark

PROGRAM = """
    import sys
    import torch, torch.distributed as dist, tidemark
    sys.path.insert(0, {folder!r})
    from conftest import small_gpt, step_of, total
    rank, port, paths = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{{port}}", rank=rank, world_size=2)
    model = small_gpt()
    ids = torch.arange(8 * 32).view(8, 32) % 64
    try:
        tidemark.Plan.load(paths[rank]).apply(model)
    except tidemark.Error as error:
        print("refused:", error)
    plan = tidemark.Plan.load(paths[0])
    plan.apply(model)
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(1)
    step_of(wrapped, optimizer, ids)()
    print("trained:", plan.hash, total(model))
    dist.destroy_process_group()
"""


def run_two(paths, tmp_path, port) -> list[str]:
    program = tmp_path / "rank.py"
    program.write_text(textwrap.dedent(PROGRAM).format(folder=str(Path(__file__).resolve().parent)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # as here: sums differ in their last bits otherwise
    running = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), str(port), *map(str, paths)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    outputs = []
    for process in running:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err[-3000:]
        outputs.append(out.strip())
    return outputs


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_two_ranks_refuse_two_plans_and_train_under_one(gpt, helpers, tmp_path):
    gpt.full.save(tmp_path / "full.json")
    gpt.selective.save(tmp_path / "selective.json")
    found = run_two([tmp_path / "selective.json", tmp_path / "full.json"], tmp_path, free_port())
    model = helpers.small_gpt()
    helpers.trained(model, steps=1)
    # Both ranks see the same batch, so that the mean of their gradients is each of them.
    for text in found:
        refused, trained = text.splitlines()
        assert refused.startswith("refused:") and "the ranks hold different plans" in refused
        assert f"{gpt.selective.hash} on rank 0; {gpt.full.hash} on rank 1" in refused
        assert trained == f"trained: {gpt.selective.hash} {helpers.total(model)}"
    tidemark.check_ranks(gpt.full)  # alone there is nothing to compare
