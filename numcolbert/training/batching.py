"""Batches of triplets that have something in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers.sampler import DefaultBatchSampler
from torch.utils.data import SequentialSampler

__all__ = ["LengthBucketedBatchSampler", "PairBatchSampler"]


class LengthBucketedBatchSampler(DefaultBatchSampler):
    """Sort the shuffled triplets by document length, cut them into batches, shuffle the batches.

    Give the class to the trainer as ``batch_sampler``. The order depends on seed and epoch alone, so a resumed run
    sees the batches an unbroken one would have seen.

    Parameters
    ----------
    dataset
        Triplets with ``positive`` and ``negative`` columns.
    batch_size
        Triplets per batch.
    drop_last
        Whether to leave out the shorter last batch.
    valid_label_columns, generator
        Part of the trainer's protocol; unused.
    seed
        Seed of the order.

    Examples
    --------
    >>> triplets = Dataset.from_dict({"positive": ["a" * n for n in (9, 1, 8, 2)], "negative": [""] * 4})
    >>> sorted(sorted(batch) for batch in LengthBucketedBatchSampler(triplets, batch_size=2, drop_last=False))
    [[0, 2], [1, 3]]
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        drop_last: bool,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(SequentialSampler(dataset), batch_size=batch_size, drop_last=drop_last, seed=seed)
        # Characters order sentences as tokens do, at none of the cost.
        self.lengths = torch.tensor(
            [max(map(len, pair)) for pair in zip(dataset["positive"], dataset["negative"], strict=True)]
        )

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches of an epoch, each a list of row numbers."""
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        shuffled = torch.randperm(len(self.lengths), generator=generator)
        by_length = shuffled[torch.argsort(self.lengths[shuffled], stable=True)]
        batches: list[Any] = list(by_length.split(self.batch_size))
        if self.drop_last and batches and len(batches[-1]) < self.batch_size:
            batches.pop()
        for index in torch.randperm(len(batches), generator=generator).tolist():
            yield batches[index].tolist()


class PairBatchSampler(DefaultBatchSampler):
    """Put triplets about the same concept–unit pair into one batch, a group at a time.

    The other triplets of a group are a query's hardest in-batch negatives: they speak of the same thing and differ in
    their numbers. Those that satisfy the query are left out by ``mask_false_negatives`` of
    :class:`~numcolbert.losses.NumColBERTLoss`. The order depends on seed and epoch alone, so a resumed run sees the
    batches an unbroken one would have seen.

    Parameters
    ----------
    dataset
        Triplets with a ``pair`` column.
    batch_size
        Triplets per batch.
    drop_last
        Whether to leave out the shorter last batch.
    valid_label_columns, generator
        Part of the trainer's protocol; unused.
    seed
        Seed of the order.
    group_size
        Most triplets of one group.

    Examples
    --------
    >>> triplets = Dataset.from_dict({"pair": ["a", "b", "a", "b"]})
    >>> sampler = PairBatchSampler(triplets, batch_size=2, drop_last=False, group_size=2)
    >>> sorted(sorted(batch) for batch in sampler)
    [[0, 2], [1, 3]]
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        drop_last: bool,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
        group_size: int = 8,
    ) -> None:
        super().__init__(SequentialSampler(dataset), batch_size=batch_size, drop_last=drop_last, seed=seed)
        self.pairs: list[str] = list(dataset["pair"])
        self.group_size = group_size

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches of an epoch, each a list of row numbers."""
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        rows_of_pair: dict[str, list[int]] = defaultdict(list)
        for row in torch.randperm(len(self.pairs), generator=generator).tolist():
            rows_of_pair[self.pairs[row]].append(row)
        groups = [
            rows[start : start + self.group_size]
            for rows in rows_of_pair.values()
            for start in range(0, len(rows), self.group_size)
        ]
        order = [row for g in torch.randperm(len(groups), generator=generator).tolist() for row in groups[g]]
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch
