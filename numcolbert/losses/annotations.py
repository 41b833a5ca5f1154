"""How the numbers of queries and documents travel in a batch: names, shapes and codes the losses agree on.

Query features hold, besides the tokens: ``quantity_mask`` (batch, tokens; bool), ``operator`` (batch,; index into
OPERATORS, -1 without a condition), ``value``, ``upper`` (batch,; canonical, float64, ``upper`` NaN unless "between"),
``unit`` (batch,; code of the canonical unit), ``written_value``, ``written_unit`` (batch,; as the text has them) and
``pair`` (batch,; code of the concept–unit pair the query is about, one of its own where the data names none).

Document features hold ``quantity_index`` (batch, tokens; 0 outside every quantity, else its position plus 1) and, per
quantity, ``values``, ``units``, ``written_values`` (batch, quantities) and ``quantity_present`` (batch, quantities;
bool).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import torch
from torch import Tensor

from numcolbert.quantities import OPERATORS

__all__ = ["OPERATOR_CODES", "satisfies", "unit_code"]

OPERATOR_CODES: dict[str, int] = {operator: code for code, operator in enumerate(OPERATORS)}
"""Code of every operator."""

RELATIVE_TOLERANCE = 1e-9
"""Values closer than this, relatively, are equal; as in numcolbert.quantities."""


@lru_cache(maxsize=65536)
def unit_code(unit: str | None) -> int:
    """Return a stable 62-bit code of a unit's name, so that no vocabulary has to be built, saved or shared.

    Parameters
    ----------
    unit
        Canonical name, or None for a bare number.

    Examples
    --------
    >>> unit_code("USD") == unit_code("USD"), unit_code("USD") == unit_code("EUR")
    (True, False)
    """
    digest = hashlib.blake2b((unit or "").encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 2


def satisfies(values: Tensor, operator: Tensor, value: Tensor, upper: Tensor) -> Tensor:
    """Compare every document value with every query's condition (v_D cmp v), units left aside.

    Parameters
    ----------
    values
        Canonical document values, shape (documents, quantities).
    operator
        Operator codes, shape (queries,).
    value, upper
        Canonical bounds, shape (queries,).

    Returns
    -------
    Tensor
        Bool, shape (queries, documents, quantities); False for queries without a condition.

    Examples
    --------
    >>> values = torch.tensor([[400.0, 1400.0]], dtype=torch.float64)
    >>> above, bound = torch.tensor([OPERATOR_CODES[">"]]), torch.tensor([1000.0], dtype=torch.float64)
    >>> satisfies(values, above, bound, torch.full_like(bound, torch.nan))
    tensor([[[False,  True]]])
    """
    documents = values[None]
    bound, upper_bound = value[:, None, None], upper[:, None, None]
    equal = (documents - bound).abs() <= RELATIVE_TOLERANCE * torch.maximum(documents.abs(), bound.abs())
    at_upper = (documents - upper_bound).abs() <= RELATIVE_TOLERANCE * torch.maximum(documents.abs(), upper_bound.abs())
    above, below = (documents > bound) & ~equal, (documents < bound) & ~equal
    results = {
        "=": equal,
        "<": below,
        ">": above,
        "<=": below | equal,
        ">=": above | equal,
        "between": (above | equal) & ((documents < upper_bound) | at_upper),
    }
    code = operator[:, None, None]
    satisfied = torch.zeros_like(equal)
    for name, result in results.items():
        satisfied |= (code == OPERATOR_CODES[name]) & result
    return satisfied
