"""Retrieval for evaluation: all queries of a benchmark over all of its documents, exactly or through an index.

Query embeddings are taken as they come: a gated token may have any norm up to the query length, and nothing here
brings it back to one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Literal

import torch

from numcolbert.retrieval.embeddings import Embeddings, Ranking, as_float32, shared_dimensions
from numcolbert.retrieval.engines import build_index, check_voyager, search_index
from numcolbert.retrieval.exact import ExactIndex, maxsim_scores

__all__ = ["INDEXES", "ExactIndex", "IndexName", "Ranking", "check_index", "maxsim_scores", "retrieve"]

IndexName = Literal["exact", "plaid", "voyager"]

INDEXES: tuple[IndexName, ...] = ("exact", "plaid", "voyager")
"""Ways to search a benchmark."""


def check_index(index: str) -> None:
    """Refuse an index that cannot work here, before anything is encoded for it.

    Parameters
    ----------
    index
        Name of the index.

    Raises
    ------
    ValueError
        If the name is unknown.
    ImportError
        If Voyager is missing, or is one that PyLate 1.6 cannot call.

    """
    if index not in INDEXES:
        raise ValueError(f"Unknown index {index!r}; choose one of {', '.join(INDEXES)}.")
    if index == "voyager":
        check_voyager()


def retrieve(
    queries_embeddings: Embeddings,
    documents_embeddings: Embeddings,
    documents_ids: Sequence[str],
    index: IndexName = "exact",
    k: int = 100,
    device: str | torch.device = "cpu",
    seed: int = 42,
    show_progress: bool = False,
) -> list[Ranking]:
    """Search all documents for each query.

    Parameters
    ----------
    queries_embeddings
        One array of shape (tokens, dimensions) for each query.
    documents_embeddings
        One array of shape (tokens, dimensions) for each document.
    documents_ids
        Names of the documents, in the same order.
    index
        ``"exact"`` scores every document; ``"plaid"`` and ``"voyager"`` build PyLate's indexes in a temporary folder
        and search them through ``pylate.retrieve.ColBERT``.
    k
        Documents to return for each query.
    device
        Where to compute.
    seed
        Seed of PLAID's k-means.
    show_progress
        Whether to draw progress bars.

    Returns
    -------
    list[Ranking]
        For each query, (document id, score), best first.

    Raises
    ------
    ValueError
        If the index is unknown, ids and embeddings differ in number, or an embedding is empty.
    ImportError
        If the index needs a package that is not installed.

    """
    check_index(index)
    if len(documents_ids) != len(documents_embeddings):
        raise ValueError(f"{len(documents_ids)} document ids for {len(documents_embeddings)} documents; give one each.")
    if index == "exact":
        exact = ExactIndex(documents_embeddings, device=device)
        found = exact.search(queries_embeddings, k=k, show_progress=show_progress)
        return [[(documents_ids[position], score) for position, score in ranking] for ranking in found]
    if not documents_embeddings:
        raise ValueError("There is no document to search; give at least one.")
    documents = [as_float32(document) for document in documents_embeddings]
    with tempfile.TemporaryDirectory(prefix="numcolbert-index-") as folder:
        built = build_index(
            index,
            folder,
            index,
            documents_ids,
            documents,
            shared_dimensions(documents, "document"),
            seed=seed,
            device=str(device),
            show_progress=show_progress,
        )
        k = min(k, len(documents))
        return search_index(built, queries_embeddings, k, device=str(device), show_progress=show_progress)
