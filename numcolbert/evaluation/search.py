"""Retrieval for evaluation: exact MaxSim over packed documents, and PyLate's approximate indexes.

Query embeddings are taken as they come: a gated token may have any norm up to the query length, and nothing here
brings it back to one.
"""

from __future__ import annotations

import importlib.metadata
import tempfile
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import torch
from packaging.version import Version
from rich.progress import track
from torch import Tensor

__all__ = ["INDEXES", "ExactIndex", "IndexName", "Ranking", "check_index", "maxsim_scores", "retrieve"]

Embeddings: TypeAlias = Sequence[np.ndarray | Tensor]
"""Token embeddings of several texts, each of shape (tokens, dimensions)."""

Ranking: TypeAlias = list[tuple[str, float]]
"""Documents of one query with their scores, best first."""

IndexName = Literal["exact", "plaid", "voyager"]

INDEXES: tuple[IndexName, ...] = ("exact", "plaid", "voyager")
"""Ways to search a benchmark."""

_BLOCK_TOKENS = {"cpu": 2048, "cuda": 65536}
"""Document tokens in one matrix product. On a CPU the similarities of a block should stay in cache."""

_QUERY_BATCH = 16
"""Queries scored at once; with it, a block's similarities of 32-token queries take 4 MiB on a CPU."""


def _float32(embeddings: np.ndarray | Tensor) -> Tensor:
    return torch.as_tensor(embeddings).detach().to(torch.float32)


def _dimensions(embeddings: Embeddings, what: str) -> int:
    for position, tokens in enumerate(embeddings):
        if tokens.ndim != 2 or len(tokens) == 0:
            raise ValueError(
                f"{what} {position} has embeddings of shape {tuple(tokens.shape)}; "
                "give one (tokens, dimensions) array with at least one token for each."
            )
    sizes = {int(tokens.shape[1]) for tokens in embeddings}
    if len(sizes) > 1:
        raise ValueError(f"{what} embeddings have different dimensions {sorted(sizes)}; encode all with one model.")
    return sizes.pop()


