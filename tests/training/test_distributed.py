"""Two processes over gloo against one process with the whole batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parent / "distributed_steps.py"


def run(tiny_base: str, output: Path, processes: int, steps: int, clip: float, cached: str = "plain") -> list[dict]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    command += [str(SCRIPT), tiny_base, str(output), str(steps), str(clip), cached]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return [torch.load(output / f"{rank}.pt", weights_only=True) for rank in range(processes)]


@pytest.fixture(scope="module")
def runs(tiny_base: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, list[dict]]:
    (single,) = run(tiny_base, tmp_path_factory.mktemp("one"), processes=1, steps=20, clip=1.0)
    double = run(tiny_base, tmp_path_factory.mktemp("two"), processes=2, steps=20, clip=1.0)
    return single, double


def test_the_mean_over_processes_is_the_loss_of_one_process(runs):
    single, double = runs
    for name in single["losses"]:
        mean = torch.stack([rank["losses"][name] for rank in double]).mean(dim=0)
        assert torch.allclose(mean, single["losses"][name], atol=1e-5, rtol=1e-5), name


def test_heads_and_model_are_equal_on_all_ranks_after_20_steps(runs):
    _, (first, second) = runs
    for part in ("heads", "model"):
        for name, tensor in first[part].items():
            assert torch.equal(tensor, second[part][name]), name


def test_two_processes_learn_what_one_learns(runs):
    single, double = runs
    for part in ("heads", "model"):
        for name, tensor in single[part].items():
            assert torch.allclose(tensor, double[0][part][name], atol=2e-4), name


def test_gradient_caching_on_two_processes_learns_the_same(runs, tiny_base, tmp_path):
    _, double = runs
    ranks = run(tiny_base, tmp_path, processes=2, steps=20, clip=1.0, cached="cached")
    for rank, expected in zip(ranks, double, strict=True):
        for name, losses in expected["losses"].items():
            assert torch.allclose(rank["losses"][name], losses, atol=1e-4, rtol=1e-4), name
        for part in ("heads", "model"):
            for name, tensor in expected[part].items():
                assert torch.allclose(rank[part][name], tensor, atol=2e-4), name
