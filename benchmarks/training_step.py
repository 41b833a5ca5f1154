"""Cost of training: a step of NumColBERTLoss against a step of pylate.losses.Contrastive on the same batch.

A step is forward, backward, clipping and AdamW. Both sides get the very same tensors, documents padded to the longest
of the batch. Then the memory of large batches: NumColBERTLoss and CachedNumColBERTLoss, each in a process of its own.
Triplets are a triplets.parquet of a data folder::

    python benchmarks/training_step.py --triplets outputs/quickstart/data/triplets.parquet --output results/cost
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pylate.losses
import torch
from datasets import Dataset
from measuring import features_of, in_fresh_process, peak_memory, ratio, side_by_side, write

from numcolbert import ColBERT
from numcolbert.losses import CachedNumColBERTLoss, NumColBERTLoss

OURS, OURS_BY_LENGTH, CACHED, PEER = (
    "NumColBERTLoss",
    "NumColBERTLoss, encoding_batch_size=16",
    "CachedNumColBERTLoss, mini_batch_size=32",
    "pylate.losses.Contrastive",
)


def step_of(side: str, triplets: str, batch_size: int, base_model: str) -> Callable[[], object]:
    """Prepare a side's model, optimizer and batch; the function returned takes one step."""
    torch.manual_seed(0)
    model = ColBERT(
        base_model, numerical_gate=side != PEER, split_digits=True, query_length=32, document_length=96, device="cpu"
    )
    model.train()
    loss: torch.nn.Module
    if side == PEER:
        loss = pylate.losses.Contrastive(model, temperature=1.0)
    elif side == CACHED:
        loss = CachedNumColBERTLoss(model, mini_batch_size=32, temperature=1.0)
    else:
        loss = NumColBERTLoss(model, temperature=1.0, encoding_batch_size=16 if side == OURS_BY_LENGTH else None)
    optimizer = torch.optim.AdamW((p for p in loss.parameters() if p.requires_grad), lr=1e-6)
    features = features_of(model, Dataset.from_parquet(triplets).select(range(batch_size)).to_list())
    if side == PEER:
        features = [{k: f[k] for k in ("input_ids", "attention_mask", "token_type_ids") if k in f} for f in features]

    def step() -> None:
        result = loss([dict(part) for part in features])
        total = torch.stack(list(result.values())).sum() if isinstance(result, dict) else result
        total.backward()
        torch.nn.utils.clip_grad_norm_(loss.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--triplets", required=True, help="triplets.parquet of a data folder")
    parser.add_argument("--base-model", default="packaged:all-MiniLM-L6-v2", help="encoder of both sides")
    parser.add_argument("--batch-size", type=int, default=32, help="triplets a step of the comparison in time")
    parser.add_argument("--large-batch-size", type=int, default=256, help="triplets a step where gradients are cached")
    parser.add_argument("--rounds", type=int, default=10, help="steps of each side")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--output", type=Path, help="folder for table and figures as JSON and Markdown")
    parser.add_argument("--peak-of", nargs=2, metavar=("SIDE", "BATCH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    if options.peak_of:
        side, size = options.peak_of
        step = step_of(side, options.triplets, int(size), options.base_model)
        step()
        step()  # AdamW's state exists from the first step on
        print(peak_memory())
        return

    sides = (OURS, OURS_BY_LENGTH, PEER)
    seconds = side_by_side(
        {side: step_of(side, options.triplets, options.batch_size, options.base_model) for side in sides},
        options.rounds,
        warm_up=1,
    )
    common = ["--triplets", options.triplets, "--base-model", options.base_model, "--threads", str(options.threads)]

    def peaks(sizes: dict[str, int]) -> dict[str, float]:
        return {side: in_fresh_process([*common, "--peak-of", side, str(size)]) for side, size in sizes.items()}

    small = peaks(dict.fromkeys(sides, options.batch_size))
    large = peaks(dict.fromkeys((CACHED, OURS_BY_LENGTH), options.large_batch_size))
    memory = [
        {"batch": options.batch_size, "measured": side, "MiB": peak, "peer": PEER, "ratio": peak / small[PEER]}
        for side, peak in small.items()
    ] + [
        {"batch": options.large_batch_size, "measured": side, "MiB": peak, "peer": OURS_BY_LENGTH,
         "ratio": peak / large[OURS_BY_LENGTH]}
        for side, peak in large.items()
    ]  # fmt: skip
    write(
        options.output,
        "training_step",
        "Cost of training",
        {
            "Processor time of a step": [{"batch": options.batch_size, **ratio(seconds, s, PEER)} for s in sides[:2]],
            "Peak memory of a process that takes two steps": memory,
        },
    )


if __name__ == "__main__":
    main()