class ExactIndex:
    """Documents packed for exact MaxSim.

    Documents are sorted by length and packed into blocks of nearly equal length, so that one matrix product and one
    maximum over a dense axis score a whole block. A document shorter than its block is filled up with copies of its own
    first token, which leave every maximum as it is.

    Parameters
    ----------
    documents_embeddings
        One array of shape (tokens, dimensions) for each document.
    device
        Where documents are kept and scores are computed.
    block_tokens
        Document tokens in one matrix product. Defaults to a size that suits the device.

    Raises
    ------
    ValueError
        If there is no document, one has no token, or dimensions differ.

    Examples
    --------
    >>> import numpy as np
    >>> index = ExactIndex([np.array([[1.0, 0.0]]), np.array([[0.6, 0.8], [0.0, 1.0]])])
    >>> index.scores([np.array([[0.0, 2.0], [1.0, 0.0]])])
    tensor([[1.0000, 2.6000]])

    """

    def __init__(
        self, documents_embeddings: Embeddings, device: str | torch.device = "cpu", block_tokens: int | None = None
    ) -> None:
        if len(documents_embeddings) == 0:
            raise ValueError("There is no document to search; give at least one.")
        self.device = torch.device(device)
        self.dimensions = _dimensions(documents_embeddings, "document")
        if block_tokens is None:
            block_tokens = _BLOCK_TOKENS.get(self.device.type, _BLOCK_TOKENS["cuda"])
        lengths = np.array([len(tokens) for tokens in documents_embeddings])
        by_length = np.argsort(-lengths, kind="stable")
        self._blocks: list[tuple[Tensor, Tensor]] = []  # (length, documents, dimensions) and the documents' positions
        start = 0
        while start < len(by_length):
            longest = int(lengths[by_length[start]])
            members = by_length[start : start + max(1, block_tokens // longest)]
            block = torch.empty(len(members), longest, self.dimensions)
            for row, position in enumerate(members):
                tokens = _float32(documents_embeddings[position])
                block[row, : len(tokens)] = tokens
                block[row, len(tokens) :] = tokens[0]
            # Length first: the maximum then runs over the outer axis, in whole vectors.
            packed = block.transpose(0, 1).contiguous().to(self.device)
            self._blocks.append((packed, torch.as_tensor(members, device=self.device)))
            start += len(members)
        self._documents = len(by_length)

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._documents

    @torch.inference_mode()
    def scores(self, queries_embeddings: Embeddings) -> Tensor:
        """Score every document for each query.

        Parameters
        ----------
        queries_embeddings
            One array of shape (tokens, dimensions) for each query; used as given, without normalisation.

        Returns
        -------
        Tensor
            float32 MaxSim sums of shape (queries, documents), on the index's device.

        Raises
        ------
        ValueError
            If a query has no token or other dimensions than the documents.

        """
        scores = torch.empty(len(queries_embeddings), self._documents, device=self.device)
        if len(queries_embeddings) == 0:
            return scores
        dimensions = _dimensions(queries_embeddings, "query")
        if dimensions != self.dimensions:
            raise ValueError(
                f"Queries have {dimensions} dimensions, documents {self.dimensions}; encode both with one model."
            )
        # A zero vector as padding adds exactly nothing to the sum over query tokens.
        queries = torch.nn.utils.rnn.pad_sequence([_float32(q) for q in queries_embeddings], batch_first=True)
        queries = queries.to(self.device)
        count, length, _ = queries.shape
        flat = queries.reshape(count * length, dimensions).T.contiguous()
        for block, positions in self._blocks:
            best = (block.reshape(-1, dimensions) @ flat).view(*block.shape[:2], -1).amax(dim=0)
            scores[:, positions] = best.view(len(positions), count, length).sum(dim=2).T
        return scores

    def search(
        self, queries_embeddings: Embeddings, k: int = 100, show_progress: bool = False
    ) -> list[list[tuple[int, float]]]:
        """Find the best documents of each query.

        Parameters
        ----------
        queries_embeddings
            One array of shape (tokens, dimensions) for each query.
        k
            Documents to return for each query; all of them if there are fewer.
        show_progress
            Whether to draw a progress bar.

        Returns
        -------
        list[list[tuple[int, float]]]
            For each query, (position of the document, score), best first; equal scores in the order of the documents.

        """
        results: list[list[tuple[int, float]]] = []
        starts = range(0, len(queries_embeddings), _QUERY_BATCH)
        for start in track(starts, description="Searching", disable=not show_progress):
            scores = self.scores(queries_embeddings[start : start + _QUERY_BATCH])
            least = scores.topk(min(k, self._documents), dim=1).values[:, -1:]
            # All that reach the k-th score, so that ties at the end are cut in document order too.
            for row, reached in zip(scores, scores >= least, strict=True):
                positions = reached.nonzero()[:, 0].cpu().numpy()
                values = row.cpu().numpy()[positions]
                best = np.argsort(-values, kind="stable")[:k]
                results.append([(int(positions[i]), float(values[i])) for i in best])
        return results


def maxsim_scores(query_embeddings: np.ndarray | Tensor, documents_embeddings: Embeddings) -> np.ndarray:
    """Score some documents for one query.

    Parameters
    ----------
    query_embeddings
        Array of shape (tokens, dimensions).
    documents_embeddings
        One array of shape (tokens, dimensions) for each document.

    Returns
    -------
    np.ndarray
        float32 scores of shape (documents,).

    Examples
    --------
    >>> import numpy as np
    >>> maxsim_scores(np.array([[3.0, 0.0]]), [np.array([[0.0, 1.0]]), np.array([[0.6, 0.8], [1.0, 0.0]])])
    array([0., 3.], dtype=float32)

    """
    return ExactIndex(documents_embeddings).scores([query_embeddings])[0].numpy()


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
        If Voyager is missing, or is one that PyLate 1.6 cannot call: from 2.2 on it takes no list of vectors.

    """
    if index not in INDEXES:
        raise ValueError(f"Unknown index {index!r}; choose one of {', '.join(INDEXES)}.")
    if index == "voyager":
        try:
            version = importlib.metadata.version("voyager")
        except importlib.metadata.PackageNotFoundError as error:
            raise ImportError("Voyager is not installed; pip install 'voyager>=2.1,<2.2'.") from error
        if Version(version) >= Version("2.2"):
            raise ImportError(f"PyLate cannot call voyager {version}; pip install 'voyager>=2.1,<2.2'.")


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

    from pylate import indexes  # noqa: PLC0415  (seconds to import)
    from pylate.retrieve import ColBERT as Retriever  # noqa: PLC0415

    if not documents_embeddings:
        raise ValueError("There is no document to search; give at least one.")
    queries = [_float32(query) for query in queries_embeddings]
    documents = [_float32(document) for document in documents_embeddings]
    with tempfile.TemporaryDirectory(prefix="numcolbert-index-") as folder:
        built = (
            indexes.PLAID(
                index_folder=folder,
                index_name=index,
                override=True,
                seed=seed,
                # Worker threads made a search of 50 queries no faster on two cores.
                num_threads=1,
                show_progress=show_progress,
                device=str(device),
            )
            if index == "plaid"
            else indexes.Voyager(
                index_folder=folder,
                index_name=index,
                override=True,
                embedding_size=_dimensions(documents, "document"),
            )
        )
        built.add_documents(documents_ids=list(documents_ids), documents_embeddings=documents)
        results = Retriever(index=built).retrieve(
            queries_embeddings=queries, k=min(k, len(documents)), device=str(device)
        )
    return [[(str(hit["id"]), float(hit["score"])) for hit in ranking] for ranking in results]
