"""Exact MaxSim over packed documents.

Query embeddings are taken as they come: a gated token may have any norm up to the query length, and nothing here
brings it back to one.
"""

from __future__ import annotations

import numpy as np
import torch
from rich.progress import track
from torch import Tensor

from numcolbert.retrieval.embeddings import Embeddings, as_float32, shared_dimensions

__all__ = ["ExactIndex", "maxsim_scores"]

_BLOCK_TOKENS = {"cpu": 2048, "cuda": 65536}
"""Document tokens in one matrix product. On a CPU the similarities of a block should stay in cache."""

_QUERY_BATCH = 16
"""Queries scored at once; with it, a block's similarities of 32-token queries take 4 MiB on a CPU."""


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
        self.dimensions = shared_dimensions(documents_embeddings, "document")
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
                tokens = as_float32(documents_embeddings[position])
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
        dimensions = shared_dimensions(queries_embeddings, "query")
        if dimensions != self.dimensions:
            raise ValueError(
                f"Queries have {dimensions} dimensions, documents {self.dimensions}; encode both with one model."
            )
        # A zero vector as padding adds exactly nothing to the sum over query tokens.
        queries = torch.nn.utils.rnn.pad_sequence([as_float32(q) for q in queries_embeddings], batch_first=True)
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
