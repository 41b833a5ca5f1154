"""L_ret: in-batch cross entropy on MaxSim."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pylate.scores import ColBERTScores
from torch import Tensor
from torch.utils.checkpoint import checkpoint

__all__ = ["retrieval_loss"]


def retrieval_loss(
    queries: Tensor,
    documents: Tensor,
    documents_mask: Tensor,
    queries_mask: Tensor | None,
    temperature: float,
    first_label: int = 0,
    false_negatives: Tensor | None = None,
    batch_size: int | None = None,
) -> Tensor:
    r"""Cross entropy of the positive among all candidates of the batch.

    .. math:: L_{ret} = -\frac{1}{B} \sum_i \log \frac{\exp(S(Q_i, D_i^+) / \tau)}{\sum_D \exp(S(Q_i, D) / \tau)}

    Parameters
    ----------
    queries
        Query token embeddings as they score, shape (queries, query tokens, size).
    documents
        Unit-norm document token embeddings, shape (groups, documents per query, tokens, size); the positive comes
        first in its group.
    documents_mask
        Tokens that score, shape (groups, documents per query, tokens).
    queries_mask
        Tokens that score, shape (queries, query tokens); None if all do.
    temperature
        tau_ret.
    first_label
        Group of the first query's positive: rank times batch size where candidates are gathered.
    false_negatives
        Candidates that are no negatives of a query, shape (queries, groups times documents per query); bool. They
        leave the sum over D; a query's own positive stays whatever is said here.
    batch_size
        Queries scored at once. Similarities of single tokens are then kept for no longer than a batch takes, and
        computed again for the gradient; None scores all queries at once and keeps them.

    Returns
    -------
    Tensor
        Scalar.

    Examples
    --------
    >>> queries = torch.eye(2)[:, None]
    >>> documents = torch.stack([torch.eye(2), torch.eye(2).flip(0)], dim=1)[:, :, None]
    >>> retrieval_loss(queries, documents, torch.ones(2, 2, 1), None, temperature=0.1)
    tensor(0.6932)
    """
    if batch_size is None:
        scores = _max_sim(queries, queries_mask, documents, documents_mask)
    else:
        masks = [None] * len(queries) if queries_mask is None else queries_mask.split(batch_size)
        scores = torch.cat(
            [
                checkpoint(_max_sim, part, mask, documents, documents_mask, use_reentrant=False)
                for part, mask in zip(queries.split(batch_size), masks, strict=False)
            ]
        )
    labels = (first_label + torch.arange(len(queries), device=queries.device)) * documents.shape[1]
    if false_negatives is not None:
        positives = F.one_hot(labels, num_classes=scores.shape[1]).bool()
        scores = scores.masked_fill(false_negatives & ~positives, -torch.inf)
    return F.cross_entropy(scores / temperature, labels)


def _max_sim(queries: Tensor, queries_mask: Tensor | None, documents: Tensor, documents_mask: Tensor) -> Tensor:
    scores: Tensor = ColBERTScores()(queries, documents, queries_mask=queries_mask, documents_mask=documents_mask)
    return scores
