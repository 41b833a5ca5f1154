"""Train a few steps under DDP with gathered candidates; a program that test_distributed starts on every process."""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from numcolbert import ColBERT
from numcolbert.losses import CachedNumColBERTLoss, NumColBERTLoss
from tests.conftest import triplet
from tests.losses.features import features_of


def rows(step: int) -> list[dict]:
    """Eight triplets a step, whose lengths and numbers of quantities differ between the halves of the batch."""
    result = []
    for index in range(8):
        value = float(10 * step + index + 1)
        tail = " after a long meeting of the board in the old town" * (index % 3)
        row = triplet(
            (f"profit above {value:.0f} dollars", ">", f"{value:.0f} dollars", value, "USD"),
            (f"Profit was ${value + 1:.0f}{tail}.", [(f"${value + 1:.0f}", value + 1, "USD")]),
            (
                f"Profit was ${value - 1:.0f}, or 7 pct.",
                [(f"${value - 1:.0f}", value - 1, "USD"), ("7 pct", 7.0, "percent")],
            ),
        )
        if index == 5:  # counts of tokens and conditions differ between the processes
            row = {**row, "query": "who leads the company", "query_condition": None}
        result.append(row)
    return result


def main() -> None:
    """Train and store losses and weights of this process."""
    base, output, steps, clip, cached = (
        sys.argv[1],
        Path(sys.argv[2]),
        int(sys.argv[3]),
        float(sys.argv[4]),
        sys.argv[5],
    )
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5)
    model = ColBERT(base, device="cpu", embedding_size=16, query_length=16)
    model[0].auto_model.pooler.requires_grad_(False)
    torch.manual_seed(100 + rank)  # heads start differently and must be made equal
    options = {"temperature": 0.5, "gather_across_devices": True, "document_property_weight": 0.05}
    loss: NumColBERTLoss
    if cached == "cached":
        loss = CachedNumColBERTLoss(model, mini_batch_size=3, **options)
    else:
        loss = NumColBERTLoss(model, **options)
    if world == 1:
        torch.manual_seed(100)
    optimizer = torch.optim.SGD([p for p in loss.parameters() if p.requires_grad], lr=0.05)
    loss.model = DistributedDataParallel(model, find_unused_parameters=False, broadcast_buffers=False)
    losses: dict[str, list[torch.Tensor]] = {}
    for step in range(steps):
        components = loss(features_of(model, rows(step)[rank * 8 // world : (rank + 1) * 8 // world]))
        for name, value in components.items():
            losses.setdefault(name, []).append(value.detach())
        optimizer.zero_grad()
        sum(components.values()).backward()
        torch.nn.utils.clip_grad_norm_(loss.parameters(), clip)
        optimizer.step()
    torch.save(
        {
            "losses": {name: torch.stack(values) for name, values in losses.items()},
            "heads": loss.heads.state_dict(),
            "model": model.state_dict(),
        },
        output / f"{rank}.pt",
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
