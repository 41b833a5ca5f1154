"""Quantities of every sentence of a corpus, as a column."""

from __future__ import annotations

from typing import Any

from datasets import Dataset

from numcolbert.corpus.schema import BENCHMARK_CORPUS
from numcolbert.quantities import Condition, canonicalize, extract_quantities


def quantity_rows(text: str) -> list[dict[str, Any]]:
    """Read the quantities of a text into the columns of `schema.QUANTITY`.

    Parameters
    ----------
    text
        A sentence or query.

    Returns
    -------
    list of dict
        One per quantity, in text order.

    Examples
    --------
    >>> row, = quantity_rows("Profit was 1.2 mln dlrs in the quarter.")
    >>> row["canonical_value"], row["canonical_unit"], row["start"], row["end"]
    (1200000.0, 'USD', 11, 23)
    """
    rows = []
    for quantity in extract_quantities(text):
        value, unit = canonicalize(quantity.value, quantity.unit)
        rows.append(
            {
                "value": quantity.value,
                "unit": quantity.unit,
                "canonical_value": value,
                "canonical_unit": unit,
                "start": quantity.span[0],
                "end": quantity.span[1],
            }
        )
    return rows


def condition_row(condition: Condition) -> dict[str, Any]:
    """Write a condition in the columns of `schema.CONDITION`.

    Parameters
    ----------
    condition
        As `numcolbert.quantities.parse_condition` returns it.

    Returns
    -------
    dict
        Its row.
    """
    value, unit = canonicalize(condition.value, condition.unit)
    upper = None if condition.upper is None else canonicalize(condition.upper, condition.unit)[0]
    return {
        "operator": condition.operator,
        "value": condition.value,
        "upper": condition.upper,
        "unit": condition.unit,
        "canonical_value": value,
        "canonical_upper": upper,
        "canonical_unit": unit,
        "start": condition.quantity_span[0],
        "end": condition.quantity_span[1],
    }


def _annotate(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {"quantities": [quantity_rows(text) for text in batch["text"]]}


def annotate(sentences: Dataset, *, num_proc: int | None = None) -> Dataset:
    """Add the column `quantities` to a data set of sentences.

    Parameters
    ----------
    sentences
        Columns `id` and `text`, as `read_sentences` returns them.
    num_proc
        Processes to read with; None reads in this one.

    Returns
    -------
    datasets.Dataset
        Columns of `schema.BENCHMARK_CORPUS`.
    """
    return sentences.map(
        _annotate, batched=True, num_proc=num_proc, features=BENCHMARK_CORPUS, desc="reading quantities"
    )
