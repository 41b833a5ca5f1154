"""Batches as the trainer hands them to a loss."""

from torch import Tensor

from numcolbert import ColBERT
from numcolbert.training import NumericalCollator


def features_of(model: ColBERT, rows: list[dict]) -> list[dict[str, Tensor]]:
    """Features of queries, positives and negatives."""
    batch = NumericalCollator(model)(rows)
    return [
        {key[len(column) + 1 :]: value for key, value in batch.items() if key.startswith(column + "_")}
        for column in ("query", "positive", "negative")
    ]
