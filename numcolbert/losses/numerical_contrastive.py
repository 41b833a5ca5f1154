"""L_cont: the numerical contrastive loss."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from numcolbert.losses.annotations import satisfies

__all__ = ["POSITIVE_SETS", "PositiveSet", "multi_positive_info_nce", "positive_masks", "quantity_similarity"]

PositiveSet = Literal["unit", "numeric", "joint", "separate"]
POSITIVE_SETS = ("unit", "numeric", "joint", "separate")


def quantity_similarity(quantity: Tensor, documents: Tensor, documents_mask: Tensor) -> Tensor:
    r"""Score every document by the token closest to a query's quantity: :math:`S_{cont} = \max_j q_{num} \cdot d_j`.

    Parameters
    ----------
    quantity
        q_num, shape (queries, size).
    documents
        Unit-norm token embeddings, shape (documents, tokens, size).
    documents_mask
        Tokens that score, shape (documents, tokens).

    Returns
    -------
    Tensor
        Shape (queries, documents).

    Examples
    --------
    >>> quantity_similarity(torch.eye(2)[:1], torch.eye(2)[None], torch.ones(1, 2, dtype=torch.bool))
    tensor([[1.]])
    """
    documents_count, tokens, size = documents.shape
    similarity = (quantity @ documents.reshape(-1, size).T).reshape(len(quantity), documents_count, tokens)
    return similarity.masked_fill(~documents_mask.bool(), -torch.inf).amax(dim=-1)


def positive_masks(positive_set: PositiveSet, query: dict[str, Tensor], documents: dict[str, Tensor]) -> list[Tensor]:
    """Say which candidates are positives of which queries.

    Parameters
    ----------
    positive_set
        ``"unit"``: a quantity of the same unit; ``"numeric"``: a value satisfying the comparison; ``"joint"``: one
        quantity doing both; ``"separate"``: the first two, as two sets.
    query
        ``operator``, ``value``, ``upper``, ``unit``, each of shape (queries,).
    documents
        ``values``, ``units``, ``quantity_present``, each of shape (documents, quantities).

    Returns
    -------
    list of Tensor
        Bool masks of shape (queries, documents): one, or two for ``"separate"``.
    """
    present = documents["quantity_present"][None] & (query["operator"] >= 0)[:, None, None]
    same_unit = present & (documents["units"][None] == query["unit"][:, None, None])
    satisfying = present & satisfies(documents["values"], query["operator"], query["value"], query["upper"])
    sets = {
        "unit": [same_unit],
        "numeric": [satisfying],
        "joint": [same_unit & satisfying],
        "separate": [same_unit, satisfying],
    }
    return [mask.any(dim=-1) for mask in sets[positive_set]]


def multi_positive_info_nce(similarity: Tensor, positives: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    r"""InfoNCE averaged over the positives of each query.

    .. math:: L_i = -\frac{1}{|P_i|} \sum_{p \in P_i} \log \frac{\exp(s_{ip} / \tau)}{\sum_a \exp(s_{ia} / \tau)}

    Parameters
    ----------
    similarity
        Shape (queries, documents).
    positives
        Bool, same shape.
    temperature
        tau_cont.

    Returns
    -------
    losses, valid
        Per query its loss, and whether it has a positive at all; both of shape (queries,).

    Examples
    --------
    >>> multi_positive_info_nce(torch.zeros(1, 4), torch.tensor([[True, True, False, False]]), temperature=0.02)
    (tensor([1.3863]), tensor([True]))
    """
    log_probabilities = torch.log_softmax(similarity / temperature, dim=-1)
    count = positives.sum(dim=-1)
    losses = -(log_probabilities * positives).sum(dim=-1) / count.clamp(min=1)
    return losses, count > 0
