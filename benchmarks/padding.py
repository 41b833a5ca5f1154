"""How much of a training step is padding, and how many tokens a second that leaves.

The triplets of an epoch are cut into batches in the ways that numcolbert.training offers: at random, by length, by
concept–unit pair. Documents are encoded at once, padded to the longest of the batch, or in passes of 16 by their
length (encoding_batch_size). The peer is what PyLate's collator does: random batches, every document padded to
document_length. Waste is the share of encoded document positions that are padding; then some steps of each are taken::

    python benchmarks/padding.py --triplets outputs/quickstart/data/triplets.parquet --output results/cost
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from datasets import Dataset
from measuring import Row, features_of, write
from sentence_transformers.sampler import DefaultBatchSampler
from torch.utils.data import RandomSampler

from numcolbert import ColBERT
from numcolbert.losses import NumColBERTLoss
from numcolbert.training.batching import LengthBucketedBatchSampler, PairBatchSampler

PASS = 16


def batches(batching: str, triplets: Dataset, size: int) -> Iterator[list[int]]:
    if batching == "random":
        generator = torch.Generator().manual_seed(0)
        yield from DefaultBatchSampler(
            RandomSampler(triplets, generator=generator), batch_size=size, drop_last=True, generator=generator
        )
    elif batching == "length":
        yield from LengthBucketedBatchSampler(triplets, batch_size=size, drop_last=True)
    else:
        yield from PairBatchSampler(triplets, batch_size=size, drop_last=True)


def positions(lengths: list[int], by_length: bool, full: int | None) -> int:
    """Document positions that the encoder computes for one batch."""
    if full is not None:
        return full * len(lengths)
    if not by_length:
        return max(lengths) * len(lengths)
    ordered = sorted(lengths, reverse=True)
    return sum(max(part) * len(part) for part in (ordered[i : i + PASS] for i in range(0, len(ordered), PASS)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--triplets", required=True, help="triplets.parquet of a data folder")
    parser.add_argument("--base-model", default="packaged:all-MiniLM-L6-v2", help="encoder")
    parser.add_argument("--document-length", type=int, default=96, help="tokens a document is cut to")
    parser.add_argument("--batch-size", type=int, default=32, help="triplets a step")
    parser.add_argument("--steps", type=int, default=8, help="steps timed of each kind, spread over the epoch")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--output", type=Path, help="folder for table and figures as JSON and Markdown")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)

    triplets = Dataset.from_parquet(options.triplets)
    model = ColBERT(
        options.base_model, numerical_gate=False, split_digits=True, document_length=options.document_length,
        device="cpu",
    )  # fmt: skip
    model.train()
    losses = {
        by_length: NumColBERTLoss(
            model, temperature=1.0, positive_set=None, contrastive_weight=0, detection_weight=0, property_weight=0,
            encoding_batch_size=PASS if by_length else None,
        )
        for by_length in (False, True)
    }  # fmt: skip

    def lengths_of(column: str) -> list[int]:
        tokenized = model.tokenizer(list(triplets[column]), truncation=True, max_length=options.document_length - 1)
        return [len(ids) + 1 for ids in tokenized["input_ids"]]  # the prefix token is added later

    positives, negatives = lengths_of("positive"), lengths_of("negative")
    plans = [("random", False, options.document_length)]
    plans += [(batching, by_length, None) for batching in ("random", "length", "pair") for by_length in (False, True)]

    def padded(plan: tuple[str, bool, int | None], rows: list[int]) -> list[dict[str, torch.Tensor]]:
        features = features_of(model, triplets.select(rows).to_list())
        for part in features[1:] if plan[2] else []:
            for key in ("input_ids", "attention_mask", "token_type_ids"):
                if key in part:
                    missing = options.document_length - part[key].shape[1]
                    part[key] = torch.nn.functional.pad(part[key], (0, missing))
        return features

    epochs = {plan: list(batches(plan[0], triplets, options.batch_size)) for plan in plans}
    seconds: dict[tuple[str, bool, int | None], list[float]] = {plan: [] for plan in plans}
    tokens: dict[tuple[str, bool, int | None], list[int]] = {plan: [] for plan in plans}
    for number in range(options.steps + 1):
        for plan in plans:
            epoch = epochs[plan]
            features = padded(plan, epoch[number * (len(epoch) - 1) // options.steps])
            start = time.process_time()
            losses[plan[1]](features)["retrieval"].backward()
            model.zero_grad()
            if number:  # the first round warms up
                seconds[plan].append(time.process_time() - start)
                tokens[plan].append(sum(int(part["attention_mask"].sum()) for part in features))

    rows: list[Row] = []
    rates = {plan: sum(tokens[plan]) / sum(seconds[plan]) for plan in plans}
    for plan in plans:
        used = computed = 0
        for batch in epochs[plan]:
            lengths = [column[i] for column in (positives, negatives) for i in batch]
            used += sum(lengths)
            computed += positions(lengths, plan[1], plan[2])
        rows.append(
            {
                "batching": plan[0],
                "documents padded to": "document_length" if plan[2] else f"passes of {PASS}" if plan[1] else "longest",
                "padding": 1 - used / computed,
                "tokens a second": round(rates[plan]),
                "ratio to PyLate's": rates[plan] / rates[plans[0]],
                "median step ms": 1000 * statistics.median(seconds[plan]),
            }
        )
    write(
        options.output, "padding", "Padding",
        {"Share of document positions that are padding, and speed (forward and backward, ColBERT_ft)": rows},
        triplets=len(triplets), batch_size=options.batch_size, document_length=options.document_length,
    )  # fmt: skip


if __name__ == "__main__":
    main()
