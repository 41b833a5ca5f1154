"""Triplets to batches, with the numbers aligned to tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from pylate.utils import ColBERTCollator
from torch import Tensor

from numcolbert.losses.annotations import OPERATOR_CODES, unit_code
from numcolbert.modeling import ColBERT
from numcolbert.modeling.tokenization import align_spans

__all__ = ["NumericalCollator"]


class NumericalCollator(ColBERTCollator):
    """Tokenize triplets as PyLate's collator does and add what the losses know about their numbers.

    Documents are padded to the longest of the batch, not to the full document length, so that batches of similar
    length cost no padding. Rows without annotations (general retrieval data) count as queries without a condition.

    Parameters
    ----------
    model
        The model whose tokenizer is used.

    Examples
    --------
    >>> from numcolbert.modeling.base_model import packaged_base_model
    >>> collator = NumericalCollator(ColBERT(packaged_base_model(), device="cpu"))
    >>> condition = {"operator": ">", "value": 5.0, "upper": None, "unit": "kilogram", "canonical_value": 5.0,
    ...              "canonical_upper": None, "canonical_unit": "kilogram", "start": 5, "end": 9}
    >>> batch = collator([{"query": "over 5 kg", "positive": "It weighs 6 kg.", "negative": "It weighs 4 kg.",
    ...                    "query_condition": condition, "positive_quantities": [], "negative_quantities": []}])
    >>> batch["query_quantity_mask"].nonzero().tolist()  # [CLS], [Q] and "over" come before
    [[0, 3], [0, 4]]
    """

    def __init__(self, model: ColBERT) -> None:
        super().__init__(tokenize_fn=model.tokenize)
        self.model = model

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """Collate rows of :data:`numcolbert.corpus.schema.TRIPLETS`.

        Parameters
        ----------
        features
            Rows with ``query``, ``positive``, any number of columns ``negative...``, ``query_condition`` and, per
            document column, ``<column>_quantities``.

        Returns
        -------
        dict
            Per column ``<column>_input_ids`` and so on, plus the annotations listed in
            :mod:`numcolbert.losses.annotations`.
        """
        documents = [
            column
            for column in features[0]
            if column == "positive" or (column.startswith("negative") and isinstance(features[0][column], str))
        ]
        documents = [column for column in documents if not column.endswith("_source")]
        batch: dict[str, Any] = {"return_loss": True}
        for key, value in self._collate_queries(features).items():
            batch[f"query_{key}"] = value
        collated = {column: self._collate_documents(features, column) for column in documents}
        # The loss stacks positives and negatives: one width of tokens and of quantities for all.
        width = max(columns["input_ids"].shape[1] for columns in collated.values())
        count = max(columns["values"].shape[1] for columns in collated.values())
        for column, columns in collated.items():
            for key, value in columns.items():
                per_quantity = key in ("values", "units", "written_values", "quantity_present")
                fill = self.model.tokenizer.pad_token_id if key == "input_ids" else 0
                batch[f"{column}_{key}"] = _pad(value, count if per_quantity else width, fill)
        return batch

    def _collate_queries(self, rows: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        texts = [row["query"] for row in rows]
        tokens: dict[str, Tensor] = self.model.tokenize(texts, is_query=True)
        conditions = [row.get("query_condition") or {} for row in rows]
        spans = [[(c["start"], c["end"])] if c.get("operator") else [] for c in conditions]
        aligned = self._align(texts, spans, tokens["input_ids"].shape[1], is_query=True)
        for text, span, mask in zip(texts, spans, aligned, strict=True):
            if span and not mask.any():
                raise ValueError(
                    f"The quantity of the query {text!r} lies beyond query_length={self.model.query_length} tokens: "
                    "raise model.query_length or shorten the query."
                )
        return {
            **tokens,
            "quantity_mask": aligned.bool(),
            "operator": torch.tensor([OPERATOR_CODES[c["operator"]] if c.get("operator") else -1 for c in conditions]),
            "value": _float64([c.get("canonical_value") for c in conditions]),
            "upper": _float64([c.get("canonical_upper") for c in conditions]),
            "unit": torch.tensor([unit_code(c.get("canonical_unit")) for c in conditions]),
            "written_value": _float64([c.get("value") for c in conditions]),
            "written_unit": torch.tensor([unit_code(c.get("unit")) for c in conditions]),
            # A row that names no pair is alone with its query.
            "pair": torch.tensor([unit_code(row.get("pair") or f"query: {row['query']}") for row in rows]),
        }

    def _collate_documents(self, rows: Sequence[dict[str, Any]], column: str) -> dict[str, Tensor]:
        texts = [row[column] for row in rows]
        tokens: dict[str, Tensor] = self.model.tokenize(texts, is_query=False)
        quantities = [row.get(f"{column}_quantities") or [] for row in rows]
        spans = [[(q["start"], q["end"]) for q in row] for row in quantities]
        count = max(1, *(len(row) for row in quantities))
        values = torch.full((len(rows), count), math.nan, dtype=torch.float64)
        written_values = values.clone()
        units = torch.zeros(len(rows), count, dtype=torch.long)
        present = torch.zeros(len(rows), count, dtype=torch.bool)
        for index, row in enumerate(quantities):
            for position, quantity in enumerate(row):
                values[index, position] = quantity["canonical_value"]
                written_values[index, position] = quantity["value"]
                units[index, position] = unit_code(quantity["canonical_unit"])
                present[index, position] = True
        return {
            **tokens,
            "quantity_index": self._align(texts, spans, tokens["input_ids"].shape[1], is_query=False),
            "values": values,
            "written_values": written_values,
            "units": units,
            "quantity_present": present,
        }

    def _align(
        self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]], width: int, is_query: bool
    ) -> Tensor:
        length = self.model.query_length if is_query else self.model.document_length
        prefixed = bool(self.model.query_prefix if is_query else self.model.document_prefix)
        return align_spans(self.model.tokenizer, texts, spans, length - int(prefixed), width, prefixed)


def _float64(values: list[float | None]) -> Tensor:
    return torch.tensor([math.nan if value is None else value for value in values], dtype=torch.float64)


def _pad(tensor: Tensor, width: int, fill: int) -> Tensor:
    if tensor.ndim < 2 or tensor.shape[1] == width:
        return tensor
    return torch.nn.functional.pad(tensor, (0, width - tensor.shape[1]), value=fill)
